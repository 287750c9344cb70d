"""Look at a flow without touching it: what `plan` and `status` show. Nothing is written anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from causeway.brokers.log_reader import LATEST, READ_COMMITTED
from causeway.core.endpoint import ClusterEndpoint
from causeway.core.errors import ClusterTrouble, ClusterUnreachable, NotAuthorized
from causeway.core.flow import Flow
from causeway.core.flow_state import FlowState
from causeway.core.identity import TopicPartition
from causeway.core.lane_task import Parked, PartitionRow
from causeway.core.ports import Doubt, LogEnd, Unreachable
from causeway.core.round_plan import RoundPlan
from causeway.core.start_ledger import StartAt
from causeway.core.topic_choice import refuse_unknown_topics
from causeway.flows.clusters import Clusters, open_clusters, refuse_one_cluster, refuse_other_clusters
from causeway.flows.known_places import KnownPlace, known_places
from causeway.flows.lane.survey import Survey
from causeway.flows.log_health import LogHealth, look_at_log
from causeway.flows.other_way import OtherDirection
from causeway.flows.planning import Landscape, plan_round, survey_topics
from causeway.flows.round_facts import resolve_start


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
    """What stands still: what can be seen now, and what only a run could see and nobody has cured."""
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


def look_at_flow(
    flow: Flow, source: ClusterEndpoint, target: ClusterEndpoint, only: frozenset[str] | None = None
) -> FlowView:
    """`only`: these source topics; None: all of the flow's.

    :raises ClusterTrouble: | :raises BadInput: the clusters are one, or not the flow's; an unknown topic.
    """
    with open_clusters(source, target) as clusters:
        refuse_one_cluster(flow, clusters)
        try:
            view = clusters.network.run(lambda: look(flow, clusters, only))
        except (Unreachable, Doubt) as trouble:
            raise ClusterUnreachable(f"flow {flow.name}", rule=str(trouble), remedy="try again") from trouble
        refuse_other_clusters(flow, clusters, view.state)
        return view


async def look(flow: Flow, clusters: Clusters, only: frozenset[str] | None = None) -> FlowView:
    """With clusters that are known to be the flow's."""
    state = await clusters.flow_state(flow)
    other = await OtherDirection(flow, clusters).look()
    landscape = await survey_topics(flow, clusters.source, clusters.target, state, other, only)
    if only is not None:
        refuse_unknown_topics(flow, only, landscape.topics, landscape.source, landscape.gone)
    if other is not None and other.held:
        notes = (*landscape.topics.notes, f"a run would refuse: {other.held}")
        landscape = replace(landscape, topics=replace(landscape.topics, notes=notes))
    plan = await plan_round(
        flow, state.generation, clusters.source, clusters.target, landscape, state, state.pairs
    )
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
        log=await look_at_log(flow, clusters.target, state),
        map_is_gone=await _map_is_gone(flow, clusters, plan),
    )


def is_resting(flow: Flow, state: FlowState) -> bool:
    return state.resting is not None or (flow.failback_of != "" and state.generation < 0)


def _not_told_of(flow: Flow, plan: RoundPlan) -> list[TopicPartition]:
    """Target partitions whose sources said nothing."""
    told = {facts.pair.source for facts in plan.partitions}
    silent = [tp for tp in plan.later if tp not in told]
    return [TopicPartition(flow.naming.target_topic(tp.topic), tp.partition) for tp in silent]


async def _map_is_gone(flow: Flow, clusters: Clusters, plan: RoundPlan) -> bool:
    """Who may not read it isn't told."""
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
        survey = Survey(task, clusters.source, clusters.target, rows, only_asks=True)
        await survey.look(task.assignments, stable=False)
        parked |= {row.source: row.parked for row in rows.values() if row.parked is not None}
        later |= {row.source: row.later for row in rows.values() if row.later}
    return replace(plan, parked=parked, later=later)


async def _to_begin(
    flow: Flow, clusters: Clusters, landscape: Landscape
) -> tuple[tuple[NewPartition, ...], dict[TopicPartition, str]]:
    """And why others can't be told of."""
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
