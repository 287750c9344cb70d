"""Verify a flow: which partitions to compare, from which record on, and how far both must agree.

The target's ends are read first, then positions, quarantine and map: all of them know each record that lies
below those ends, whatever a run copies meanwhile.

The flow's own word says what to compare (its positions) and where it began (the first run of the map, or
where a person set it since). The comparison reads the two logs; where records may be missing on one side, the
offset map says which two belong together, and what it says is compared, never believed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from causeway.core.copy.lane_rules import is_covered
from causeway.core.copy.ports import OutcomeUnknown, Unreachable
from causeway.core.copy.round_plan import PartitionFacts, RoundPlan
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import ClusterUnreachable
from causeway.core.kernel.identity import SourceOffset, TargetOffset, TopicPartition
from causeway.core.model.flow import Flow
from causeway.core.offsets.offset_map import MappedRange, ranges_of_topics
from causeway.core.state.flow_state import FlowState
from causeway.core.state.position import Position
from causeway.core.state.position_ledger import last_manual_position
from causeway.core.verify.map_comparison import never_crossed
from causeway.core.verify.report import VerifyReport
from causeway.usecases.copy.planning import plan_round, survey_topics
from causeway.usecases.copy.round_facts import Memory
from causeway.usecases.session.blocking import blocking
from causeway.usecases.session.both_clusters import Clusters, refuse_one_cluster, run_at_both, state_on
from causeway.usecases.verify.cleaners import with_cleaners
from causeway.usecases.verify.mapped_ranges import read_ranges
from causeway.usecases.verify.partition_pair import PartitionPair
from causeway.usecases.verify.partitions import VerifyProgress, verify_flow
from causeway.usecases.verify.quarantine import read_quarantine, without_quarantined


def verify_mirror(
    flow: Flow,
    source: ClusterEndpoint,
    target: ClusterEndpoint,
    *,
    on_progress: Callable[[VerifyProgress], None],
    across_failbacks: bool = False,
) -> VerifyReport:
    """Everything that the flow says it has mirrored, compared.

    `across_failbacks`: also what was mirrored before the last homecoming, and what it brought back.
    """

    async def look(clusters: Clusters) -> _Work:
        refuse_one_cluster(flow, clusters)
        try:
            return await _with_all(flow, clusters, across_failbacks=across_failbacks)
        except (Unreachable, OutcomeUnknown) as trouble:
            raise ClusterUnreachable(f"flow {flow.name}", rule=str(trouble), remedy="try again") from trouble

    work = run_at_both(source, target, look)
    report = verify_flow(source, target, work.pairs, ends=work.ends, on_progress=on_progress)
    return replace(report, parked=work.parked, not_begun=work.not_begun, notes=work.notes, rests=work.rests)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    pairs: list[PartitionPair]
    standing: dict[TopicPartition, Position]
    """By source partition."""
    state: FlowState
    parked: dict[TopicPartition, str]
    not_begun: int
    notes: tuple[str, ...]
    has_quarantine: bool
    rests: str

    @property
    def ends(self) -> dict[TopicPartition, SourceOffset]:
        return {tp: position.source_next for tp, position in self.standing.items()}


async def _with_all(flow: Flow, clusters: Clusters, *, across_failbacks: bool) -> _Work:
    """What is to be compared, with all that has to be known of it."""
    work = await _to_compare(flow, clusters, across_failbacks=across_failbacks)
    source, target = clusters.source.wire.endpoint, clusters.target.wire.endpoint
    pairs = work.pairs
    if work.has_quarantine:
        set_aside = await blocking(lambda: read_quarantine(target, flow.quarantine_topic))
        pairs = without_quarantined(pairs, set_aside)
    cleaned = await blocking(lambda: with_cleaners(source, target, pairs))
    pairs = await _with_runs(flow, clusters, cleaned.pairs, work)
    return replace(work, pairs=pairs, notes=(*work.notes, *cleaned.notes))


async def _to_compare(flow: Flow, clusters: Clusters, *, across_failbacks: bool) -> _Work:
    state = await clusters.flow_state(flow)
    ends = await _target_ends(clusters, state)
    rests = await _why_it_rests(flow, clusters, state)
    landscape = await survey_topics(flow, clusters.source, clusters.target, state)
    memory = Memory(flow, state, state.pairs, landscape.other_way)
    plan = await plan_round(memory, state.generation, clusters.source, clusters.target, landscape)
    _refuse_unread(state, plan)
    begun = [facts for facts in plan.partitions if facts.standing is not None]
    firsts = await _first_offsets(flow, clusters, state, begun)
    found = {facts.pair.source for facts in begun}
    expected = {
        TopicPartition(topic.source, partition)
        for topic in landscape.topics.mirrored
        for partition in range(topic.partitions)
    }
    parked = {tp: str(why) for tp, why in plan.parked.items() if tp not in found}
    pairs = [_to_compare_of(facts, firsts, state, across_failbacks=across_failbacks) for facts in begun]
    standing = {f.pair.source: f.standing for f in begun if f.standing is not None}
    if rests:
        pairs = [replace(pair, ends_at=standing[pair.source].target_next) for pair in pairs]
    else:
        pairs = [_judged_to(pair, ends, standing[pair.source]) for pair in pairs]
    return _Work(
        pairs=pairs,
        standing=standing,
        state=state,
        rests=rests,
        parked=parked,
        not_begun=len(expected - found - parked.keys()),
        notes=plan.notes,
        has_quarantine=flow.quarantine_topic in landscape.target,
    )


async def _target_ends(clusters: Clusters, state: FlowState) -> dict[TopicPartition, int]:
    """Of all pairs, before positions and map are read."""
    partitions = [
        TopicPartition(name, number)
        for name, pair in state.pairs.items()
        for number in range(pair.partitions)
    ]
    found = await clusters.target.last_stables(partitions) if partitions else {}
    return {tp: end for tp, end in found.items() if isinstance(end, int)}


def _judged_to(pair: PartitionPair, ends: Mapping[TopicPartition, int], position: Position) -> PartitionPair:
    """As far as the position says that the mirror goes, and all that was there before the position was read.
    What of that lies after the position isn't the flow's; what lies further on, a run may have added."""
    end = max(position.target_next, ends.get(pair.target, 0))
    return replace(pair, target_end=TargetOffset(end))


def _refuse_unread(state: FlowState, plan: RoundPlan) -> None:
    """:raises Unreachable: what was begun can't be read now; left out, it would look as if it were equal."""
    waits = {
        tp: why
        for tp, why in plan.later.items()
        if any(
            pair.source_topic == tp.topic and tp.partition < pair.partitions for pair in state.pairs.values()
        )
    }
    if waits:
        raise Unreachable(replace(plan, later=waits).waits)


