"""What dfef452 itself reads, and what it refuses: the ways in which a format may change under it."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from causeway.core.journal.journal import Journal, fold
from causeway.core.journal.rollback_records import (
    claim_asked,
    claim_record,
    failover_asked,
    rolled_back_record,
)
from causeway.core.model.naming import FLOWS_TOPIC
from tests.golden.earlier import EarlierReader, Row
from tests.golden.of_dfef452 import EXPECTED, NYC

MAP, JOURNAL = "causeway-offset-map.sf.internal", "causeway-failovers.internal"


@pytest.fixture(scope="module")
def dfef452(tmp_path_factory: pytest.TempPathFactory) -> EarlierReader:
    try:
        return EarlierReader("dfef452", tmp_path_factory.mktemp("dfef452"))
    except LookupError as too_short:
        pytest.skip(f"its code isn't in this copy's history: {too_short}")


def rows(topic: str) -> list[Row]:
    return [(r.offset, r.key, r.value) for r in NYC.records(topic)]


def test_it_reads_what_it_has_stored(dfef452: EarlierReader) -> None:
    flows = EXPECTED["nyc"]["flows"]
    fences = {name: [[f["by"], f["because"]] for f in facts["fences"]] for name, facts in flows.items()}
    found = dfef452.flows(rows(FLOWS_TOPIC)).read
    assert {name: [fence] if fence else [] for name, fence in found.items()} == fences
    assert sum(dfef452.maps(rows(MAP)).read) > len(rows(MAP)) / 2
    runs = EXPECTED["nyc"]["journal"]["runs"]
    assert dfef452.failovers(rows(JOURNAL)).read == {run["run"]: run["status"] for run in runs}
    commits = [(told["offset"], told["metadata"]) for told in NYC.groups["causeway.plain"].values()]
    assert dfef452.positions(commits).read.count(True) == len(commits) - 1, "all but the mark"


def _another_key(part: str, now: str) -> Row:
    offset, key, value = rows(FLOWS_TOPIC)[0]
    assert key is not None
    return offset, key.decode().replace(part, now, 1).encode(), value


@pytest.mark.parametrize(("part", "now"), [("1/", "2/"), ("/run/", "/fences/")])
def test_it_refuses_a_flows_topic_with_another_version_or_kind(
    dfef452: EarlierReader, part: str, now: str
) -> None:
    assert dfef452.flows([_another_key(part, now)]).refused
    assert dfef452.flows([*rows(FLOWS_TOPIC), _another_key(part, now)]).refused


def test_it_takes_away_a_record_of_any_kind_without_a_word(dfef452: EarlierReader) -> None:
    """A tombstone of a kind that it doesn't know isn't refused: nothing may be stored by one alone."""
    _, key, _ = _another_key("/run/", "/fences/")
    assert dfef452.flows([(0, key, None)]).refused == ""


def test_it_skips_fields_that_it_doesnt_know(dfef452: EarlierReader) -> None:
    """So a field may be added only where a reader who doesn't see it does no harm."""
    offset, key, value = rows(FLOWS_TOPIC)[0]
    more = json.dumps({**json.loads(value or b""), "scope": ["orders"]}).encode()
    assert dfef452.flows([(offset, key, more)]).refused == ""


def test_it_refuses_another_version_in_a_value(dfef452: EarlierReader) -> None:
    offset, key, value = rows(FLOWS_TOPIC)[0]
    assert dfef452.flows([(offset, key, (value or b"").replace(b'"v":1', b'"v":2', 1))]).refused
    offset, key, value = rows(JOURNAL)[0]
    assert dfef452.failovers([(offset, key, (value or b"").replace(b'"v":1', b'"v":2', 1))]).refused
    assert dfef452.failovers([(offset, (key or b"").replace(b"[1,", b"[2,", 1), value)]).refused
    assert dfef452.failovers([(offset, (key or b"").replace(b"offsets", b"another"), value)]).refused


def test_it_refuses_a_journal_with_a_rollback_that_was_begun_and_reads_a_failovers_question(
    dfef452: EarlierReader,
) -> None:
    """It would go on with a failover that somebody takes back."""
    run = json.loads(rows(JOURNAL)[0][1] or b"")[3]
    journal = Journal()
    for offset, key, value in rows(JOURNAL):
        journal = fold(journal, offset, key, value)
    known = replace(journal.runs[run], is_agreed=True)
    asked, claim = failover_asked(known), claim_record(known, "t1", by="amy", at_ms=7)
    end = rolled_back_record(known, "t1", by="amy", at_ms=8)
    named = f'"{known.flow}","{run}"'.encode()
    assert claim == (b'[1,"rolling back",%b,"t1"]' % named, b'{"v":1,"by":"amy","at_ms":7,"claim":"t1"}')
    assert claim_asked(known, "t1") == (b'[1,"rolling back",%b,"t1","asked"]' % named, b'{"v":1}')
    assert asked[0] == b'[1,"agreed",%b,"asked"]' % named
    assert end == (
        b'[1,"rolled back",%b,"t1"]' % named,
        b'{"v":1,"by":"amy","at_ms":8,"generation":-1,"facts":{},"claim":"t1"}',
    )
    before = dfef452.failovers(rows(JOURNAL)).read
    assert dfef452.failovers([*rows(JOURNAL), (90, *asked)]).read == before
    assert dfef452.failovers([*rows(JOURNAL), (90, *end)]).read == {**before, run: "rolled back"}
    assert dfef452.failovers([*rows(JOURNAL), (90, *claim)]).refused


def test_it_refuses_a_map_of_another_kind_or_version(dfef452: EarlierReader) -> None:
    offset, key, value = rows(MAP)[0]
    assert key is not None
    assert value is not None
    assert dfef452.maps([(offset, key, value)]).refused == ""
    assert dfef452.maps([(offset, struct.pack(">B", 3) + key[1:], value)]).refused
    assert dfef452.maps([(offset, key, b"\x03" + value[1:])]).refused


def test_it_takes_a_position_of_another_version_for_a_foreign_one(dfef452: EarlierReader) -> None:
    (told,) = [t for t in NYC.groups["causeway.plain"].values() if t["topic"] == "sf.plain-ledger"]
    later = told["metadata"].replace('{"v":1', '{"v":2', 1)
    (why,) = dfef452.positions([(told["offset"], later)]).read
    assert "version 2" in why


def test_a_copy_that_doesnt_go_back_so_far_is_reported(tmp_path: Path) -> None:
    with pytest.raises(LookupError):
        EarlierReader("0000000", tmp_path)
