"""Accept a gap: a person says that a flow does without offsets that the source has lost.

The range has to be the one that is seen now, to the offset: so nobody accepts more than was looked at. It is
written to the flow's ledger before the position moves; a command that was broken off is repeated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from causeway.core.copy.lane_rules import LostPosition, judge_position, kept_to
from causeway.core.copy.lane_task import Assignment
from causeway.core.copy.ports import EpochEnd, LogEnd, Unreachable
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import BadInput
from causeway.core.kernel.identity import Pair, SourceOffset, TopicPartition
from causeway.core.model.flow import Flow
from causeway.core.model.naming import FLOWS_TOPIC
from causeway.core.offsets.pair_position import where_it_stands
from causeway.core.state.flow_records import gap_record
from causeway.core.state.flow_state import FlowState
from causeway.core.state.gap_ledger import AcceptedGap
from causeway.core.state.gaps import Gap, GapKind, uncopied_gap, unsaid_gap
from causeway.core.state.parked import Parked
from causeway.core.state.position import Position
from causeway.core.state.position_ledger import How
from causeway.core.state.repair_commands import accept_gap_command, adopt_remedy
from causeway.usecases.repair.adopt import Adopted, go_on_at, position_at
from causeway.usecases.repair.asked_partition import pair_at, refuse_of_another_flow
from causeway.usecases.repair.set_positions import Reason, run_command
from causeway.usecases.session.both_clusters import Clusters
from causeway.usecases.session.pair_positions import kept_of, log_ends_beside


@dataclass(frozen=True, slots=True, kw_only=True)
class GapAccepted:
    entry: AcceptedGap
    adopted: Adopted | None
    """None: it had been accepted before, and the partition goes on already."""


def accept_gap(
    flow: Flow,
    source: ClusterEndpoint,
    target: ClusterEndpoint,
    at: TopicPartition,
    first: int,
    end: int,
    reason: Reason,
    *,
    dry_run: bool = False,
) -> GapAccepted:
    """:raises BadInput: that isn't the gap that is seen; nothing is written then."""

    async def work(clusters: Clusters, state: FlowState) -> GapAccepted:
        refuse_of_another_flow(flow, state, at.topic)
        pair = await pair_at(flow, clusters, at)
        position = await _position(flow, clusters, pair, state)
        gap = await find_gap(flow, clusters, pair, position)
        if gap is None or (gap.first, gap.end) != (first, end):
            before = _accepted_before(state, pair, first, end)
            if gap is None and before is not None:
                return GapAccepted(entry=before, adopted=None)
            raise _another_gap(flow, at, (first, end), gap, position)
        entry = AcceptedGap(
            gap=gap,
            target=pair.target,
            source_topic_id=pair.source_topic_id,
            by=reason.by,
            because=reason.because,
            at_ms=clusters.network.time_ms(),
        )
        beginning = await position_at(flow, clusters, at, gap.goes_on_at, epoch=gap.epoch)
        beginning = replace(beginning, records=position.records, aborted_records=position.aborted_records)
        if not dry_run:
            await _write(flow, clusters, entry)
        how: How | None = "accept-gap" if gap.kind is GapKind.UNSAID else None
        adopted = await go_on_at(flow, clusters, target, state, beginning, reason, how=how, dry_run=dry_run)
        return GapAccepted(entry=entry, adopted=adopted)

    return run_command(flow, source, target, f"gap of {at}", work)


async def _write(flow: Flow, clusters: Clusters, entry: AcceptedGap) -> None:
    key, value = gap_record(flow.name, entry)
    await clusters.target.append_plain(FLOWS_TOPIC, key, value)


def _accepted_before(state: FlowState, pair: Pair, first: int, end: int) -> AcceptedGap | None:
    wanted = pair.target, pair.source_topic_id, first, end
    for entry in state.gaps.values():
        if (entry.target, entry.source_topic_id, entry.gap.first, entry.gap.end) == wanted:
            return entry
    return None


def _another_gap(
    flow: Flow, at: TopicPartition, asked: tuple[int, int], gap: Gap | None, position: Position
) -> BadInput:
    if gap is None:
        return BadInput(
            f"gap of {at}",
            value=f"{asked[0]} {asked[1]}",
            rule=f"none is seen: the source has all from {position.source_next} on, where the mirror stands",
            remedy="nothing to accept",
        )
    return BadInput(
        f"gap of {at}",
        value=f"{asked[0]} {asked[1]}",
        rule=f"must be the gap that is seen, offsets {gap.first} to {gap.end - 1} ({gap.kind}): "
        f"FROM {gap.first}, TO {gap.end}",
        remedy=accept_gap_command(flow.name, at, gap.first, gap.end),
    )


async def _position(flow: Flow, clusters: Clusters, pair: Pair, state: FlowState) -> Position:
    """As a lane has it, also where the committed offset has expired.

    :raises BadInput: no position of ours, or one about other topics: that is no gap.
    """
    begun = state.pairs.get(pair.target.topic)
    assignment = _assignment(pair, begun.adopted_at_of(pair.target.partition) if begun else -1)
    found = (await clusters.target.positions(flow.group, [pair.target], stable=True))[pair.target]
    verdict = judge_position(flow.name, assignment, found)
    if isinstance(verdict, Position):
        return verdict
    if isinstance(verdict, LostPosition):
        known = (await clusters.target.map_of(flow.map_topic, [pair.target]))[pair.target]
        kept = kept_of(state, pair, known)
        ends = await log_ends_beside(clusters.target, {pair.target: kept})
        if (stood := where_it_stands(pair, kept, ends.get(pair.target))) is not None:
            return stood
    facts = verdict if isinstance(verdict, Parked) else f"the flow has no position of {pair.target}"
    raise BadInput(f"gap of {pair.source}", rule=str(facts), remedy="that is no gap that could be accepted")


async def find_gap(flow: Flow, clusters: Clusters, pair: Pair, position: Position) -> Gap | None:
    """What the source lacks of what the position needs, or got; by the rules that a lane goes by."""
    source, tp, epoch = clusters.source, pair.source, position.source_epoch
    start, end = (await source.log_starts([tp]))[tp], (await source.log_ends([tp]))[tp]
    if not isinstance(start, int) or not isinstance(end, LogEnd):
        raise Unreachable(f"offsets of {tp}: {start if not isinstance(start, int) else end}")
    shared = end
    if epoch >= 0:
        told = (await source.epoch_ends({tp: epoch}))[tp]
        if not isinstance(told, EpochEnd):
            raise Unreachable(f"leader epochs of {tp}: {told}")
        runs = []
        if 0 <= told.epoch < epoch:
            runs = (await clusters.target.map_runs(flow.map_topic, [pair.target]))[pair.target]
        shared = LogEnd(kept_to(runs, _assignment(pair), position, told), told.epoch)
    if shared.offset < 0:
        raise BadInput(
            f"gap of {tp}",
            rule=f"the source no longer knows leader epoch {epoch}: where its log turned isn't known",
            remedy=adopt_remedy(flow.name, tp),
        )
    kept = min(shared.offset, end.offset)
    cut = unsaid_gap(tp, position.source_next, kept, log_start=start, epoch=shared.leader_epoch)
    return cut or uncopied_gap(tp, position.source_next, start)


def _assignment(pair: Pair, adopted_at: int = -1) -> Assignment:
    return Assignment(pair=pair, end=SourceOffset(0), start=None, known=True, adopted_at=adopted_at)
