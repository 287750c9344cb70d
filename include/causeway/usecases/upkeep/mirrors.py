"""Which mirrors a flow may keep up: those that it has begun with, and that are still the same topics.

Names alone don't say whose a topic is. A topic that was there before, or was recreated since, belongs to
someone else; its settings and ACLs aren't touched. Nor are a mirror's whose source was recreated: what was
set for another topic could delete records here that are nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from causeway.brokers.transport.topic_metadata import TopicMetadata
from causeway.core.model.flow import Flow
from causeway.core.state.flow_state import FlowState
from causeway.usecases.copy.planning import Landscape, survey_topics
from causeway.usecases.session.both_clusters import Clusters, refuse_one_cluster, refuse_other_clusters

_NO_ID = UUID(int=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirrors:
    state: FlowState
    there: Mapping[str, str]
    """By source topic its mirror, of all that are there."""
    begun: Mapping[str, str]
    """Likewise, of all that the flow has begun with, also of what is gone or isn't mirrored any more."""
    held_back: Mapping[str, str]
    """By source topic why its mirror isn't touched; of the others it is kept up."""


async def see_mirrors(flow: Flow, clusters: Clusters) -> Mirrors:
    """:raises Unreachable: | :raises BadInput: the clusters are one, or not the flow's."""
    refuse_one_cluster(flow, clusters)
    state = await clusters.flow_state(flow)
    refuse_other_clusters(flow, clusters, state)
    landscape = await survey_topics(flow, clusters.source, clusters.target, state)
    there = {
        topic.source: topic.target
        for topic in landscape.topics.mirrored
        if topic.target in landscape.target and not landscape.target[topic.target].error
    }
    begun = _begun(flow, state)
    return Mirrors(
        state=state, there=there, begun=begun, held_back=_held_back(landscape, state, {**begun, **there})
    )


def _begun(flow: Flow, state: FlowState) -> dict[str, str]:
    return {
        pair.source_topic: mirror
        for mirror, pair in state.pairs.items()
        if flow.naming.covers(pair.source_topic) and flow.naming.target_topic(pair.source_topic) == mirror
    }


def _held_back(landscape: Landscape, state: FlowState, mirrors: Mapping[str, str]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for source, mirror in mirrors.items():
        known = state.pairs.get(mirror)
        if known is None:
            found[source] = "the flow hasn't begun with this topic"
        elif known.source_topic != source:
            found[source] = f"it is the mirror of {known.source_topic}"
        elif (fence := landscape.fence_over(mirror)) is not None:
            found[source] = f"it is fenced {fence}"
        elif _is_another(landscape.target.get(mirror), known.target_topic_id):
            found[source] = "it was recreated since the flow began with it"
        elif _is_another(landscape.source.get(source), known.source_topic_id):
            found[source] = f"{source} was recreated since the flow began with it"
    return found


def _is_another(topic: TopicMetadata | None, known: UUID) -> bool:
    """One that is gone, or that may not be seen, isn't another one."""
    return topic is not None and topic.topic_id not in (known, _NO_ID)
