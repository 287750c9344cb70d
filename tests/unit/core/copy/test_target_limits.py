"""What a refusal leads to: smaller batches first, then the flow's policy; never the same try for ever."""

from collections.abc import Sequence

import pytest

from causeway.core.copy.target_limits import (
    LimitRaise,
    RefusedBatch,
    TargetLimits,
    answer_refusal,
    codec_wanted,
)
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.model.flow import RefusedPolicy
from causeway.core.records.compression import Codec

PARK, RAISE, QUARANTINE = RefusedPolicy
NOW_MS = 1_700_000_000_000
AT_FAULT = (Code.MESSAGE_TOO_LARGE, Code.RECORD_LIST_TOO_LARGE, Code.INVALID_TIMESTAMP, Code.INVALID_RECORD)


def refused(
    code: int,
    *,
    segments: tuple[tuple[int, int], ...] = ((100, 1),),
    size_bytes: int = 5_000,
    joined: bool = False,
    at_fault: Sequence[int] = (),
    last_ms: int = 0,
) -> RefusedBatch:
    return RefusedBatch(
        code=code,
        segments=segments,
        size_bytes=size_bytes,
        last_timestamp_ms=last_ms,
        is_joined=joined,
        at_fault=at_fault,
    )


def answer(
    policy: RefusedPolicy, batch: RefusedBatch, demands: TargetLimits | None = None
) -> TargetLimits | LimitRaise | None:
    return answer_refusal(batch, demands or TargetLimits(), policy, now_ms=NOW_MS)


@pytest.mark.parametrize("policy", RefusedPolicy)
@pytest.mark.parametrize("code", AT_FAULT)
def test_what_was_joined_travels_one_by_one_first(policy: RefusedPolicy, code: int) -> None:
    batch = refused(code, segments=((100, 3),), joined=True, at_fault=(1,))
    assert answer(policy, batch) == TargetLimits(may_join=False)


@pytest.mark.parametrize("policy", RefusedPolicy)
def test_what_is_too_big_is_halved_until_it_is_one_record(policy: RefusedPolicy) -> None:
    demands, size, rounds = TargetLimits(codec=Codec.LZ4), 1 << 20, 0
    while size > 200:
        batch = refused(Code.MESSAGE_TOO_LARGE, segments=((100, 900),), size_bytes=size)
        answered = answer(policy, batch, demands)
        assert isinstance(answered, TargetLimits)
        assert answered == TargetLimits(codec=Codec.LZ4, largest_bytes=size // 2)
        demands, size, rounds = answered, size // 2, rounds + 1
    assert rounds < 20


@pytest.mark.parametrize("code", AT_FAULT)
def test_one_record_parks_by_default(code: Code) -> None:
    assert answer(PARK, refused(code, at_fault=(0,))) is None


@pytest.mark.parametrize("policy", RefusedPolicy)
@pytest.mark.parametrize(
    "code", [Code.CORRUPT_MESSAGE, Code.UNSUPPORTED_COMPRESSION_TYPE, Code.NOT_LEADER_OR_FOLLOWER, 9_999]
)
def test_no_policy_is_asked_about_anything_else(policy: RefusedPolicy, code: int) -> None:
    assert answer(policy, refused(code, at_fault=(0,))) is None


def test_a_limit_is_raised_as_far_as_one_record_needs() -> None:
    assert answer(RAISE, refused(Code.MESSAGE_TOO_LARGE)) == LimitRaise("max.message.bytes", 6_144)
    assert answer(RAISE, refused(Code.RECORD_LIST_TOO_LARGE)) == LimitRaise("segment.bytes", 6_144)
    early = refused(Code.INVALID_TIMESTAMP, last_ms=NOW_MS - 1, at_fault=(0,))
    late = refused(Code.INVALID_TIMESTAMP, last_ms=NOW_MS + 1, at_fault=(0,))
    assert answer(RAISE, early) == LimitRaise("message.timestamp.before.max.ms", 2**63 - 1)
    assert answer(RAISE, late) == LimitRaise("message.timestamp.after.max.ms", 2**63 - 1)


def test_where_no_limit_helps_or_it_could_not_be_raised_the_partition_parks() -> None:
    assert answer(RAISE, refused(Code.INVALID_RECORD, at_fault=(0,))) is None
    tried = TargetLimits(cannot_raise="max.message.bytes can't be raised: no right")
    assert answer(RAISE, refused(Code.MESSAGE_TOO_LARGE), tried) is None


def test_quarantine_takes_what_the_broker_named_and_nothing_else() -> None:
    batch = refused(Code.INVALID_RECORD, segments=((100, 2), (110, 3)), at_fault=(1, 2, 99))
    why = "no key on a compacted topic"
    before = TargetLimits(held_out={7: "too large"}, largest_bytes=9)
    assert answer(QUARANTINE, batch, before) == TargetLimits(
        held_out={7: "too large", 101: why, 110: why}, largest_bytes=9
    )
    assert answer(QUARANTINE, refused(Code.MESSAGE_TOO_LARGE)) == TargetLimits(held_out={100: "too large"})


@pytest.mark.parametrize("code", [Code.INVALID_RECORD, Code.INVALID_TIMESTAMP])
def test_what_the_broker_did_not_name_is_nobodys_guess(code: Code) -> None:
    assert answer(QUARANTINE, refused(code)) is None


def test_the_codec_of_a_topic_is_read_from_its_setting() -> None:
    assert [codec_wanted(text) for text in ("producer", None, "uncompressed", "zstd")] == [
        None,
        None,
        Codec.NONE,
        Codec.ZSTD,
    ]
