"""What a broker's refusal of one partition means: parked, doubt, beaten, or only later."""

from collections.abc import Collection

import pytest

from causeway.core.copy.ports import Diverged, LaneFenced, OutcomeUnknown, Refused
from causeway.core.kernel.errors import NotAuthorized
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.state.parked import ParkReason
from causeway.usecases.copy.lane.partition_stream import Sent
from causeway.usecases.copy.lane.refusals import append_refusal, fetch_refusal, is_cut, map_refusal
from tests.support import builders

ASSIGNMENT = builders.assignment(known=False)
SENT = Sent(
    segments=((100, 3), (105, 2)),
    records=5,
    size_bytes=777,
    first_timestamp_ms=0,
    last_timestamp_ms=0,
    repacked_because="",
    source_before=100,
    epoch_before=0,
)
BEATEN = {
    Code.INVALID_PRODUCER_EPOCH,
    Code.PRODUCER_FENCED,
    Code.INVALID_PRODUCER_ID_MAPPING,
    Code.INVALID_TXN_STATE,
}
PARKED = {
    Code.MESSAGE_TOO_LARGE: "max.message.bytes of sf.orders",
    Code.RECORD_LIST_TOO_LARGE: "segment.bytes of sf.orders",
    Code.INVALID_TIMESTAMP: "message.timestamp.after.max.ms / before.max.ms of sf.orders",
    Code.INVALID_RECORD: "cleanup.policy of sf.orders",
    Code.CORRUPT_MESSAGE: "kafka-dump-log.sh on the source",
    Code.UNSUPPORTED_COMPRESSION_TYPE: "newer broker",
    Code.TOPIC_AUTHORIZATION_FAILED: "--operation Write --topic sf.orders",
}
SOURCE_PARKED = {
    Code.OFFSET_OUT_OF_RANGE: ParkReason.SOURCE_GAP,
    Code.UNKNOWN_TOPIC_ID: ParkReason.SOURCE_RECREATED,
    Code.INCONSISTENT_TOPIC_ID: ParkReason.SOURCE_RECREATED,
    Code.TOPIC_AUTHORIZATION_FAILED: ParkReason.NOT_AUTHORIZED,
}
UNKNOWN_CODE = 9_999


def every_code_but(known: Collection[Code]) -> list[int]:
    return [*(code for code in Code if code not in known and code != Code.NONE), UNKNOWN_CODE]


@pytest.mark.parametrize("code", sorted(BEATEN), ids=lambda code: code.name)
def test_who_was_fenced_is_beaten(code: Code) -> None:
    with pytest.raises(LaneFenced, match=f"sf.orders-3: {code.name}"):
        append_refusal(ASSIGNMENT, SENT, Refused(code))


@pytest.mark.parametrize("code", PARKED, ids=lambda code: code.name)
def test_a_batch_at_fault_parks_with_the_remedy(code: Code) -> None:
    parked = append_refusal(ASSIGNMENT, SENT, Refused(code))
    assert PARKED[code] in parked.remedy
    assert "{" not in parked.remedy
    is_right = code == Code.TOPIC_AUTHORIZATION_FAILED
    assert parked.reason is (ParkReason.NOT_AUTHORIZED if is_right else ParkReason.REFUSED)


def test_a_refused_batch_is_named_by_where_it_lies_on_the_source() -> None:
    parked = append_refusal(ASSIGNMENT, SENT, Refused(Code.MESSAGE_TOO_LARGE, "limit 1000"))
    assert parked.facts == (
        "the batch of 5 records at orders-3 offset 100 (777 bytes): MESSAGE_TOO_LARGE (limit 1000)"
    )


def test_whatever_else_an_append_is_refused_for_is_doubt() -> None:
    for code in every_code_but(BEATEN | PARKED.keys()):
        with pytest.raises(OutcomeUnknown, match=r"sf\.orders-3: "):
            append_refusal(ASSIGNMENT, SENT, Refused(code))


@pytest.mark.parametrize("code", SOURCE_PARKED, ids=lambda code: code.name)
def test_what_the_source_will_never_give_parks(code: Code) -> None:
    parked = fetch_refusal("f", ASSIGNMENT, 107, 100, Refused(code, log_start=130, log_end=200))
    assert parked is not None
    assert parked.reason is SOURCE_PARKED[code]
    assert "orders" in parked.facts
    ways_out = ("accept-gap f orders 3 107 130", "restart-topic f orders", "--operation Read --topic orders")
    assert any(way_out in parked.remedy for way_out in ways_out)


def test_a_gap_says_what_is_gone_and_the_command_that_goes_on() -> None:
    told = fetch_refusal("f", ASSIGNMENT, 107, 100, Refused(Code.OFFSET_OUT_OF_RANGE, "", 200, 300))
    assert told is not None
    assert told.facts == (
        "offsets 107 to 199 of orders-3 are gone and were never copied: its log begins at 200; whether they "
        "held records, or only markers (each transaction leaves one), nothing tells any more"
    )
    assert '`causeway accept-gap f orders 3 107 200 --because "..."`' in told.remedy


@pytest.mark.parametrize(
    "answer", [Refused(Code.OFFSET_OUT_OF_RANGE, "", 0, 90), Refused(Code.OFFSET_OUT_OF_RANGE)]
)
def test_a_log_that_ends_before_what_was_asked_for_is_for_the_next_look(answer: Refused) -> None:
    assert fetch_refusal("f", ASSIGNMENT, 107, 100, answer) is None


def test_what_was_read_of_a_log_that_was_cut_since_is_void() -> None:
    assert is_cut(107, Refused(Code.OFFSET_OUT_OF_RANGE, "", 0, 90))
    assert is_cut(107, Diverged(epoch=4, end=90))
    assert not is_cut(107, Refused(Code.OFFSET_OUT_OF_RANGE, "", 200, 300))
    assert not is_cut(107, Refused(Code.NOT_LEADER_OR_FOLLOWER))


def test_every_other_refusal_of_the_source_passes() -> None:
    for code in every_code_but(SOURCE_PARKED):
        assert fetch_refusal("f", ASSIGNMENT, 107, 100, Refused(code)) is None


def test_a_log_that_took_another_turn_parks_if_any_of_it_was_handed_on() -> None:
    parked = fetch_refusal("f", ASSIGNMENT, 107, 100, Diverged(epoch=4, end=90))
    assert parked is not None
    assert parked.reason is ParkReason.SOURCE_TRUNCATED
    assert parked.facts == (
        "offsets 90 to 99 of orders-3 were mirrored and are cut from the source: "
        "its log took another turn: epoch 4 ends at 90"
    )
    assert '`causeway accept-gap f orders 3 90 100 --because "..."`' in parked.remedy
    assert fetch_refusal("f", ASSIGNMENT, 107, 90, Diverged(epoch=4, end=90)) is None


def test_a_map_that_cannot_be_written_is_the_trouble_of_the_whole_flow() -> None:
    partition = TopicPartition("causeway-offset-map.sf.internal", 2)
    denied = map_refusal(partition, Refused(Code.TOPIC_AUTHORIZATION_FAILED))
    assert isinstance(denied, NotAuthorized)
    assert "--operation Write --topic causeway-offset-map.sf.internal" in str(denied)
    for code in every_code_but({Code.TOPIC_AUTHORIZATION_FAILED}):
        assert isinstance(map_refusal(partition, Refused(code)), OutcomeUnknown)
