from dataclasses import replace
from uuid import UUID

import pytest

from causeway.core.kernel.errors import ProtocolFault
from causeway.core.kernel.identity import Generation, SourceOffset, TargetOffset, TopicPartition
from causeway.core.offsets.map_entries import MapEntries
from causeway.core.offsets.map_format import (
    decode_range,
    decode_ranges,
    encode_merged,
    encode_range,
    filling,
    is_merged,
    target_of,
)
from tests.support import builders

TP = TopicPartition("sf.orders", 3)
RUN = builders.mapped_range(100, 40, (3, 2), (2, 0), target=TP, first_timestamp_ms=11, last_timestamp_ms=22)
NEXT = replace(RUN, source_first=SourceOffset(107), target_first=TargetOffset(46), segments=((4, 0),))
KEY = "010009" + b"sf.orders".hex() + "00000003" + "0000000000000064"
IDS = "0000000000000000000000000000000100000000000000000000000000000002"


def test_a_run_survives_the_wire_at_the_edges_of_its_fields() -> None:
    most = (1 << 63) - 1
    wide = replace(
        RUN,
        target=TopicPartition("ü" * 60, (1 << 31) - 1),
        source_first=SourceOffset(most),
        target_first=TargetOffset(most),
        segments=(((1 << 32) - 1, most), (1, 0)),
        first_timestamp_ms=-1,
        last_timestamp_ms=-most - 1,
        generation=Generation(-1),
        source_topic_id=UUID(int=(1 << 128) - 1),
        source_epoch=(1 << 31) - 1,
        holes_before=(most, most),
    )
    assert decode_range(*encode_range(wide)) == wide


def test_the_format_is_the_one_of_the_docs() -> None:
    key, value = encode_range(RUN)
    assert key.hex() == KEY
    #                        40   11   11  1 run   3, odd, more; generation 7, epochs; 1 more: 2 skipped, 2
    assert value.hex() == "0200" + IDS + "281616010f010e0000010202"


def test_merged_runs_have_a_key_of_their_own_and_take_two_bytes_each() -> None:
    key, value = encode_merged([RUN, NEXT])
    assert key.hex() == "02" + KEY[2:] + "0000000000000028"
    assert value.hex() == encode_range(RUN)[1].hex().replace("161601", "161602") + "10"
    assert decode_ranges(key, value) == (RUN, NEXT)
    assert (is_merged(key), is_merged(encode_range(RUN)[0])) == (True, False)
    assert target_of(key) == target_of(encode_range(RUN)[0]) == TP


def test_what_is_odd_about_a_run_is_reported() -> None:
    odd = [
        replace(RUN, source_epoch=4, target_epoch=1),
        replace(NEXT, source_first=SourceOffset(108), source_epoch=4, target_epoch=1),
        replace(
            NEXT,
            source_first=SourceOffset(112),
            target_first=TargetOffset(50),
            source_epoch=5,
            target_epoch=0,
        ),
        replace(
            NEXT,
            source_first=SourceOffset(200),
            target_first=TargetOffset(99),
            generation=Generation(9),
            holes_before=(3, 1),
        ),
    ]
    assert decode_ranges(*encode_merged(odd)) == tuple(odd)


def test_merged_runs_keep_the_time_of_the_whole() -> None:
    later = replace(NEXT, first_timestamp_ms=30, last_timestamp_ms=40)
    assert [
        (r.first_timestamp_ms, r.last_timestamp_ms) for r in decode_ranges(*encode_merged([RUN, later]))
    ] == [
        (11, 40),
        (11, 40),
    ]


def test_many_merged_runs_are_deflated() -> None:
    runs = [
        replace(RUN, source_first=SourceOffset(n * 5), target_first=TargetOffset(n * 6), segments=((5, 0),))
        for n in range(1_000)
    ]
    key, value = encode_merged(runs)
    assert len(value) < 100
    assert decode_ranges(key, value) == tuple(runs)
    for cut in range(0, len(value), 7):
        with pytest.raises(ProtocolFault):
            decode_ranges(key, value[:cut])
    with pytest.raises(ProtocolFault, match="another length"):
        decode_ranges(key, value + b"\0")


