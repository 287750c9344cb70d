"""Failover sheets of any length: a topic's loss, a group's move, and the sheet of both."""

from __future__ import annotations

from uuid import UUID

from causeway.core.failover.impact_sheet import Loss, Sheet
from causeway.core.failover.plan import FailoverPlan, LeftAlone, Move
from causeway.core.failover.request import FailoverRequest
from causeway.core.kernel.estimate import exact, unknown
from causeway.core.kernel.identity import TargetOffset, TopicPartition

UNKNOWN_TOPIC, UNKNOWN_GROUP = "t-170", "g-390"


def loss(number: int) -> Loss:
    name = f"t-{number:03}"
    records = unknown("no position") if name == UNKNOWN_TOPIC else exact(number)
    return Loss(
        source=TopicPartition(name, 0),
        target=TopicPartition(f"sf.{name}", 0),
        records=records,
        size_bytes=records,
        seconds=records,
        mirrored_until_ms=None,
    )


def move(number: int) -> Move:
    group = f"g-{number:03}"
    skips = {UNKNOWN_GROUP: unknown("nobody knows it"), "g-005": exact(700)}.get(group, exact(0))
    return Move(
        group=group,
        target=TopicPartition("sf.t-000", 0),
        before=None,
        after=TargetOffset(41),
        rereads=exact(number),
        skips=skips,
    )


def sheet_of(losses: tuple[Loss, ...], moves: tuple[Move, ...], *left: LeftAlone) -> Sheet:
    plan = FailoverPlan(
        wish=FailoverRequest(flow="sf_to_nyc", at_ms=None),
        moves=moves,
        left_alone=left,
        topic_ids={"sf.t-000": UUID(int=2)},
    )
    return Sheet(
        flow="sf_to_nyc",
        made_at_ms=1_763_438_600_000,
        source_silent="",
        fenced="",
        losses=losses,
        plan=plan,
        places={},
    )
