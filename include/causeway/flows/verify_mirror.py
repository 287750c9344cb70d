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

from causeway.core.beginnings import last_beginning
from causeway.core.comparison import VerifyReport
from causeway.core.endpoint import ClusterEndpoint
from causeway.core.errors import ClusterUnreachable
from causeway.core.flow import Flow
from causeway.core.flow_state import FlowState
from causeway.core.identity import SourceOffset, TargetOffset, TopicPartition
from causeway.core.lane_rules import is_covered
from causeway.core.map_comparison import never_crossed
from causeway.core.offset_map import Run, runs_of_topics
from causeway.core.ports import Doubt, Unreachable
from causeway.core.position import Position
from causeway.core.round_plan import PartitionFacts, RoundPlan
from causeway.flows.cleaners import with_cleaners
from causeway.flows.clusters import Clusters, open_clusters, refuse_one_cluster, state_on
from causeway.flows.partition_pair import PartitionPair
from causeway.flows.planning import plan_round, survey_topics
from causeway.flows.quarantine import read_quarantine, without_quarantined
from causeway.flows.runs_of_pairs import read_runs
from causeway.flows.verify import VerifyProgress, verify_flow


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
    with open_clusters(source, target) as clusters:
        refuse_one_cluster(flow, clusters)
        try:
            work = clusters.network.run(
                lambda: _to_compare(flow, clusters, across_failbacks=across_failbacks)
            )
            pairs = work.pairs
            if work.has_quarantine:
                pairs = without_quarantined(pairs, read_quarantine(target, flow.quarantine_topic))
            cleaned = with_cleaners(source, target, pairs)
            pairs = clusters.network.run(lambda: _with_runs(flow, clusters, cleaned.pairs, work))
        except (Unreachable, Doubt) as trouble:
            raise ClusterUnreachable(f"flow {flow.name}", rule=str(trouble), remedy="try again") from trouble
    report = verify_flow(source, target, pairs, ends=work.ends, on_progress=on_progress)
    return replace(
        report,
        parked=work.parked,
        not_begun=work.not_begun,
        notes=(*work.notes, *cleaned.notes),
        rests=work.rests,
    )


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


async def _to_compare(flow: Flow, clusters: Clusters, *, across_failbacks: bool) -> _Work:
    state = await clusters.flow_state(flow)
    ends = await _target_ends(clusters, state)
    rests = await _why_it_rests(flow, clusters, state)
    landscape = await survey_topics(flow, clusters.source, clusters.target, state)
    plan = await plan_round(
        flow, state.generation, clusters.source, clusters.target, landscape, state, state.pairs
    )
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
    runs = await read_runs(flow, clusters.target, pairs)
    return [_with_map(pair, runs[pair.target], work) if pair.needs_the_map else pair for pair in pairs]


def _with_map(pair: PartitionPair, runs: Iterable[Run], work: _Work) -> PartitionPair:
    position = work.standing[pair.source]
    ours = tuple(runs_of_topics((run for run in runs if is_covered(run, position)), position.ids))
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
    told = last_beginning(entries, facts.pair)
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


def _first(runs: list[Run]) -> SourceOffset:
    return min(run.source_first for run in runs)
