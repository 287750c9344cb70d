"""Look at a flow without touching it: what `plan` and `status` show. Nothing is written anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from causeway.brokers.log_reader import LATEST, READ_COMMITTED
from causeway.core.endpoint import ClusterEndpoint
from causeway.core.errors import ClusterUnreachable
from causeway.core.flow import Flow
from causeway.core.flow_state import FlowState
from causeway.core.identity import TopicPartition
from causeway.core.lane_task import Parked, PartitionRow
from causeway.core.ports import Doubt, LogEnd, Unreachable
from causeway.core.round_plan import RoundPlan
from causeway.flows.clusters import Clusters, open_clusters, refuse_one_cluster, refuse_other_clusters
from causeway.flows.lane.survey import Survey
from causeway.flows.other_way import OtherDirection
from causeway.flows.planning import Landscape, plan_round, resolve_start, survey_topics


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
class FlowView:
    flow: Flow
    state: FlowState
    landscape: Landscape
    plan: RoundPlan
    to_begin: tuple[NewPartition, ...]
    parked: Mapping[TopicPartition, Parked]
    """What stands still: what can be seen now, and what only a run could see and nobody has cured."""
    source_cluster_id: str
    target_cluster_id: str
    transaction_version: int


def look_at_flow(flow: Flow, source: ClusterEndpoint, target: ClusterEndpoint) -> FlowView:
    """:raises ClusterTrouble: | :raises BadInput: the clusters are one, or not the flow's."""
    with open_clusters(source, target) as clusters:
        refuse_one_cluster(flow, clusters)
        try:
            view = clusters.network.run(lambda: look(flow, clusters))
        except (Unreachable, Doubt) as trouble:
            raise ClusterUnreachable(f"flow {flow.name}", rule=str(trouble), remedy="try again") from trouble
        refuse_other_clusters(flow, clusters, view.state)
        return view


async def look(flow: Flow, clusters: Clusters) -> FlowView:
    """With clusters that are known to be the flow's."""
    state = await clusters.flow_state(flow)
    other = await OtherDirection(flow, clusters).look()
    landscape = await survey_topics(flow, clusters.source, clusters.target, state, other)
    if other is not None and other.held:
        notes = (*landscape.topics.notes, f"a run would refuse: {other.held}")
        landscape = replace(landscape, topics=replace(landscape.topics, notes=notes))
    plan = await plan_round(flow, state.generation, clusters.source, clusters.target, landscape, state.pairs)
    plan = await _as_lanes_see_it(plan, clusters)
    return FlowView(
        flow=flow,
        state=state,
        landscape=landscape,
        plan=plan,
        to_begin=await _to_begin(flow, clusters, landscape),
        parked={**_seen_by_run(state, plan), **plan.parked},
        source_cluster_id=clusters.source.wire.cluster_id,
        target_cluster_id=clusters.target.wire.cluster_id,
        transaction_version=clusters.target.wire.transaction_version,
    )


def _seen_by_run(state: FlowState, plan: RoundPlan) -> dict[TopicPartition, Parked]:
    if state.parked is None:
        return {}
    return state.parked.still({facts.pair.source: facts.position for facts in plan.partitions})


async def _as_lanes_see_it(plan: RoundPlan, clusters: Clusters) -> RoundPlan:
    """With what each lane would find before its claim, and park: it only asks."""
    parked, later = dict(plan.parked), dict(plan.later)
    for task in plan.tasks:
        rows = {
            a.pair.target: PartitionRow(source=a.pair.source, target=a.pair.target) for a in task.assignments
        }
        survey = Survey(task, clusters.source, clusters.target, rows, only_asks=True)
        await survey.look(task.assignments, stable=False)
        parked |= {row.source: row.parked for row in rows.values() if row.parked is not None}
        later |= {row.source: row.later for row in rows.values() if row.later}
    return replace(plan, parked=parked, later=later)


async def _to_begin(flow: Flow, clusters: Clusters, landscape: Landscape) -> tuple[NewPartition, ...]:
    new = {topic.name for topic in landscape.topics.to_create}
    pairs = {
        TopicPartition(topic.source, p): TopicPartition(topic.target, p)
        for topic in landscape.topics.mirrored
        if topic.target in new
        for p in range(topic.partitions)
    }
    if not pairs:
        return ()
    source = clusters.source
    ends = await source.list_offsets(dict.fromkeys(pairs, LATEST), isolation=READ_COMMITTED)
    log_starts = await source.log_starts(list(pairs))
    starts = await resolve_start(flow, source, list(pairs), ends)
    found: list[NewPartition] = []
    for here, there in pairs.items():
        end, log_start = ends[here], log_starts[here]
        if isinstance(end, LogEnd) and isinstance(log_start, int):
            begins = starts[here].offset if here in starts else log_start
            found.append(NewPartition(source=here, target=there, begins=int(begins), last_stable=end.offset))
    return tuple(found)