async def _why_it_rests(flow: Flow, clusters: Clusters, state: FlowState) -> str:
    """By a failover or failback; then others write where it wrote. Empty: it doesn't rest so."""
    fence = next((each for each in state.standing if each.stops_the_flow and each.is_of_a_run), None)
    if fence is None:
        return ""
    other = await state_on(clusters.at_source, flow.opposite) if flow.opposite else None
    if other is not None and other.fence is None and other.generation >= 0:
        return f"{flow.opposite} leads the other way"
    return f"it is fenced {fence}"


async def _with_runs(
    flow: Flow, clusters: Clusters, pairs: Sequence[PartitionPair], work: _Work
) -> list[PartitionPair]:
    """The same pairs, those that can't be compared without it with what the map says of them."""
    runs = await read_ranges(flow, clusters.target, pairs)
    return [_with_map(pair, runs[pair.target], work) if pair.needs_the_map else pair for pair in pairs]


def _with_map(pair: PartitionPair, runs: Iterable[MappedRange], work: _Work) -> PartitionPair:
    position = work.standing[pair.source]
    ours = tuple(ranges_of_topics((run for run in runs if is_covered(run, position)), position.ids))
    homecomings = [
        (entry, int(place.source_next))
        for entry in work.state.set_by_hand.values()
        if entry.is_of_failback
        for place in entry.places
        if (entry.target_topic, place.partition) == (pair.target.topic, pair.target.partition)
        and (entry.source_topic_id, entry.target_topic_id) == position.ids
    ]
    return replace(pair, runs=ours, never_crossed=tuple(never_crossed(ours, homecomings)))


def _to_compare_of(
    facts: PartitionFacts,
    firsts: Mapping[TopicPartition, SourceOffset],
    state: FlowState,
    *,
    across_failbacks: bool,
) -> PartitionPair:
    """From where this flow began with these two topics, or from where somebody set it since."""
    pair = PartitionPair(
        source=facts.pair.source,
        target=facts.pair.target,
        source_topic_id=facts.pair.source_topic_id,
        first_source_offset=firsts.get(facts.pair.target),
    )
    entries = list(state.set_by_hand.values())
    if across_failbacks:
        came_home = any(e.is_of_failback and e.place_of(facts.pair) is not None for e in entries)
        pair = replace(pair, came_home=came_home)
        entries = [entry for entry in entries if not entry.is_of_failback]
    told = last_manual_position(entries, facts.pair)
    if told is None:
        return pair
    entry, place = told
    return replace(
        pair,
        first_source_offset=place.source_next,
        first_target_offset=place.target_next,
        set_by_hand=entry,
    )


async def _first_offsets(
    flow: Flow, clusters: Clusters, state: FlowState, begun: list[PartitionFacts]
) -> dict[TopicPartition, SourceOffset]:
    """Where each pair began, by the flow's state; of pairs from before that was kept, by the first run."""
    starts = {f.pair.target: start.offset for f in begun if (start := state.start_of(f.pair)) is not None}
    begun = [facts for facts in begun if facts.pair.target not in starts]
    if flow.start.at == "earliest" or not begun:
        return starts
    runs = await clusters.target.map_runs(flow.map_topic, [f.pair.target for f in begun])
    ours = {f.pair.target: [run for run in runs[f.pair.target] if run.ids == f.pair.ids] for f in begun}
    return {**starts, **{tp: _first(found) for tp, found in ours.items() if found}}


def _first(runs: list[MappedRange]) -> SourceOffset:
    return min(run.source_first for run in runs)
