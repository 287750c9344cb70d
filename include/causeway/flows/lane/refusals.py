"""What a broker's refusal of one partition means: a reason to stand still, or a passing one."""

from __future__ import annotations

from causeway.core.errors import NotAuthorized
from causeway.core.identity import TopicPartition
from causeway.core.kafka_errors import KafkaErrorCode as Code
from causeway.core.lane_rules import adopt_remedy, not_authorized
from causeway.core.lane_task import Assignment, Parked, ParkReason
from causeway.core.ports import Beaten, Diverged, Doubt, Refused
from causeway.core.rights import Operation, grant_command
from causeway.flows.lane.stream import Sent

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


def append_refusal(assignment: Assignment, sent: Sent, refused: Refused) -> Parked:
    """A batch that the target refuses for its own fault parks its partition; anything else is doubt."""
    pair = assignment.pair
    if refused.code in _BEATEN:
        raise Beaten(f"{pair.target}: {refused}")
    if refused.code == Code.TOPIC_AUTHORIZATION_FAILED:
        return not_authorized(pair.target.topic, Operation.WRITE, "target")
    remedy = FAULT_OF_THE_BATCH.get(Code(refused.code)) if refused.code in FAULT_OF_THE_BATCH else None
    if remedy is None:
        raise Doubt(f"{pair.target}: {refused}")
    return Parked(
        ParkReason.REFUSED,
        f"the batch of {sent.records} records at {pair.source} offset {sent.segments[0][0]} "
        f"({sent.size_bytes} bytes): {refused}",
        remedy.format(topic=pair.target.topic),
    )


def fetch_refusal(
    flow: str, assignment: Assignment, offset: int, refused: Diverged | Refused
) -> Parked | None:
    """None: it passes by itself, the next round tries again."""
    source = assignment.pair.source
    if isinstance(refused, Diverged):
        return _diverged(flow, assignment, offset, refused)
    match refused.code:
        case Code.OFFSET_OUT_OF_RANGE:
            return Parked(
                ParkReason.SOURCE_GAP,
                f"{source} is needed from offset {offset}, {refused.detail or 'which its log lacks'}",
                adopt_remedy(flow, source),
            )
        case Code.UNKNOWN_TOPIC_ID | Code.INCONSISTENT_TOPIC_ID:
            return Parked(
                ParkReason.SOURCE_RECREATED,
                f"{source.topic} no longer has id {assignment.pair.source_topic_id}",
                f"if it was recreated: {adopt_remedy(flow, source)}",
            )
        case Code.TOPIC_AUTHORIZATION_FAILED:
            return not_authorized(source.topic, Operation.READ, "source")
        case _:
            return None


def _diverged(flow: str, assignment: Assignment, offset: int, answer: Diverged) -> Parked:
    source = assignment.pair.source
    return Parked(
        ParkReason.SOURCE_TRUNCATED,
        f"{source} was read to offset {offset}; its log took another turn: "
        f"epoch {answer.epoch} ends at {answer.end}",
        adopt_remedy(flow, source),
    )


def map_refusal(partition: TopicPartition, refused: Refused) -> Exception:
    """Without its map nothing of the lane may be committed: not one partition's trouble but the flow's."""
    if refused.code != Code.TOPIC_AUTHORIZATION_FAILED:
        return Doubt(f"offset map {partition}: {refused}")
    return NotAuthorized(
        f"topic {partition.topic} on the target",
        rule=f"Write is not granted ({refused})",
        remedy=grant_command("User:<the flow's>", Operation.WRITE.word, "topic", partition.topic),
    )
