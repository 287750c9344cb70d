"""Look at a flow for `status`: from both sides, or, where the source doesn't answer, as the target knows it.

Somebody asks for it when the source is dead. Then the target still says where each partition stands, who
holds the flow and which fences stand. How far the source has got is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping

from causeway.brokers.admin.probe import probe
from causeway.brokers.transport.connection import Wire
from causeway.brokers.wire.log_reader import WireLogReader
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.park_reasons import left_out, topic_is_gone, topic_was_recreated
from causeway.core.copy.ports import OutcomeUnknown, Unreachable
from causeway.core.copy.round_plan import RoundPlan
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import ClusterTrouble, ClusterUnreachable, NotAuthorized
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.model.flow import Flow
from causeway.core.state.flow_state import FlowState
from causeway.core.state.parked import Parked
from causeway.core.topics.plan import TopicPlan
from causeway.usecases.copy.planning import Landscape
from causeway.usecases.inspect.flow_status import FlowView, Silence, inspect, is_resting
from causeway.usecases.inspect.known_on_target import KnownPlace, known_places, places_begun
from causeway.usecases.session.blocking import blocking
from causeway.usecases.session.both_clusters import (
    Clusters,
    refuse_one_cluster,
    refuse_other_clusters,
    refuse_other_target,
    run_at_target,
    state_on,
)
from causeway.usecases.session.flows_topic_health import read_log_health

_PATIENCE_SECONDS = 4.0
"""With a source that may be gone: somebody is waiting."""
_NOTHING_TO_DO = TopicPlan(mirrored=(), to_create=(), to_grow=(), refused=(), notes=())


def inspect_for_status(flow: Flow, source: ClusterEndpoint, target: ClusterEndpoint) -> FlowView:
    """`FlowView.silence` says that, and why, the source didn't answer.

    :raises ClusterTrouble: the target can't be used.
    :raises BadInput: the clusters are one, or not the flow's.
    """

    async def look(log: WireTarget) -> FlowView:
        network = log.wire.network
        began_ms = network.time_ms()
        clusters = Clusters(network, WireLogReader(Wire(source, network)), log)
        try:
            trouble = await _trouble_with(source, clusters)
            view = await _seen_from_both(flow, source, clusters) if trouble is None else trouble
        finally:
            clusters.source.wire.disconnect()
        if isinstance(view, FlowView):
            return view
        silence = Silence(trouble=view, since_ms=began_ms, until_ms=network.time_ms())
        try:
            return await _seen_from_target(flow, log, silence)
        except (Unreachable, OutcomeUnknown) as doubt:
            raise _try_again(flow, doubt) from doubt

    return run_at_target(target, look)


async def _trouble_with(source: ClusterEndpoint, clusters: Clusters) -> ClusterTrouble | None:
    """Why the source can't be asked; None: it can be."""
    try:
        await blocking(lambda: probe(source, timeout_seconds=_PATIENCE_SECONDS))
        await clusters.source.wire.connect()
    except ClusterTrouble as trouble:
        return trouble
    except Unreachable as trouble:
        return ClusterUnreachable(f"cluster {source.alias}", rule=str(trouble), remedy="try again")
    return None


async def _seen_from_both(
    flow: Flow, source: ClusterEndpoint, clusters: Clusters
) -> FlowView | ClusterTrouble:
    """Or why the source couldn't be asked to the end."""
    refuse_one_cluster(flow, clusters)
    try:
        view = await inspect(flow, clusters)
    except (Unreachable, OutcomeUnknown, ClusterUnreachable) as trouble:
        clusters.source.wire.disconnect()
        silent = await _trouble_with(source, clusters)
        if silent is not None:
            return silent
        raise _try_again(flow, trouble) from trouble
    refuse_other_clusters(flow, clusters, view.state)
    return view


def _try_again(flow: Flow, trouble: Exception) -> ClusterUnreachable:
    return ClusterUnreachable(f"flow {flow.name}", rule=str(trouble), remedy="try again")


async def _seen_from_target(flow: Flow, target: WireTarget, silence: Silence) -> FlowView:
    state = await state_on(target, flow.name)
    refuse_other_target(flow, target.wire, state)
    places = await known_places(flow, target, state, places_begun(state))
    rests = is_resting(flow, state)
    parked = {} if rests else await _parked_there(flow, target, state, places)
    seen_by_run = {} if rests or state.parked is None else state.parked.still(_positions(places))
    why = f"{flow.source} doesn't answer"
    return FlowView(
        flow=flow,
        state=state,
        landscape=Landscape(source={}, target={}, topics=_NOTHING_TO_DO, fences=state.standing),
        plan=RoundPlan(tasks=(), partitions=(), parked=parked, later=dict.fromkeys(places, why)),
        to_begin=(),
        parked={**seen_by_run, **parked},
        source_cluster_id=state.source_cluster_id or "",
        target_cluster_id=target.wire.cluster_id,
        transaction_version=target.wire.transaction_version,
        unseen=places,
        silence=silence,
        looked_at_ms=silence.until_ms,
        rests=rests,
        log=await read_log_health(flow, target, state),
        map_is_gone=_has_mirrored(places) and not await _has_map(flow, target),
    )


def _has_mirrored(places: Mapping[TopicPartition, KnownPlace]) -> bool:
    return any(place.position is not None and place.position.records for place in places.values())


async def _has_map(flow: Flow, target: WireTarget) -> bool:
    """A user that may not see it doesn't learn that it is gone."""
    try:
        return bool(await target.map_partitions(flow.map_topic))
    except NotAuthorized:
        return True


def _positions(places: Mapping[TopicPartition, KnownPlace]) -> dict[TopicPartition, object]:
    return {tp: place.position for tp, place in places.items()}


async def _parked_there(
    flow: Flow, target: WireTarget, state: FlowState, places: Mapping[TopicPartition, KnownPlace]
) -> dict[TopicPartition, Parked]:
    """What the target alone can show: mirrors that are gone or were made again, and fenced topics."""
    names = sorted({place.target.topic for place in places.values()})
    topics = await target.wire.topics(names) if names else {}
    parked: dict[TopicPartition, Parked] = {}
    for source, place in places.items():
        mirror, known = topics[place.target.topic], state.pairs[place.target.topic]
        if mirror.error == Code.UNKNOWN_TOPIC_OR_PARTITION:
            parked[source] = topic_is_gone(flow.name, source.topic, mirror.name)
        elif not mirror.error and mirror.topic_id != known.target_topic_id:
            ids = known.target_topic_id, mirror.topic_id
            parked[source] = topic_was_recreated(flow.name, mirror.name, source.topic, *ids)
        elif (fence := state.fence_over(mirror.name)) is not None:
            parked[source] = left_out(flow.name, fence, state.standing)
    return parked
