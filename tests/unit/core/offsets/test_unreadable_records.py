"""Records of the offset map that can't be read: the map begins after them, and each is named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from causeway.core.kernel.errors import NewerFormat
from causeway.core.kernel.identity import Generation, TopicPartition
from causeway.core.offsets.map_entries import MapEntries
from causeway.core.offsets.map_format import encode_merged, encode_place, encode_range, is_ours, newer_key
from causeway.core.offsets.offset_map import MappedRange
from causeway.core.offsets.unreadable_records import OddInMap, odd_of_map
from tests.support import builders

TP, OTHER = TopicPartition("sf.orders", 3), TopicPartition("sf.pay", 0)
MAP = TopicPartition("causeway-offset-map.sf.internal", 5)
CUT = b"\x02\x00"


def run_at(number: int, target: TopicPartition = TP) -> MappedRange:
    return builders.mapped_range(10 * number, 11 * number, (10, 0), target=target)


PLACE = builders.position(5, 5, generation=Generation(7))
MERGED = encode_merged([run_at(0), run_at(1)])
LATER_MERGED = encode_merged([run_at(2), run_at(3)])


def entries_of(*records: tuple[bytes, bytes | None]) -> MapEntries:
    entries = MapEntries()
    for key, value in records:
        entries.take(key, value)
    return entries


def test_after_a_lanes_run_that_cannot_be_read_only_what_came_later_is_reported() -> None:
    runs = [encode_range(run_at(n)) for n in (4, 5, 6)]
    entries = entries_of(
        MERGED, runs[0], (runs[1][0], CUT), runs[2], encode_place(TP, PLACE), encode_range(run_at(0, OTHER))
    )
    found = entries.by_target()
    assert (found[TP].runs, found[TP].place, entries.broken) == ([run_at(6)], None, {TP})
    assert found[OTHER].runs == [run_at(0, OTHER)]
    assert not entries_of(MERGED, (runs[1][0], CUT)).runs(TP), (
        "what a lane wrote last is newer than all merged"
    )


def test_of_merged_runs_those_after_it_stay() -> None:
    alone = encode_range(run_at(4))
    assert entries_of((MERGED[0], CUT), LATER_MERGED, alone).runs(TP) == [run_at(2), run_at(3), run_at(4)]
    assert entries_of(MERGED, (LATER_MERGED[0], CUT), alone).runs(TP) == [run_at(4)]


@pytest.mark.parametrize("healed", [None, encode_range(run_at(0))[1]])
def test_what_is_later_under_its_key_takes_its_place(healed: bytes | None) -> None:
    key, _ = encode_range(run_at(0))
    entries = entries_of((key, CUT), (key, healed), encode_range(run_at(1)))
    assert entries.runs(TP)[-1:] == [run_at(1)]
    assert not entries.broken


def test_a_place_that_cannot_be_read_is_none() -> None:
    key, value = encode_place(TP, PLACE)
    entries = entries_of((key, value[:4]))
    assert (entries.places, entries.broken) == ({}, {TP})


def test_a_newer_value_or_key_is_refused_by_name_and_text_is_not_newer() -> None:
    key, value = encode_range(run_at(0))
    with pytest.raises(NewerFormat, match="written by a newer Causeway"):
        entries_of((key, b"\x03" + value[1:])).runs(TP)
    assert newer_key(b"\x04" + key[1:]) is not None
    for foreign in (b"", b"order-7", b"\xff\x00", b"\x04", key[:-1], b"\x20" + key[1:]):
        assert (newer_key(foreign), is_ours(foreign)) == (None, False)
    assert not entries_of((key, b"not ours")).runs(TP)


def test_each_is_named_with_its_place() -> None:
    key, value = encode_range(run_at(0))
    latest = {
        b"order-7": (3, b"x"),
        b"gone": (4, None),
        key: (5, CUT),
        encode_range(run_at(1))[0]: (6, b"\x03" + value[1:]),
        encode_range(run_at(2))[0]: (7, encode_range(run_at(2))[1]),
    }
    foreign, cut, newer = odd_of_map(MAP, latest)
    assert foreign == OddInMap(at=MAP, offset=3, key=b"order-7")
    assert cut == replace(foreign, offset=5, key=key, target=TP)
    assert (newer.is_newer, newer.name) == (True, f"{MAP}:6")
