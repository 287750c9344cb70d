"""Look at a flow without touching it: what `plan` and `status` show. Nothing is written anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from causeway.brokers.wire.log_reader import LATEST, READ_COMMITTED
from causeway.core.copy.lane_task import PartitionRow
from causeway.core.copy.ports import LogEnd, OutcomeUnknown, Unreachable
from causeway.core.copy.round_plan import RoundPlan
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import ClusterTrouble, ClusterUnreachable, NotAuthorized
from causeway.core.kernel.identity import TopicPartition
from causeway.core.model.flow import Flow
from causeway.core.state.flow_state import FlowState
from causeway.core.state.parked import Parked
from causeway.core.state.start_ledger import StartAt
from causeway.core.topics.topic_choice import refuse_unknown_topics
from causeway.usecases.copy.lane.inspect import LaneInspection
from causeway.usecases.copy.planning import Landscape, plan_round, survey_topics
from causeway.usecases.copy.round_facts import Memory, resolve_start
from causeway.usecases.inspect.known_on_target import KnownPlace, known_places
from causeway.usecases.run_lock.reverse_flow import ReverseFlowReader
from causeway.usecases.session.both_clusters import (
    Clusters,
    refuse_one_cluster,
    refuse_other_clusters,
    run_at_both,
)
from causeway.usecases.session.flows_topic_health import LogHealth, read_log_health


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPartition:
    """A partition whose target topic a run would create first."""

    source: TopicPartition
    target: TopicPartition
    begins: int
    last_stable: int

    @property
    def lag(self) -> int:
        return max(self.last_stable - self.begins, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """The source didn't answer."""

    trouble: ClusterTrouble
    since_ms: int
    """When it was asked first."""
    until_ms: int
    """When that was given up."""

    @property
    def is_refusal(self) -> bool:
        """It did answer, and doesn't let this user in."""
        return not isinstance(self.trouble, ClusterUnreachable)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowView:
    flow: Flow
    state: FlowState
    landscape: Landscape
    plan: RoundPlan
    to_begin: tuple[NewPartition, ...]
    parked: Mapping[TopicPartition, Parked]
    """What is parked or waits: what can be seen now, and what only a run could see and nobody has cured."""
    source_cluster_id: str
    target_cluster_id: str
    transaction_version: int
    log: LogHealth
    map_is_gone: bool
    """Positions tell of mirrored records, and there is no offset map."""
    unseen: Mapping[TopicPartition, KnownPlace] = field(default_factory=dict)
    """By source partition: what the target knows of those whose source couldn't be asked."""
    silence: Silence | None = None
    """Of the whole source."""
    looked_at_ms: int = 0
    rests: bool = False
    """A failover or a failback has closed it, or it is a way back that never had its turn: what a lane would
    find says nothing, and no partition of it is to be set by hand."""


def inspect_flow(
    flow: Flow, source: ClusterEndpoint, target: ClusterEndpoint, only: frozenset[str] | None = None
) -> FlowView:
    """`only`: these source topics; None: all of the flow's.

    :raises ClusterTrouble: | :raises BadInput: the clusters are one, or not the flow's; an unknown topic.
    """

    async def look(clusters: Clusters) -> FlowView:
        refuse_one_cluster(flow, clusters)
        try:
            view = await inspect(flow, clusters, only)
        except (Unreachable, OutcomeUnknown) as trouble:
            raise ClusterUnreachable(f"flow {flow.name}", rule=str(trouble), remedy="try again") from trouble
        refuse_other_clusters(flow, clusters, view.state)
        return view

    return run_at_both(source, target, look)


