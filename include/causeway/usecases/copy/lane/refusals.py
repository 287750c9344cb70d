"""What a broker's refusal of one partition means: a reason to park, or a passing one."""

from __future__ import annotations

from causeway.core.copy.lane_task import Assignment, LaneTask
from causeway.core.copy.park_reasons import not_authorized
from causeway.core.copy.ports import Diverged, LaneFenced, OutcomeUnknown, Refused
from causeway.core.copy.target_limits import (
    LimitRaise,
    RefusedBatch,
    TargetLimits,
    answer_refusal,
    unexplained,
)
from causeway.core.kernel.acl_vocabulary import Operation, grant_command
from causeway.core.kernel.errors import NotAuthorized, UnfitTarget
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.state.gaps import gap_parked, uncopied_gap, unsaid_gap
from causeway.core.state.parked import Parked, ParkReason
from causeway.core.state.repair_commands import restart_remedy
from causeway.usecases.copy.lane.partition_stream import PartitionStream, Sent

_BEATEN = {
    Code.INVALID_PRODUCER_EPOCH,
    Code.PRODUCER_FENCED,
    Code.INVALID_PRODUCER_ID_MAPPING,
    Code.INVALID_TXN_STATE,
}
FAULT_OF_THE_BATCH = {
    Code.MESSAGE_TOO_LARGE: "raise max.message.bytes of {topic} on the target",
    Code.RECORD_LIST_TOO_LARGE: "raise max.message.bytes and segment.bytes of {topic} on the target",
    Code.INVALID_TIMESTAMP: "raise message.timestamp.after.max.ms / before.max.ms of {topic} on the target",
    Code.INVALID_RECORD: "a compacted topic takes no records without a key: change cleanup.policy of {topic}",
    Code.CORRUPT_MESSAGE: "look at the batch with kafka-dump-log.sh on the source",
    Code.UNSUPPORTED_COMPRESSION_TYPE: "the target can't read this codec: use a newer broker",
}


def take_refusal(task: LaneTask, stream: PartitionStream, sent: Sent, refused: Refused, now_ms: int) -> None:
    """Nothing of the batch was appended. The next round tries it in another way, or its partition parks."""
    if refused.code == Code.NOT_ENOUGH_REPLICAS:  # the others go on
        stream.held_up(sent, f"{stream.target}: {refused}")
        return
    stream.row.demands = unexplained(refused.code, stream.demands)
    batch = RefusedBatch(
        code=refused.code,
        segments=sent.segments,
        size_bytes=sent.size_bytes,
        last_timestamp_ms=sent.last_timestamp_ms,
        is_joined=sent.is_joined,
        at_fault=refused.at_fault,
    )
    match answer_refusal(batch, stream.demands, task.on_refused, now_ms=now_ms):
        case TargetLimits() as demands:
            stream.row.demands = demands
        case LimitRaise() as limit:
            stream.row.wanted_limit = limit
        case None:
            stream.refused(sent, append_refusal(stream.assignment, sent, refused))
            return
    stream.held_up(sent, f"{stream.target}: {refused}")


def append_refusal(assignment: Assignment, sent: Sent, refused: Refused) -> Parked:
    """A batch that the target refuses for its own fault parks its partition; anything else is doubt."""
    pair = assignment.pair
    if refused.code in _BEATEN:
        raise LaneFenced(f"{pair.target}: {refused}")
    if refused.code == Code.TOPIC_AUTHORIZATION_FAILED:
        return not_authorized(pair.target.topic, Operation.WRITE, "target")
    remedy = FAULT_OF_THE_BATCH.get(Code(refused.code)) if refused.code in FAULT_OF_THE_BATCH else None
    if remedy is None:
        raise OutcomeUnknown(f"{pair.target}: {refused}")
    records = f"{sent.records} records" if sent.records > 1 else "one record"
    tried = assignment.demands.cannot_raise
    return Parked(
        ParkReason.REFUSED,
        f"the batch of {records} at {pair.source} offset {sent.segments[0][0]} "
        f"({sent.size_bytes} bytes): {refused}" + (f"; {tried}" if tried else ""),
        remedy.format(topic=pair.target.topic),
    )


def is_cut(offset: int, answer: Diverged | Refused) -> bool:
    """Whether the source's log isn't any more what was read up to `offset`: what isn't handed on is void."""
    return isinstance(answer, Diverged) or 0 <= answer.log_end < offset


def fetch_refusal(
    flow: str, assignment: Assignment, offset: int, handed_on: int, refused: Diverged | Refused
) -> Parked | None:
    """None: it passes by itself, or the next round's look says what it is; the next round tries again.

    `offset` was asked for; up to `handed_on` records were given to the target.
    """
    source = assignment.pair.source
    if isinstance(refused, Diverged):
        return _diverged(flow, source, handed_on, refused)
    match refused.code:
        case Code.OFFSET_OUT_OF_RANGE:
            gap = uncopied_gap(source, offset, refused.log_start)
            return gap_parked(flow, gap, f"its log begins at {refused.log_start}") if gap else None
        case Code.UNKNOWN_TOPIC_ID | Code.INCONSISTENT_TOPIC_ID:
            return Parked(
                ParkReason.SOURCE_RECREATED,
                f"{source.topic} no longer has id {assignment.pair.source_topic_id}: it was deleted, "
                "and perhaps made again",
                restart_remedy(flow, source.topic),
            )
        case Code.TOPIC_AUTHORIZATION_FAILED:
            return not_authorized(source.topic, Operation.READ, "source")
        case _:
            return None


def _diverged(flow: str, source: TopicPartition, handed_on: int, answer: Diverged) -> Parked | None:
    """What was read and not handed on is forgotten: no harm was done, it is read again as it is now."""
    gap = unsaid_gap(source, handed_on, answer.end)
    if gap is None:
        return None
    return gap_parked(flow, gap, f"its log took another turn: epoch {answer.epoch} ends at {answer.end}")


def quarantine_refusal(partition: TopicPartition, refused: Refused) -> Exception:
    """What can't even go there: nothing of the lane is committed, and nothing is lost."""
    if refused.code in FAULT_OF_THE_BATCH:
        return UnfitTarget(
            f"topic {partition.topic} on the target",
            rule=f"doesn't take a record that was held out: {refused}",
            remedy=FAULT_OF_THE_BATCH[Code(refused.code)].format(topic=partition.topic),
        )
    return map_refusal(partition, refused)


def map_refusal(partition: TopicPartition, refused: Refused) -> Exception:
    """Without its map nothing of the lane may be committed: not one partition's trouble but the flow's."""
    if refused.code != Code.TOPIC_AUTHORIZATION_FAILED:
        return OutcomeUnknown(f"{partition}: {refused}", refused.code)
    return NotAuthorized(
        f"topic {partition.topic} on the target",
        rule=f"Write is not granted ({refused})",
        remedy=grant_command("User:<the flow's>", Operation.WRITE.word, "topic", partition.topic),
    )
