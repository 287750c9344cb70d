"""The topic and the partition that a person names: whether the flow mirrors it, and which pair it is."""

from __future__ import annotations

from causeway.core.kernel.errors import UnknownName
from causeway.core.kernel.identity import Pair, TopicPartition
from causeway.core.model.flow import Flow
from causeway.core.model.naming import is_internal
from causeway.core.state.flow_state import FlowState
from causeway.core.topics.plan import is_wanted
from causeway.usecases.session.both_clusters import Clusters

_NAMED_TOPICS = 5


def refuse_of_another_flow(flow: Flow, state: FlowState, topic: str) -> None:
    """:raises UnknownName: the flow mirrors no such topic, and never has."""
    was_mirrored = topic in _mirrored(state) or topic in state.forgotten.values()
    if not was_mirrored and (is_internal(topic) or not is_wanted(flow, topic)):
        rule = f"isn't a topic of flow {flow.name}"
        raise UnknownName(f"topic {topic}", rule=rule, remedy=its_topics(flow, state))


def its_topics(flow: Flow, state: FlowState) -> str:
    known = _mirrored(state)
    names = (
        f"known: {', '.join(known[:_NAMED_TOPICS])}{', ...' if len(known) > _NAMED_TOPICS else ''}; "
        if known
        else ""
    )
    return f"{names}`causeway plan {flow.name}` shows them all"


def _mirrored(state: FlowState) -> list[str]:
    return sorted({pair.source_topic for pair in state.pairs.values()})


async def pair_at(flow: Flow, clusters: Clusters, at: TopicPartition) -> Pair:
    """:raises UnknownName: one of the two topics, or its partition, isn't there."""
    name = flow.naming.target_topic(at.topic)
    here = (await clusters.source.wire.topics([at.topic]))[at.topic]
    there = (await clusters.target.wire.topics([name]))[name]
    for side, topic in (("source", here), ("target", there)):
        if topic.error or at.partition not in topic.leaders:
            raise UnknownName(
                f"partition {at.partition} of {topic.name}",
                rule=f"isn't on the {side} cluster",
                remedy="positions are for topics that are there: create or restore it first",
            )
    return Pair(
        source=at,
        target=TopicPartition(name, at.partition),
        source_topic_id=here.topic_id,
        target_topic_id=there.topic_id,
    )