def test_runs_that_do_not_rise_are_never_written() -> None:
    with pytest.raises(ValueError, match="rise"):
        encode_merged([NEXT, RUN])


def test_what_version_1_held_is_still_read() -> None:
    value = (
        "01"
        "0000000000000028" "000000000000000b" "0000000000000016" "0000000000000007" "ffffffff" "ffffffff"
        + IDS +
        "00000002" "00000003" "0000000000000002" "00000002" "0000000000000000"
    )  # fmt: skip
    assert decode_range(bytes.fromhex(KEY), bytes.fromhex(value)) == RUN
    with pytest.raises(ProtocolFault, match="another length"):
        decode_range(bytes.fromhex(KEY), bytes.fromhex(value + "00"))


def test_one_key_per_place_so_that_compaction_keeps_the_newest_run_there() -> None:
    again = replace(RUN, target_first=TargetOffset(90), generation=Generation(8), segments=((1, 0),))
    assert encode_range(again)[0] == encode_range(RUN)[0]
    assert encode_range(replace(RUN, source_first=SourceOffset(101)))[0] != encode_range(RUN)[0]
    assert encode_range(replace(RUN, target=TopicPartition("sf.orders", 4)))[0] != encode_range(RUN)[0]


@pytest.mark.parametrize(("part", "version"), [(0, 0), (0, 4), (0, 255), (1, 0), (1, 3), (1, 255)])
def test_another_version_is_refused(part: int, version: int) -> None:
    for written in (encode_range(RUN), encode_merged([RUN, NEXT])):
        record = [bytearray(raw) for raw in written]
        record[part][0] = version
        with pytest.raises(ProtocolFault, match=r"this code knows 1 (and 2|to 3)"):
            decode_ranges(*map(bytes, record))


def test_another_packing_and_another_kind_are_refused() -> None:
    key, value = encode_range(RUN)
    with pytest.raises(ProtocolFault, match="packed in way 9"):
        decode_range(key, value[:1] + b"\x09" + value[2:])
    with pytest.raises(ProtocolFault, match="merged runs where"):
        decode_range(*encode_merged([RUN, NEXT]))
    with pytest.raises(ProtocolFault, match="holds 2 runs"):
        decode_ranges(key, encode_merged([RUN, NEXT])[1])
    with pytest.raises(ProtocolFault, match="begins at target offset 46"):
        decode_ranges(encode_merged([RUN])[0], encode_merged([NEXT])[1])


def test_a_record_cut_anywhere_is_refused() -> None:
    for key, value in (encode_range(RUN), encode_merged([RUN, NEXT])):
        for cut in range(len(key)):
            with pytest.raises(ProtocolFault, match="record of the offset map"):
                decode_ranges(key[:cut], value)
        for cut in range(len(value)):
            with pytest.raises(ProtocolFault, match="record of the offset map"):
                decode_ranges(key, value[:cut])


def test_a_record_that_is_too_long_is_refused() -> None:
    key, value = encode_range(RUN)
    with pytest.raises(ProtocolFault, match="another length"):
        decode_range(key, value + b"\0")
    with pytest.raises(ProtocolFault, match="another length"):
        decode_range(key + b"\0", value)


def test_a_run_of_nothing_and_a_name_that_is_no_text_are_refused() -> None:
    key, value = encode_range(RUN)
    with pytest.raises(ProtocolFault, match="cut short"):
        decode_range(key, value[:-1] + b"\0")
    with pytest.raises(ProtocolFault):
        decode_range(key.replace(b"sf", b"\xff\xfe"), value)


@pytest.mark.parametrize("size_bytes", [1, 600, 30_000])
def test_what_fills_a_place_in_the_map_says_nothing(size_bytes: int) -> None:
    records = filling(TP, size_bytes)
    assert size_bytes <= sum(len(key) for key, _ in records) < size_bytes + 40
    assert len({key for key, _ in records}) == len(records)
    entries = MapEntries()
    entries.take(*encode_range(RUN))
    for key, value in records:
        entries.take(key, value)
    assert entries.runs(RUN.target) == [RUN]
