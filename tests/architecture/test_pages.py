"""Pages that tell a user what to type or what they will see keep to what the product does."""

from __future__ import annotations

import re
import shlex
from argparse import ArgumentParser, _SubParsersAction
from functools import cache
from pathlib import Path

import pytest

from causeway.cli.parser import parser
from causeway.core.episode.stage import Stage
from causeway.core.groups.report import WOULD_BE_SYNCED
from causeway.core.groups.sync_rules import Outcome
from causeway.core.state.parked import ParkReason
from tests.architecture.prose import RENOVATED, commands, links, quoted

ROOT = Path(__file__).parents[2]
RUNNING = "docs/operations/running.md"
PARKED = "docs/operations/parked-partitions.md"


@cache
def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@cache
def program() -> ArgumentParser:
    return parser()


def verbs_of(program: ArgumentParser) -> dict[str, ArgumentParser]:
    found = [each for each in program._actions if isinstance(each, _SubParsersAction)]
    return dict(found[0].choices) if found else {}


def options_of(verb: ArgumentParser) -> set[str]:
    return {option for action in verb._actions for option in action.option_strings}


def unknown_in(command: str) -> list[str]:
    """Words of a command that the program doesn't know: its verb, or an option of that verb."""
    verb, words = program(), shlex.split(command.replace("...", "x"))[1:]
    while words and (below := verbs_of(verb)):
        if words[0] in options_of(verb):
            words = words[1:]
            continue
        if words[0] not in below:
            return words[:1]
        verb, words = below[words[0]], words[1:]
    return [word for word in words if word.startswith("--") and word not in options_of(verb)]


@pytest.mark.parametrize("page", RENOVATED)
def test_each_command_that_a_reader_copies_is_one(page: str) -> None:
    for number, line in commands(text_of(page)):
        try:
            program().parse_args(shlex.split(line, comments=True)[1:])
        except Exception as refused:
            raise AssertionError(f"{page}:{number}: {line}") from refused


@pytest.mark.parametrize("page", RENOVATED)
def test_each_command_in_a_sentence_has_a_verb_and_options_that_exist(page: str) -> None:
    named = [each for each in quoted(text_of(page)) if each.startswith("causeway ")]
    assert {each: unknown for each in named if (unknown := unknown_in(each))} == {}


@pytest.mark.parametrize(
    ("command", "unknown"),
    [
        ("causeway lab up --nodes 3", []),
        ("causeway lab sideways", ["sideways"]),
        ("causeway --version", []),
        ("causeway --vision", ["--vision"]),
        ("causeway failback FLOW --homeward", ["--homeward"]),
        ('causeway lift FLOW --fence N --because "..."', []),
    ],
)
def test_an_unknown_verb_or_option_would_be_found(command: str, unknown: list[str]) -> None:
    assert unknown_in(command) == unknown


@pytest.mark.parametrize("folder", ["docs", "docs/operations"])
def test_the_map_has_each_page(folder: str) -> None:
    """Of docs/reference, docs/development and docs/decisions it names the page to begin with."""
    named = {(ROOT / "docs" / link).resolve() for link in links(text_of("docs/index.md"))}
    pages = set((ROOT / folder).resolve().glob("*.md")) - {ROOT / "docs/index.md"}
    assert {path.name for path in pages - named} == set()


@pytest.mark.parametrize("stage", Stage)
def test_each_stage_that_next_prints_is_explained(stage: Stage) -> None:
    assert f"| `{str(stage).upper()}` |" in text_of(RUNNING)


@pytest.mark.parametrize("reason", ParkReason)
def test_each_reason_to_park_has_its_remedy(reason: ParkReason) -> None:
    rows = [line for line in text_of(PARKED).splitlines() if line.startswith("| `")]
    assert any(f"`{reason}`" in row.split(" | ")[0] for row in rows)


@pytest.mark.parametrize("outcome", [*map(str, Outcome), WOULD_BE_SYNCED])
def test_each_outcome_of_a_group_is_explained(outcome: str) -> None:
    assert f"| `{outcome}` |" in text_of(RUNNING)


def test_the_numbers_of_readme_are_those_that_were_measured() -> None:
    """Of three digits and more: smaller ones are found anywhere."""
    section = text_of("README.md").split("## Beside MirrorMaker 2")[1].split("\n## ")[0]
    measured = text_of("docs/benchmarks.md") + text_of("docs/comparison.md")
    numbers = re.findall(r"(?<![\d,.])\d[\d,.-]*\d{2}(?![\d,])", section)
    assert len(numbers) > 20
    assert [each for each in numbers if each not in measured] == []


@pytest.mark.parametrize(
    ("page", "template"),
    [
        ("docs/proof.md", "tests/proofs/chaos/mutations.md"),
        ("docs/benchmarks.md", "tests/bench/method.md"),
    ],
)
def test_what_a_measured_page_copies_from_a_file_is_that_file(page: str, template: str) -> None:
    assert text_of(template) in text_of(page)
