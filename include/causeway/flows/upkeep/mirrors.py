"""Which mirrors a flow may keep up: those that it has begun with, and that are still the same topics.

Names alone don't say whose a topic is. A topic that was there before, or was made anew since, is somebody's;
its settings and ACLs aren't touched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from causeway.brokers.wire import TopicMetadata
from causeway.core.errors import ClusterUnreachable
from causeway.core.flow import Flow
from causeway.core.flow_state import FlowState
from causeway.core.ports import Doubt, Unreachable
from causeway.core.topics import MirroredTopic
from causeway.flows.clusters import Clusters, refuse_one_cluster, refuse_other_clusters
from causeway.flows.planning import survey_topics


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirrors:
    state: FlowState
    there: Mapping[str, str]
    """By source topic its mirror, of all that are there."""
    held_back: Mapping[str, str]
    """By source topic why its mirror isn't touched; of the others it is kept up."""


def see_mirrors(flow: Flow, clusters: Clusters) -> Mirrors:
    """:raises ClusterTrouble: | :raises BadInput: the clusters are one, or not the flow's."""
    refuse_one_cluster(flow, clusters)
    try:
        state = clusters.network.run(lambda: clusters.flow_state(flow))
        refuse_other_clusters(flow, clusters, state)
        landscape = clusters.network.run(lambda: survey_topics(flow, clusters.source, clusters.target, state))
    except (Unreachable, Doubt) as trouble:
        raise ClusterUnreachable(f"flow {flow.name}", rule=str(trouble), remedy="try again") from trouble
    there = {
        topic.source: topic.target
        for topic in landscape.topics.mirrored
        if topic.target in landscape.target and not landscape.target[topic.target].error
    }
    held_back = {
        topic.source: why
        for topic in landscape.topics.mirrored
        if topic.source in there and (why := _why_not(state, topic, landscape.target[topic.target]))
    }
    return Mirrors(
        state=state,
        held_back=held_back,
        there=there,
    )


def _why_not(state: FlowState, topic: MirroredTopic, there: TopicMetadata) -> str:
    known = state.pairs.get(topic.target)
    if known is None:
        return "the flow hasn't begun with this topic"
    if known.source_topic != topic.source:
        return f"it is the mirror of {known.source_topic}"
    if known.target_topic_id != there.topic_id:
        return "it was made anew since the flow began with it"
    return ""
