"""Make the failover sheet: look at both clusters, plan, and put a price on it. Nothing is written."""

from __future__ import annotations

from collections.abc import Mapping

from causeway.core.episode.episodes import closed_by, homecomings
from causeway.core.failback.divergence import is_stand_by
from causeway.core.failover.impact_sheet import Sheet
from causeway.core.failover.plan import plan_failover
from causeway.core.failover.request import FailoverRequest, Mode
from causeway.core.failover.start_impact import Mirrored
from causeway.core.failover.start_offset import StartOffset
from causeway.core.journal.journal import Journal
from causeway.core.journal.loss import lost_run_remedy, lost_run_words, lost_runs
from causeway.core.kernel.errors import BadInput
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.timestamps import rfc3339
from causeway.core.model.flow import Flow
from causeway.core.model.group_filter import FlowGroups
from causeway.core.state.flow_state import FlowState
from causeway.core.state.repair_commands import next_command
from causeway.usecases.failover.group_offsets import group_facts, read_groups, refuse_unknown
from causeway.usecases.failover.losses import find_losses
from causeway.usecases.failover.mirror_state import MirrorState, read_mirror_state, select_topics
from causeway.usecases.failover.moment import find_start_offsets
from causeway.usecases.failover.reverse_map import read_reverse_map
from causeway.usecases.journal.earlier_failbacks import Closed, Rollbacks
from causeway.usecases.journal.store import seen_journal
from causeway.usecases.session.flows_topic_health import read_log_health
from causeway.usecases.session.source_may_be_gone import FlowSession

_UNSURE = (
    "groups that returned to the source and haven't committed on the target since count as groups that read "
    "there, because it isn't known whether their return was rolled back"
)


async def make_sheet(
    flow: Flow,
    sides: FlowSession,
    wish: FailoverRequest,
    selection: FlowGroups,
    *,
    is_fenced: bool = False,
    is_priced: bool = True,
) -> Sheet:
    """`is_priced`: with what would be lost, which has to be counted on the source.

    :raises BadInput: the wish can't be fulfilled; the message says what can.
    """
    turned = await read_reverse_map(flow, sides)
    state = turned.beside(await sides.flow_state(flow, may_be_new=bool(turned.pairs)))
    refuse_resting(flow, wish, state)
    topics, notes = await select_topics(flow, sides, wish, state)
    members = await read_groups(flow, sides, wish, selection, state, topics)
    ground = await read_mirror_state(
        flow, sides, state, topics, (*notes, *members.notes), is_fenced=is_fenced, turned=turned
    )
    journal = await seen_journal(sides, flow.name)
    over = await _over(flow, sides, journal)
    groups = group_facts(members, ground, wish, over.held)
    refuse_unknown(flow, wish, selection, groups)
    places = {} if wish.moment_ms is None else await find_start_offsets(sides, ground, wish.moment_ms)
    plan = plan_failover(wish, groups, _mirrored(ground, places))
    fence, harm = state.fence, await _harm(flow, sides, state, journal)
    return Sheet(
        flow=flow.name,
        made_at_ms=sides.network.time_ms(),
        losses=await find_losses(sides, ground, wish) if is_priced else (),
        source_silent=sides.silent,
        fenced="" if fence is None else f"by {fence.by} since {rfc3339(fence.since_ms)}: {fence.because}",
        plan=plan,
        places=places,
        notes=(*harm, *((f"{_UNSURE}: {over.unsure}",) if over.unsure else ()), *ground.notes),
        journal=journal.note,
    )


async def _harm(flow: Flow, sides: FlowSession, state: FlowState, journal: Journal) -> tuple[str, ...]:
    """Of the topics that Causeway keeps for the flow."""
    health, lost = await read_log_health(flow, sides.target, state), lost_runs(state, journal)
    return (
        *(f"{line}; until then no failover" for line in health.lines),
        *(f"{lost_run_words(each)}; {lost_run_remedy(flow.name, each)}" for each in lost),
    )


def refuse_resting(flow: Flow, wish: FailoverRequest, state: FlowState) -> None:
    """Its groups are on the source: whoever names this flow means the other one."""
    if wish.mode is Mode.HOME or not any(is_stand_by(each.owner) for each in state.standing):
        return
    forward = flow.failback_of or "the other one"
    raise BadInput(
        f"flow {flow.name}",
        rule=f"rests: {forward} mirrors from {flow.target} to {flow.source}, and groups read on "
        f"{flow.target}",
        remedy=f"nothing to move; {next_command(flow.failback_of or flow.name)} says where it is",
    )


async def _over(flow: Flow, sides: FlowSession, journal: Journal) -> Closed:
    """What groups held until they returned. With a source that is silent it is where they go on: nobody
    moves them from there. A source that answers, and whose rollbacks can't be read, might move them back."""
    home = homecomings(journal, flow.name)
    back = await sides.of_source(lambda reader: Rollbacks(home, reader).look()) if home else None
    if back is None:
        return Closed(closed_by(journal, flow.name, ()))
    return Closed({} if back.unsure else closed_by(journal, flow.name, back.runs), back.unsure)


def _mirrored(
    ground: MirrorState, places: Mapping[TopicPartition, StartOffset]
) -> dict[TopicPartition, Mirrored]:
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
