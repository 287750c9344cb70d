"""Why a lane parks a partition, in its words: each reason with what was seen and the command that goes on."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from causeway.core.copy.lane_task import Assignment
from causeway.core.copy.ports import Refused
from causeway.core.kernel.acl_vocabulary import Operation, Side, grant_command
from causeway.core.kernel.identity import Pair, TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode
from causeway.core.records.batches import BatchHead, OversizedBatch
from causeway.core.state.fences import Fence
from causeway.core.state.parked import Parked, ParkReason
from causeway.core.state.repair_commands import (
    adopt_command,
    adopt_remedy,
    lift_commands,
    reconcile_remedy,
    restart_remedy,
)


def tail_unmapped(flow: str, assignment: Assignment, target_next: int, end: int) -> Parked:
    pair = assignment.pair
    return Parked(
        ParkReason.TARGET_TAIL_UNMAPPED,
        f"{pair.target} was written to offset {target_next} and now ends at {end}",
        reconcile_remedy(flow, pair.source),
    )


def tail_unproved(flow: str, assignment: Assignment, target_next: int, cause: str) -> Parked:
    pair = assignment.pair
    return Parked(
        ParkReason.TARGET_TAIL_UNPROVED,
        f"this flow's own records on {pair.target} from offset {target_next} on aren't shown to be those of "
        f"{pair.source}: {cause}",
        f"look at both with kafka-dump-log.sh, then {reconcile_remedy(flow, pair.source)}",
    )


def shown_again(flow: str, assignment: Assignment, offset: int) -> Parked:
    """Two unclean elections: the first lost a marker, so records were aborted and copied again; the second
    lost the abort and the copies."""
    return tail_unproved(
        flow,
        assignment,
        offset,
        "they had been aborted and copied again, and an unclean election of the target has brought them back",
    )


def position_lost(flow: str, assignment: Assignment) -> Parked:
    pair = assignment.pair
    if assignment.opposite is not None:
        return not_adopted(flow, assignment)
    return Parked(
        ParkReason.POSITION_LOST,
        f"group causeway.{flow} has no offset for {pair.target}, and neither the offset map nor the flow's "
        "state knows where it stood, though the flow has begun with it before",
        reconcile_remedy(flow, pair.source),
    )


def oversized(
    flow: str, pair: Pair, head: BatchHead, reasons: Sequence[str], found: OversizedBatch
) -> Parked:
    """It can't cross as it is for these reasons, and holds more than is taken apart; that isn't damage."""
    why = " and ".join(reasons) or "the target broke down over it"
    settings = [_CURED_BY_SETTING[reason] for reason in reasons if reason in _CURED_BY_SETTING]
    if reasons and len(settings) == len(reasons):
        remedy = "; ".join(settings).format(topic=pair.target.topic) + ": then it crosses as it is"
    else:
        remedy = (
            f"write its records again in smaller batches, if they are wanted; then "
            f"{adopt_command(flow, pair.source, head.next_offset)} goes on after this one"
        )
    return Parked(
        ParkReason.SOURCE_OVERSIZED,
        f"the batch at {pair.source} offset {head.base_offset} has to be taken apart ({why}), and its "
        f"{found.size_bytes:,} bytes are more than {found.limit_bytes:,} bytes decompressed, the most that a "
        "worker makes room for",
        remedy,
    )


def foreign_data(flow: str, assignment: Assignment, offset: int, *, had_position: bool) -> Parked:
    pair = assignment.pair
    remedy = reconcile_remedy(flow, pair.source)
    if had_position:
        return Parked(
            ParkReason.FOREIGN_WRITER,
            f"{pair.target} holds a record at offset {offset} that this flow didn't write",
            f"take the WRITE right from whoever did (nobody else may write a mirror), then {remedy}",
        )
    return Parked(
        ParkReason.FOREIGN_DATA,
        f"{pair.target} already holds records (first at offset {offset}), this flow has no position there",
        f"empty or rename the topic, or {remedy}, if it holds this source's records; else "
        f"{adopt_remedy(flow, pair.source)}",
    )


def not_authorized(topic: str, operation: Operation, side: Side) -> Parked:
    return Parked(
        ParkReason.NOT_AUTHORIZED,
        f"{operation.word} on topic {topic} of the {side} is not granted",
        grant_command("User:<the flow's>", operation.word, "topic", topic),
    )


def refusal_of_rights(topic: str, side: Side, refused: object) -> Parked | None:
    """Set if it is a reading right that is missing; nothing but a grant cures that."""
    if isinstance(refused, Refused) and refused.code == KafkaErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return not_authorized(topic, Operation.READ, side)
    return None


def not_adopted(flow: str, assignment: Assignment) -> Parked:
    pair, opposite = assignment.pair, assignment.opposite
    assert opposite is not None
    return Parked(
        ParkReason.NOT_ADOPTED,
        f"flow {flow} has no position for {pair.target}, and begins nowhere by itself where flow "
        f"{opposite.flow} leads the other way: records would come back",
        adopt_remedy(flow, pair.source),
    )


def target_recreated(flow: str, assignment: Assignment, old_id: UUID) -> Parked:
    pair = assignment.pair
    return Parked(
        ParkReason.TARGET_RECREATED,
        f"{pair.target.topic} had id {old_id} when it was last written and has {pair.target_topic_id}",
        restart_remedy(flow, pair.source.topic),
    )


_CURED_BY_SETTING = {
    "codec": "set compression.type of {topic} on the target to producer",
    "split": "raise max.message.bytes of {topic} on the target",
}
"""Why a batch is taken apart, and what makes that needless."""


def topic_is_gone(flow: str, source_topic: str, target_topic: str) -> Parked:
    return Parked(
        ParkReason.TARGET_RECREATED,
        f"{target_topic} was written by this flow and isn't there any more",
        f"restore it, or {restart_remedy(flow, source_topic)}",
    )


def source_is_gone(flow: str, source_topic: str, target_topic: str) -> Parked:
    return Parked(
        ParkReason.SOURCE_DELETED,
        f"{source_topic} was mirrored to {target_topic} and isn't on the source any more; the mirror stays",
        f"{restart_remedy(flow, source_topic)} if it comes again, and ends the matter if it doesn't; "
        "or leave it out of the flow's topics",
    )


def topic_was_recreated(flow: str, what: str, source_topic: str, old: object, new: object) -> Parked:
    reason = ParkReason.SOURCE_RECREATED if what == source_topic else ParkReason.TARGET_RECREATED
    return Parked(
        reason,
        f"{what} had id {old} when this flow began with it and has {new}",
        restart_remedy(flow, source_topic),
    )


def is_of_other_flow(flow: str, other: str, source: TopicPartition, target: TopicPartition) -> Parked:
    """The flow was renamed, or two flows want the same mirror."""
    return Parked(
        ParkReason.OTHER_FLOW,
        f"flow {other} has mirrored {source.topic} to {target.topic}, flow {flow} hasn't",
        f"call the flow {other} again, or, if it was renamed, {reconcile_remedy(flow, source)} from where "
        f"{other} ended, which is fenced permanently; or give the mirror another name",
    )


def left_out(flow: str, fence: Fence, standing: Sequence[Fence]) -> Parked:
    """By a fence whose scope is topics."""
    command = next(c for f, c in zip(standing, lift_commands(flow, standing), strict=True) if f is fence)
    return Parked(ParkReason.FENCED, f"fenced {fence}", f"{command} lets it go on")
