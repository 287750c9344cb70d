"""The documents hold together: links lead somewhere, decisions are whole and listed, rules are explained."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from causeway.core.groups import stamp
from causeway.core.journal import journal_format
from causeway.core.offsets import map_format, mm2_offset_syncs, packed_ranges
from causeway.core.records import mm2_formats
from causeway.core.state import flow_log, position
from causeway.core.topics import heartbeats

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "include" / "causeway"
DECISIONS = ROOT / "docs" / "decisions"
INVARIANTS = ROOT / "docs" / "development" / "invariants.md"
FORMATS = ROOT / "docs" / "reference" / "stored-formats.md"
TOP = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
SPEAKING_OF_FILES = ("ARCHITECTURE.md", "docs/development/architecture.md", "docs/development/invariants.md")
MOST_LINES_OF_THE_MAP = 150
PARTS = ["Context", "Decision", "Rejected", "Consequences"]

_LINK = re.compile(r"!?\[[^\]]*\]\(([^()\s]+(?:\([^()\s]*\))?)(?:\s+\"[^\"]*\")?\)")
_FENCE = re.compile(r"^(?:```|~~~).*?^(?:```|~~~)\s*$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`]+`")
_HEADING = re.compile(r"^#{1,6} +(.+?)\s*$", re.MULTILINE)
_HTML_ANCHOR = re.compile(r"<a (?:id|name)=\"([^\"]+)\"")
_RULE = re.compile(r"\b[RC][1-9]\b")
_LETTER = re.compile(r"^\s+([A-Ha-h])\. \S", re.MULTILINE)
_PATH = re.compile(r"(?:[\w*]+/)*(?:[\w*]+\.py|[\w*]+/)")


@cache
def documents() -> tuple[Path, ...]:
    return (*(ROOT / name for name in TOP), *sorted((ROOT / "docs").rglob("*.md")))


@cache
def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def links_of(page: Path) -> list[str]:
    """Those to this repository's own files: not in code, not to other sites."""
    prose = _CODE.sub("", _FENCE.sub("", text_of(page)))
    return [link for link in _LINK.findall(prose) if not re.match(r"[a-z][a-z0-9+.-]*:", link)]


@cache
def anchors_of(page: Path) -> frozenset[str]:
    """As GitHub makes them: letters, digits, blanks and hyphens of a heading; a second one gets a number."""
    text, seen = _FENCE.sub("", text_of(page)), dict[str, int]()
    for heading in _HEADING.findall(text):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        again = seen.get(slug, 0)
        seen[slug] = again + 1
        if again:
            seen[f"{slug}-{again}"] = 1
    return frozenset(seen) | frozenset(_HTML_ANCHOR.findall(text))


def fault_of(page: Path, link: str) -> str:
    """Empty: it leads to a file of the repository, and to a place in it if it names one."""
    file, _, anchor = link.partition("#")
    target = (page.parent / file).resolve() if file else page
    if not target.is_relative_to(ROOT) or not target.exists():
        return "no such file"
    if anchor and (target.suffix != ".md" or anchor not in anchors_of(target)):
        return "no such heading"
    return ""


def test_each_link_leads_to_a_file_and_to_a_heading() -> None:
    faults = {
        f"{named(page)}: {link}": fault
        for page in documents()
        for link in links_of(page)
        if (fault := fault_of(page, link))
    }
    assert faults == {}


def test_links_are_found_and_wrong_ones_seen() -> None:
    assert sum(len(links_of(page)) for page in documents()) > 150
    here = DECISIONS / "README.md"
    assert fault_of(here, "0001-nothing.md") == "no such file"
    assert fault_of(here, "../../../elsewhere.md") == "no such file"
    assert fault_of(here, "#nothing") == "no such heading"
    assert fault_of(here, "../development/invariants.md#nothing") == "no such heading"
    assert fault_of(here, "../../LICENSE#nothing") == "no such heading"
    assert fault_of(here, "../development/invariants.md#r4-one-connection-per-broker-and-transaction") == ""


def decisions() -> list[Path]:
    return sorted(page for page in DECISIONS.glob("*.md") if page.name != "README.md")


def title_of(record: Path) -> str:
    return text_of(record).splitlines()[0]


def test_decisions_are_numbered_without_a_gap() -> None:
    assert decisions()
    assert [page.name[:5] for page in decisions()] == [
        f"{number:04d}-" for number in range(1, len(decisions()) + 1)
    ]


@pytest.mark.parametrize("record", decisions(), ids=lambda record: record.stem[:4])
def test_a_decision_has_its_parts(record: Path) -> None:
    text = text_of(record)
    assert re.match(rf"# {record.name[:4]}\. \S", text)
    assert re.search(r"^- Status: \S", text, re.MULTILINE)
    assert re.search(r"^- Date: \d{4}-\d\d-\d\d\b", text, re.MULTILINE)
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    assert parts[1::2] == PARTS
    assert [part for part, body in zip(parts[1::2], parts[2::2], strict=True) if not body.strip()] == []


