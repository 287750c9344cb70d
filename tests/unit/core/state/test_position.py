import json
from dataclasses import replace
from uuid import UUID

import pytest

from causeway.core.kernel.errors import ProtocolFault
from causeway.core.kernel.identity import Generation, SourceOffset, TargetOffset
from causeway.core.state.position import ForeignPosition, Position, parse_position, require_position

BROKERS_LIMIT_BYTES = 4_096
POSITION = Position(
    source_next=SourceOffset(107),
    target_next=TargetOffset(45),
    source_topic_id=UUID(int=1),
    target_topic_id=UUID(int=2),
    source_epoch=3,
    target_epoch=4,
    generation=Generation(5),
    producer_id=6,
    time_ms=1_700_000_000_000,
    records=8,
    aborted_records=9,
)
INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1


def extreme(number: int) -> Position:
    return Position(
        source_next=SourceOffset(number),
        target_next=TargetOffset(number),
        source_topic_id=UUID(int=(1 << 128) - 1),
        target_topic_id=UUID(int=(1 << 128) - 1),
        source_epoch=number,
        target_epoch=number,
        generation=Generation(number),
        producer_id=number,
        time_ms=number,
        records=number,
        aborted_records=number,
    )


@pytest.mark.parametrize("position", [POSITION, extreme(INT64_MIN), extreme(INT64_MAX), extreme(0)])
def test_a_position_survives_its_commit(position: Position) -> None:
    assert parse_position(position.source_next, position.metadata()) == position


@pytest.mark.parametrize("number", [INT64_MIN, INT64_MAX])
def test_metadata_stays_far_below_what_brokers_take(number: int) -> None:
    assert len(extreme(number).metadata().encode()) < BROKERS_LIMIT_BYTES // 8


def test_the_format_is_the_one_that_clusters_already_hold() -> None:
    assert POSITION.metadata() == (
        '{"v":1,"t":45,"sid":"00000000000000000000000000000001","tid":"00000000000000000000000000000002",'
        '"se":3,"te":4,"g":5,"pid":6,"ms":1700000000000,"n":8,"ab":9}'
    )


def with_(**fields: object) -> str:
    return json.dumps(json.loads(POSITION.metadata()) | fields)


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        "",
        "consumer-1",
        "{",
        "[]",
        "7",
        "null",
        '"v"',
        "{}",
        '{"v":1}',
        "[" * 4_000,
        POSITION.metadata()[:-1],
        with_(t="45"),
        with_(t=None),
        with_(t=4.5),
        with_(pid=True),
        with_(ab=[]),
        with_(sid="short"),
        with_(sid=7),
        with_(tid=None),
    ],
    ids=lambda text: str(text)[:40],
)
def test_metadata_of_another_maker_is_a_value_that_says_so(metadata: str | None) -> None:
    found = parse_position(9, metadata)
    assert isinstance(found, ForeignPosition)
    assert found.source_next == 9
    assert "isn't Causeway's" in found.why


@pytest.mark.parametrize("field", list(json.loads(POSITION.metadata())))
def test_no_field_may_be_missing(field: str) -> None:
    fields = json.loads(POSITION.metadata())
    del fields[field]
    assert isinstance(parse_position(9, json.dumps(fields)), ForeignPosition)


@pytest.mark.parametrize("version", [0, 2, "1"])
def test_another_version_says_which(version: int | str) -> None:
    assert parse_position(9, with_(v=version)) == ForeignPosition(
        9, f"its format is version {version}, this code knows 1"
    )


def test_fields_that_a_later_version_adds_without_a_new_number_do_no_harm() -> None:
    assert parse_position(107, with_(later="x")) == POSITION


def test_what_was_just_committed_must_be_readable() -> None:
    assert require_position(POSITION) is POSITION
    for found in (None, ForeignPosition(9, "why")):
        with pytest.raises(ProtocolFault, match="must be readable right after its commit"):
            require_position(found)


def test_positions_differ_by_each_field() -> None:
    assert replace(POSITION, aborted_records=10).metadata() != POSITION.metadata()
    assert replace(POSITION, records=10).metadata() != POSITION.metadata()
