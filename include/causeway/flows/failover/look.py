"""Make the failover sheet: look at both clusters, plan, and put a price on it. Nothing is written."""

from __future__ import annotations

from collections.abc import Mapping

from causeway.core.failover.place import Place
from causeway.core.failover.plan import Mirrored, plan_failover
from causeway.core.failover.sheet import Sheet
from causeway.core.failover.wish import Wish
from causeway.core.flow import Flow
from causeway.core.group_filter import FlowGroups
from causeway.core.identity import TopicPartition
from causeway.core.instants import rfc3339
from causeway.flows.failover.ground import Ground, select_topics, survey
from causeway.flows.failover.losses import find_losses
from causeway.flows.failover.membership import ask_groups, group_facts, refuse_unknown
from causeway.flows.failover.returning import look_at_returning
from causeway.flows.failover.sides import Sides
from causeway.flows.failover.times import find_places


async def make_sheet(
    flow: Flow,
    sides: Sides,
    wish: Wish,
    selection: FlowGroups,
    *,
    is_fenced: bool = False,
    is_priced: bool = True,
) -> Sheet:
    """`is_priced`: with what would be lost, which has to be counted on the source.

    :raises BadInput: the wish can't be fulfilled; the message says what can.
    """
    turned = await look_at_returning(flow, sides)
    state = turned.beside(await sides.flow_state(flow, may_be_new=bool(turned.pairs)))
    topics, notes = await select_topics(flow, sides, wish, state)
    members = await ask_groups(flow, sides, wish, selection, state, topics)
    ground = await survey(
        flow, sides, state, topics, (*notes, *members.notes), is_fenced=is_fenced, turned=turned
    )
    groups = group_facts(members, ground, wish)
    refuse_unknown(flow, wish, selection, groups)
    places = {} if wish.moment_ms is None else await find_places(sides, ground, wish.moment_ms)
    plan = plan_failover(wish, groups, _mirrored(ground, places))
    fence = state.fence
    return Sheet(
        flow=flow.name,
        made_at_ms=sides.network.time_ms(),
        losses=await find_losses(sides, ground, wish) if is_priced else (),
        source_silent=sides.silent,
        fenced="" if fence is None else f"by {fence.by} since {rfc3339(fence.since_ms)}: {fence.because}",
        plan=plan,
        places=places,
        notes=ground.notes,
    )


def _mirrored(ground: Ground, places: Mapping[TopicPartition, Place]) -> dict[TopicPartition, Mirrored]:
    return {
        tp: Mirrored(
            target=tp,
            target_topic_id=ground.topic_ids[tp.topic],
            log_start=partition.log_start,
            end=partition.end,
            runs=partition.runs,
            place=places.get(tp),
        )
        for tp, partition in ground.partitions.items()
    }
