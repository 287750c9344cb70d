"""What the runbook and its pages quote is what the product prints: a reader searches for what they see."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.prose import anchors, cells_of, lines_of

ROOT = Path(__file__).parents[2]
RUNBOOK = "docs/runbook.md"
OPERATIONS = "docs/operations"
HEADS = ("it says", "it shows", "you see", "the line says")
"""Of the column of messages."""
FOUND_BY_LINKS = {"going-home-the-failback", "when-causeways-own-topics-are-harmed"}
"""Other pages, and notes that people have kept, lead there."""
_QUOTED = re.compile(r"`([^`]+)`")
_LEFT_OPEN = re.compile(
    r"[.]{3}|\b[A-Z]\b|\d+|(?<=RECORDS )LOST|[,:;]"
    r"|\borders-|\b(?:and|by|failover|sf|nyc|causeway-[a-z]+[.]internal|causeway-offset-map)\b"
)
"""What a message fills in, or puts together from several pieces."""
_TYPED = ("causeway ", "--")


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def pages() -> list[str]:
    found = sorted((ROOT / OPERATIONS).glob("*.md"))
    return [RUNBOOK, *(f"{OPERATIONS}/{path.name}" for path in found)]


def messages_of(page: str) -> list[str]:
    """Of tables of messages, and of those that say what a word of the output means."""
    found: list[str] = []
    is_of_messages = False
    for line in lines_of(text_of(page)):
        if line.kind != "table":
            is_of_messages = False
            continue
        cell = line.text.strip().strip("|").split(" | ")[0].strip()
        if cells_of(line.text)[0] in HEADS:
            is_of_messages = True
        elif is_of_messages:
            found += [each for each in _QUOTED.findall(cell) if not each.startswith(_TYPED)]
    return found


def messages() -> list[str]:
    return list(dict.fromkeys(each for page in pages() for each in messages_of(page)))


@cache
def printed() -> tuple[str, ...]:
    """The package's strings as Python joins them, without docstrings; and names, for Kafka's errors."""
    found: list[str] = []
    for path in sorted((ROOT / "include/causeway").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents:
                found.append(node.value)
            elif isinstance(node, ast.Name):
                found.append(node.id)
    return tuple(dict.fromkeys(found))


def pieces(message: str) -> list[str]:
    return [piece.strip() for piece in _LEFT_OPEN.split(message) if piece and piece.strip()]


def unprinted(message: str) -> list[str]:
    return [piece for piece in pieces(message) if not any(piece in text for text in printed())]


def test_there_are_messages() -> None:
    assert len(messages()) > 100


@pytest.mark.parametrize(
    ("page", "least"),
    [
        ("failover", 30),
        ("failback", 30),
        ("planned-switch", 6),
        ("harmed-topics", 7),
        ("running", 12),
        ("parked-partitions", 18),
    ],
)
def test_each_page_of_a_command_has_its_messages(page: str, least: int) -> None:
    assert len(messages_of(f"{OPERATIONS}/{page}.md")) >= least


@pytest.mark.parametrize("message", messages())
def test_each_message_is_printed_so(message: str) -> None:
    assert unprinted(message) == []


@pytest.mark.parametrize(
    ("message", "missing"),
    [
        ("was begun by ... and isn't finished", []),
        ("NOT YET: fenced by X since T", []),
        ("is earlier than the eldest record there", ["is earlier than the eldest record there"]),
        ("plan of ...: was ... on the paper and ... after the fence", ["on the paper"]),
    ],
)
def test_a_message_that_is_not_printed_would_be_found(message: str, missing: list[str]) -> None:
    assert unprinted(message) == missing


def test_places_that_others_link_to_stay() -> None:
    assert anchors(text_of(RUNBOOK)) >= FOUND_BY_LINKS