async def inspect(flow: Flow, clusters: Clusters, only: frozenset[str] | None = None) -> FlowView:
    """With clusters that are known to be the flow's."""
    state = await clusters.flow_state(flow)
    other = await ReverseFlowReader(flow, clusters).look()
    landscape = await survey_topics(flow, clusters.source, clusters.target, state, other, only)
    if only is not None:
        refuse_unknown_topics(flow, only, landscape.topics, landscape.source, landscape.gone)
    if other is not None and other.held:
        notes = (*landscape.topics.notes, f"a run would refuse: {other.held}")
        landscape = replace(landscape, topics=replace(landscape.topics, notes=notes))
    memory = Memory(flow, state, state.pairs, landscape.other_way)
    plan = await plan_round(memory, state.generation, clusters.source, clusters.target, landscape)
    rests = is_resting(flow, state)
    plan = replace(plan, parked={}, later={}) if rests else await _as_lanes_see_it(plan, clusters)
    to_begin, unknown = await _to_begin(flow, clusters, landscape)
    unseen = await known_places(flow, clusters.target, state, _not_told_of(flow, plan))
    return FlowView(
        flow=flow,
        state=state,
        landscape=landscape,
        plan=replace(plan, later={**plan.later, **unknown}),
        to_begin=to_begin,
        parked={} if rests else {**_seen_by_run(state, plan), **plan.parked},
        rests=rests,
        source_cluster_id=clusters.source.wire.cluster_id,
        target_cluster_id=clusters.target.wire.cluster_id,
        transaction_version=clusters.target.wire.transaction_version,
        unseen=unseen,
        looked_at_ms=clusters.network.time_ms(),
        log=await read_log_health(flow, clusters.target, state),
        map_is_gone=await _map_is_gone(flow, clusters, plan),
    )


def as_of(state: FlowState, view: FlowView) -> FlowView:
    """With who holds the flow, and which fences stand, by a later look: two lines of one answer mustn't
    disagree. What rests by then is no more parked than it is to anybody else."""
    rests = is_resting(view.flow, state)
    return replace(view, state=state, rests=rests, parked={} if rests else view.parked)


def is_resting(flow: Flow, state: FlowState) -> bool:
    return state.resting is not None or (flow.failback_of != "" and state.generation < 0)


def _not_told_of(flow: Flow, plan: RoundPlan) -> list[TopicPartition]:
    """Target partitions whose sources did not answer."""
    told = {facts.pair.source for facts in plan.partitions}
    silent = [tp for tp in plan.later if tp not in told]
    return [TopicPartition(flow.naming.target_topic(tp.topic), tp.partition) for tp in silent]


async def _map_is_gone(flow: Flow, clusters: Clusters, plan: RoundPlan) -> bool:
    """A user that may not read it gets none."""
    if not any(facts.standing and facts.standing.records for facts in plan.partitions):
        return False
    try:
        return not await clusters.target.map_partitions(flow.map_topic)
    except NotAuthorized:
        return False


def _seen_by_run(state: FlowState, plan: RoundPlan) -> dict[TopicPartition, Parked]:
    if state.parked is None:
        return {}
    return state.parked.still({facts.pair.source: facts.standing for facts in plan.partitions})


async def _as_lanes_see_it(plan: RoundPlan, clusters: Clusters) -> RoundPlan:
    """With what each lane would find before its claim, and park: it only asks."""
    parked, later = dict(plan.parked), dict(plan.later)
    for task in plan.tasks:
        rows = {
            a.pair.target: PartitionRow(source=a.pair.source, target=a.pair.target) for a in task.assignments
        }
        survey = LaneInspection(task, clusters.source, clusters.target, rows, only_asks=True)
        await survey.look(task.assignments, stable=False)
        parked |= {row.source: row.parked for row in rows.values() if row.parked is not None}
        later |= {row.source: row.later for row in rows.values() if row.later}
    return replace(plan, parked=parked, later=later)


async def _to_begin(
    flow: Flow, clusters: Clusters, landscape: Landscape
) -> tuple[tuple[NewPartition, ...], dict[TopicPartition, str]]:
    """And why others aren't known."""
    new = {topic.name for topic in landscape.topics.to_create}
    pairs = {
        TopicPartition(topic.source, p): TopicPartition(topic.target, p)
        for topic in landscape.topics.mirrored
        if topic.target in new
        for p in range(topic.partitions)
    }
    if not pairs:
        return (), {}
    source = clusters.source
    ends = await source.list_offsets(dict.fromkeys(pairs, LATEST), isolation=READ_COMMITTED)
    log_starts = await source.log_starts(list(pairs))
    starts = await resolve_start(flow, source, list(pairs), ends, log_starts)
    found: list[NewPartition] = []
    unknown: dict[TopicPartition, str] = {}
    for here, there in pairs.items():
        end, start = ends[here], starts[here]
        if isinstance(end, LogEnd) and isinstance(start, StartAt):
            begins = int(start.offset)
            found.append(NewPartition(source=here, target=there, begins=begins, last_stable=end.offset))
        else:
            unknown[here] = f"{here} on {flow.source}: {start if isinstance(end, LogEnd) else end}"
    return tuple(found), unknown
