"""Topics as a cluster knows them, not as one of its nodes does: a node's metadata may be out of date.

Just after a creation, a move of a leader or a restart a node may not know a topic yet, or know the one that
had its name before. That a topic is gone, or is another one, is believed when no node says otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from causeway.brokers.transport.connection import Wire
from causeway.brokers.transport.topic_metadata import TopicMetadata
from causeway.core.copy.ports import Unreachable
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code

_TOLD = {0, Code.UNKNOWN_TOPIC_OR_PARTITION, Code.LEADER_NOT_AVAILABLE}
"""Other errors say nothing about which topic it is."""


async def as_known(
    wire: Wire, topics: Mapping[str, TopicMetadata], known: Mapping[str, UUID]
) -> dict[str, TopicMetadata]:
    """`topics` as one node has reported them; of those that it lacks under their known ids, the word of a
    node that has them.

    :raises Unreachable: no node answers.
    """
    lacking = sorted(name for name, topic_id in known.items() if _lacks(topics.get(name), topic_id))
    found = dict(topics)
    for answer in await _of_each_node(wire, lacking) if lacking else ():
        found |= {n: topic for n, topic in answer.items() if not topic.error and topic.topic_id == known[n]}
    return found


async def known_topics(wire: Wire, known: Mapping[str, UUID]) -> dict[str, TopicMetadata]:
    """These topics, asked for by name."""
    return await as_known(wire, await wire.topics(sorted(known)), known)


async def is_gone(wire: Wire, topic: str, topic_id: UUID) -> bool:
    """Whether no node that answers knows it under this id.

    :raises Unreachable: none answers.
    """
    return all(_lacks(each[topic], topic_id) for each in await _of_each_node(wire, [topic]))


async def gone_topics(wire: Wire, topics: Collection[str]) -> set[str]:
    """Those of them that no node knows which answers, whatever their ids were.

    :raises Unreachable: the nodes don't agree yet, or none answers.
    """
    told = await wire.topics(sorted(topics))
    unknown = sorted(name for name, topic in told.items() if topic.error == Code.UNKNOWN_TOPIC_OR_PARTITION)
    agreed = {name: (await agreed_topic(wire, name)).error for name in unknown}
    return {name for name, error in agreed.items() if error == Code.UNKNOWN_TOPIC_OR_PARTITION}


async def agreed_topic(wire: Wire, topic: str) -> TopicMetadata:
    """As all nodes have it that answer: for who acts on what is there, or isn't.

    :raises Unreachable: they don't agree yet, or none answers.
    """
    told = [each[topic] for each in await _of_each_node(wire, [topic])]
    if len({each.topic_id for each in told if each.error in _TOLD}) > 1:
        raise Unreachable(f"topic {topic} of {wire.endpoint}: its brokers don't agree on which one it is yet")
    return told[0]


async def _of_each_node(wire: Wire, names: Sequence[str]) -> list[dict[str, TopicMetadata]]:
    found: list[dict[str, TopicMetadata]] = []
    trouble = Unreachable(f"no broker of {wire.endpoint} can be reached")
    for node in wire.nodes():
        try:
            found.append(await wire.topics(names, node=node))
        except Unreachable as silent:
            trouble = silent
    if not found:
        raise trouble
    return found


def _lacks(topic: TopicMetadata | None, topic_id: UUID) -> bool:
    return topic is None or (topic.error in _TOLD and topic.topic_id != topic_id)