def test_the_index_has_each_decision_once_under_its_subject() -> None:
    listed: dict[str, tuple[str, str]] = {}
    subject = ""
    for line in text_of(DECISIONS / "README.md").splitlines():
        if line.startswith("## "):
            subject = line.removeprefix("## ")
        elif entry := re.fullmatch(r"- \[(\d{4})\]\((\S+)\) (.+)", line):
            assert entry[2] not in listed, f"{entry[2]} is listed twice"
            listed[entry[2]] = (subject, f"# {entry[1]}. {entry[3]}")
    wanted = {}
    for record in decisions():
        said = re.search(r"^- Subject: (.+)$", text_of(record), re.MULTILINE)
        wanted[record.name] = (said[1] if said else "", title_of(record))
    assert listed == wanted


def test_the_map_is_short() -> None:
    assert len(text_of(ROOT / "ARCHITECTURE.md").splitlines()) <= MOST_LINES_OF_THE_MAP


@cache
def sources() -> tuple[Path, ...]:
    found = [path for folder in ("include", "tests") for path in sorted((ROOT / folder).rglob("*"))]
    return tuple(path for path in found if path.suffix in (".py", ".md") and path != Path(__file__))


def cited_rules() -> dict[str, str]:
    """And where, the last place of each."""
    return {rule: named(path) for path in sources() for rule in _RULE.findall(text_of(path))}


def test_each_rule_that_is_cited_is_explained() -> None:
    explained = set(re.findall(r"^### (R\d):|^\| \*\*(C\d)\*\* \|", text_of(INVARIANTS), re.MULTILINE))
    known = {rule for pair in explained for rule in pair if rule}
    cited = cited_rules()
    assert {"R1", "R4", "R6", "C1", "C6"} - known == set()
    assert {"R4", "R6", "C1", "C6"} - set(cited) == set()
    assert {rule: place for rule, place in cited.items() if rule not in known} == {}


def lettered(paths: Iterator[Path]) -> dict[str, list[str]]:
    """The letters of invariants that a module's docstring has, by the name that the page uses."""
    found = {}
    for path in paths:
        if not _LETTER.search(text := text_of(path)):  # to parse every module takes seconds
            continue
        docstring = ast.get_docstring(ast.parse(text), clean=False) or ""
        if letters := _LETTER.findall(docstring):
            is_packages = path.is_relative_to(PACKAGE)
            found[(path.relative_to(PACKAGE) if is_packages else path.relative_to(ROOT)).as_posix()] = letters
    return found


def test_each_lettered_invariant_is_on_the_page() -> None:
    parts = re.split(r"^#### `([^`]+)`$", text_of(INVARIANTS), flags=re.MULTILINE)
    explained = {
        module: re.findall(r"^- \*\*([A-Ha-h])\.\*\* \S", body.split("\n## ")[0], re.MULTILINE)
        for module, body in zip(parts[1::2], parts[2::2], strict=True)
    }
    assert explained == lettered(path for path in sources() if path.suffix == ".py")


def test_each_file_that_a_map_names_is_there() -> None:
    """A bare name is one of the package's or the tests', wherever it is."""
    modules = {path.name for path in sources()} | {"__main__.py"}
    missing = {
        f"{page}: {path}"
        for page in SPEAKING_OF_FILES
        for quoted in _CODE.findall(_FENCE.sub("", text_of(ROOT / page)))
        if _PATH.fullmatch(path := quoted.strip("`"))
        and not any(any(place.glob(path.rstrip("/"))) for place in (PACKAGE, ROOT, ROOT / "tests"))
        and not ("/" not in path and path in modules)
    }
    assert missing == set()


def test_the_page_of_stored_formats_says_what_the_code_writes() -> None:
    rows = [line.strip("| ").split(" | ") for line in text_of(FORMATS).splitlines() if line.startswith("| ")]
    written = {row[0]: row[2] for row in rows if len(row) >= 4}
    kinds = {kind: versions[-1] for kind, versions in flow_log._VERSIONS.items()}
    assert {
        name: written[name].split()[0] for name in written if name != "what" and "version" not in name
    } == {
        "position": str(position._VERSION),
        "offset map: value": str(packed_ranges.VERSION),
        "offset map: kind of key": str(map_format.RUN),
        **{f"flow state: `{kind}`": str(version) for kind, version in kinds.items()},
        "flow state: all other kinds": "1",
        "journal of failovers": str(journal_format.VERSION),
        "inherited offset syncs": str(mm2_offset_syncs._VERSION),
        "stamp of a group's offset": str(stamp._VERSION),
        "quarantined record": "no",
        "checkpoint": str(mm2_formats._VERSION),
        "offset sync": "no",
        "heartbeat": str(heartbeats._VERSION),
    }
    listed = text_of(FORMATS).partition("Kinds of records in the flow state:")[2].partition(".")[0]
    assert set(re.findall(r"`(\w+)`", listed)) == flow_log._KINDS
