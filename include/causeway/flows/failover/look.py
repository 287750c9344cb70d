"""Make the failover sheet: look at both clusters, plan, and put a price on it. Nothing is written."""

from __future__ import annotations

from collections.abc import Mapping

from causeway.core.failover.episodes import closed_by, homecomings
from causeway.core.failover.journal import Journal
from causeway.core.failover.journal_loss import lost_run_remedy, lost_run_words, lost_runs
from causeway.core.failover.place import Place
from causeway.core.failover.plan import plan_failover
from causeway.core.failover.pricing import Mirrored
from causeway.core.failover.sheet import Sheet
from causeway.core.failover.wish import Wish
from causeway.core.flow import Flow
from causeway.core.group_filter import FlowGroups
from causeway.core.identity import TopicPartition
from causeway.core.instants import rfc3339
from causeway.flows.failover.ground import Ground, select_topics, survey
from causeway.flows.failover.homecomings import Closed, Rollbacks
from causeway.flows.failover.logbook import seen_journal
from causeway.flows.failover.losses import find_losses
from causeway.flows.failover.membership import ask_groups, group_facts, refuse_unknown
from causeway.flows.failover.returning import look_at_returning
from causeway.flows.failover.sides import Sides
from causeway.flows.failover.times import find_places
from causeway.flows.log_health import look_at_log

_UNSURE = (
    "groups that came home and haven't committed on the target since are taken for groups that read there, "
    "because nobody can say whether their homecoming was rolled back"
)


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
    journal = await seen_journal(sides, flow.name)
    over = await _over(flow, sides, journal)
    groups = group_facts(members, ground, wish, over.held)
    refuse_unknown(flow, wish, selection, groups)
    places = {} if wish.moment_ms is None else await find_places(sides, ground, wish.moment_ms)
    plan = plan_failover(wish, groups, _mirrored(ground, places))
    fence = state.fence
    health, lost = await look_at_log(flow, sides.target, state), lost_runs(state, journal)
    return Sheet(
        flow=flow.name,
        made_at_ms=sides.network.time_ms(),
        losses=await find_losses(sides, ground, wish) if is_priced else (),
        source_silent=sides.silent,
        fenced="" if fence is None else f"by {fence.by} since {rfc3339(fence.since_ms)}: {fence.because}",
        plan=plan,
        places=places,
        notes=(
            *(f"{line}; until then no failover" for line in health.lines),
            *(f"{lost_run_words(each)}; {lost_run_remedy(flow.name, each)}" for each in lost),
            *((f"{_UNSURE}: {over.unsure}",) if over.unsure else ()),
            *ground.notes,
        ),
        journal=journal.note,
    )


async def _over(flow: Flow, sides: Sides, journal: Journal) -> Closed:
    """What groups held until they went home. With a source that is silent it is where they go on: nobody
    moves them from there. A source that answers, and can't tell of rollbacks, might lead them back."""
    home = homecomings(journal, flow.name)
    back = await sides.of_source(lambda reader: Rollbacks(home, reader).look()) if home else None
    if back is None:
        return Closed(closed_by(journal, flow.name, ()))
    return Closed({} if back.unsure else closed_by(journal, flow.name, back.runs), back.unsure)


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
