"""A page of Markdown as its reader meets it: its sentences, its words, its commands and its links.

Pure: text in, values out. What a page quotes from the product (code spans, blocks of commands and output) is
the product's own wording: it counts as one word of a sentence, and no word of it is judged. A picture is a
fence marked `text`; its words are judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

RENOVATED = (
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
    "docs/benchmarks.md",
    "docs/comparison.md",
    "docs/concepts.md",
    "docs/decisions/README.md",
    "docs/development/architecture.md",
    "docs/development/finding.md",
    "docs/development/invariants.md",
    "docs/development/runbook-walks.md",
    "docs/development/testing.md",
    "docs/index.md",
    "docs/install.md",
    "docs/migrate-from-mirrormaker2.md",
    "docs/offset-map.md",
    "docs/operations/alerts.md",
    "docs/operations/drill.md",
    "docs/operations/failback.md",
    "docs/operations/failover.md",
    "docs/operations/harmed-topics.md",
    "docs/operations/parked-partitions.md",
    "docs/operations/planned-switch.md",
    "docs/operations/running.md",
    "docs/operations/upgrading.md",
    "docs/proof.md",
    "docs/quickstart.md",
    "docs/reference/internal-topics.md",
    "docs/reference/stored-formats.md",
    "docs/repack.md",
    "docs/rights.md",
    "docs/runbook.md",
)
"""What is held to the rules. It only grows: by each page that is rewritten, by each of docs/operations."""

BANNED = {
    "behind": r"behind",
    "in front of": r"in front of",
    "anew": r"anew",
    "told": r"told",
    "said": r"said",
    "for good": r"for good",
    "lead back": r"(?:lead|leads|leading|led) (?:\w+ ){0,2}back",
    "go home": r"(?:go|goes|going|gone|went|come|comes|coming|came) home",
    "stand still": r"(?:stand|stands|standing|stood) still",
    "see to": r"seen to",
    "the way out": r"way out",
}
"""Short words in uncommon senses. Of time and offsets: before, after. Of programs: report, print, return."""
_BANNED = {name: re.compile(rf"\b{pattern}\b", re.IGNORECASE) for name, pattern in BANNED.items()}

_FENCE = re.compile(r"\s*(?:```|~~~)(\w*)")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.])\s+")
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_LINK = re.compile(r"!?\[([^\]]*)\]\(([^)\s]+)[^)]*\)")
_END = re.compile(r"(?<=[.!?])[*_\"')\]]*\s+(?=[*_\"'(\[]*[A-Z0-9])")
_WORD = re.compile(r"[A-Za-z0-9][\w'/.,%-]*")
_ANCHOR = re.compile(r'\s*<a id="([^"]+)"></a>\s*')
_FRAGMENT_WORDS = 2
_QUOTED = "Code"


@dataclass(frozen=True, slots=True)
class Line:
    """A line, and what it is part of."""

    number: int
    text: str
    kind: str
    """prose, heading, table, command, picture or empty."""


def lines_of(page: str) -> Iterator[Line]:
    fence, was = "", "empty"
    in_comment = False
    for number, text in enumerate(page.splitlines(), 1):
        found = _FENCE.match(text)
        if found:
            fence = "" if fence else ("picture" if found[1] in ("text", "mermaid") else "command")
            was = "empty"
            continue
        if fence:
            yield Line(number, text, fence)
            continue
        in_comment = in_comment or text.lstrip().startswith("<!--")
        was = "empty" if in_comment else _kind(text, was)
        in_comment = in_comment and "-->" not in text
        yield Line(number, text, was)


def _kind(text: str, was: str) -> str:
    bare = text.strip()
    if not bare:
        return "command" if was == "command" else "empty"
    if _ANCHOR.fullmatch(text):
        return "empty"
    if text.startswith("    ") and was in ("empty", "command", "heading"):
        return "command"
    if bare.startswith("#"):
        return "heading"
    return "table" if bare.startswith("|") else "prose"


def without_quotes(text: str) -> str:
    """Code spans as one word, links as the text that they show."""
    return _LINK.sub(r"\1", _CODE.sub(_QUOTED, text))


def sentences(page: str) -> list[str]:
    """Of paragraphs and of items in lists; a fragment of one or two words is none."""
    return [each for block in _blocks(page, "prose") for each in split(block)]


def sentences_of_tables(page: str) -> list[str]:
    cells = (cell for line in lines_of(page) if line.kind == "table" for cell in cells_of(line.text))
    return [each for cell in cells for each in split(cell)]


def cells_of(row: str) -> list[str]:
    return [cell.strip() for cell in _CODE.sub(_QUOTED, row).strip().strip("|").split("|")]


def split(block: str) -> list[str]:
    found = _END.split(without_quotes(block))
    return [" ".join(each.split()) for each in found if words_in(each) > _FRAGMENT_WORDS]


def words_in(sentence: str) -> int:
    return len(_WORD.findall(sentence))


def _blocks(page: str, kind: str) -> Iterator[str]:
    block: list[str] = []
    for line in lines_of(page):
        begins = line.kind != kind or _ITEM.match(line.text)
        if begins and block:
            yield "\n".join(block)
            block = []
        if line.kind == kind:
            block.append(_ITEM.sub("", line.text, count=1) if begins else line.text)
    if block:
        yield "\n".join(block)


def mean(lengths: list[int]) -> float:
    return sum(lengths) / len(lengths)


def percentile(lengths: list[int], share: float) -> int:
    return sorted(lengths)[ceil(share * len(lengths)) - 1]


def banned_words(page: str) -> list[str]:
    """Each with its line; a word may run over the end of a line."""
    kept = [line for line in lines_of(page) if line.kind != "command"]
    text, starts, at = "", list[tuple[int, int]](), 0
    for line in kept:
        starts.append((at, line.number))
        text += line.text + "\n"
        at = len(text)
    shown = _CODE.sub(lambda found: re.sub(r"[^\n]", "_", found[0]), text)
    shown = re.sub(r"\]\([^)\s]*\)", lambda found: "_" * len(found[0]), shown)
    shown = shown.replace("\n", " ")
    return [
        f"line {max(number for start, number in starts if start <= found.start())}: {name}"
        for name, pattern in _BANNED.items()
        for found in pattern.finditer(shown)
    ]


def commands(page: str) -> list[tuple[int, str]]:
    """Lines of blocks that begin with the program's name: what a reader copies."""
    return [
        (line.number, line.text.strip())
        for line in lines_of(page)
        if line.kind == "command" and line.text.strip().startswith("causeway ")
    ]


def quoted(page: str) -> list[str]:
    """What stands in code spans, outside of blocks."""
    text = "\n".join(line.text for line in lines_of(page) if line.kind not in ("command", "picture"))
    return [re.sub(r"\s+", " ", found[0].strip("`").strip()) for found in _CODE.finditer(text)]


def links(page: str) -> list[str]:
    """Targets of links and pictures, outside of code."""
    text = "\n".join(line.text for line in lines_of(page) if line.kind not in ("command", "picture"))
    return [found[2] for found in _LINK.finditer(_CODE.sub(_QUOTED, text))]


def anchors(page: str) -> set[str]:
    """Of its headings, as the page's host makes them; and those that outlive a heading's name."""
    found: set[str] = set()
    for line in lines_of(page):
        if line.kind == "empty" and (kept := _ANCHOR.fullmatch(line.text)):
            found.add(kept[1])
        if line.kind == "heading":
            title = _LINK.sub(r"\1", line.text.lstrip("#").strip()).replace("`", "").lower()
            found.add(re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", title)))
    return found
