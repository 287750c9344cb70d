"""What a flow may do, asked before anything is written: a right that is missing is found, never stepped over.

Rights that the flow can't do without end the run before its first record. Those of a single topic leave
that topic alone and are reported with their grant; the others go on. A topic that this user may not see at
all isn't in the cluster's list: those that flows.yaml names in full, and those that were mirrored before, are
asked for by name. A new topic that only a pattern would match can't be known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from causeway.brokers.transport.connection import Wire
from causeway.brokers.transport.topic_metadata import TopicMetadata
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.kernel.acl_vocabulary import Operation
from causeway.core.kernel.errors import CausewayError
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.model.flow import Flow
from causeway.core.model.naming import FLOWS_TOPIC, HEARTBEATS_TOPIC
from causeway.core.state.flow_state import FlowState
from causeway.core.topics.plan import MirroredTopic, TopicPlan, also_refused, is_wanted
from causeway.usecases.copy.prepare_topics import refused_topic

_PLAIN_NAME = re.compile(r"[a-zA-Z0-9._-]+")

Topics = Mapping[str, TopicMetadata]


async def check_own_rights(flow: Flow, target: WireTarget) -> None:
    """:raises NotAuthorized: the flow can't run at all; nothing has been written."""
    own = [FLOWS_TOPIC, flow.map_topic] + ([flow.quarantine_topic] if flow.quarantines else [])
    found = await target.wire.topics(own)
    for name in own:
        operation = found[name].lacks(Operation.READ, Operation.WRITE)
        if operation is not None:
            raise target.wire.lacks_right(name, operation)
    await target.check_group_right(flow.group)
    await target.check_claim_right(flow.transactional_id(0))


async def missing_topics(flow: Flow, state: FlowState, wire: Wire, topics: Topics) -> Topics:
    """Those that aren't in the source's list though they are wished for or were mirrored before."""
    named = {name for name in flow.topics.include if _PLAIN_NAME.fullmatch(name)}
    mirrored = {pair.source_topic for pair in state.pairs.values()}
    named |= {HEARTBEATS_TOPIC} if flow.upkeep.mirror_heartbeats else set()
    absent = sorted(name for name in (named | mirrored) - topics.keys() if is_wanted(flow, name))
    return await wire.topics(absent) if absent else {}


def deleted_topics(state: FlowState, missing: Topics) -> frozenset[str]:
    """Source topics that were mirrored and have been deleted since."""
    mirrored = {pair.source_topic for pair in state.pairs.values()}
    absent = (name for name, topic in missing.items() if topic.error == Code.UNKNOWN_TOPIC_OR_PARTITION)
    return frozenset(mirrored.intersection(absent))


async def leave_alone_what_is_denied(
    plan: TopicPlan, source: tuple[Wire, Topics], target: tuple[Wire, Topics]
) -> TopicPlan:
    """The plan less the topics that this flow has no right to read or to mirror."""
    denied = await _denied_on_target(plan, *target) | _denied_on_source(plan, *source)
    return also_refused(plan, [refused_topic(topic, error) for topic, error in denied.items()])


def _denied_on_source(plan: TopicPlan, wire: Wire, topics: Topics) -> dict[str, CausewayError]:
    denied: dict[str, CausewayError] = {}
    for topic in plan.mirrored:
        if topics[topic.source].lacks(Operation.READ):
            denied[topic.source] = wire.lacks_right(topic.source, Operation.READ)
    return denied


async def _denied_on_target(plan: TopicPlan, wire: Wire, topics: Topics) -> dict[str, CausewayError]:
    """Also of mirrors that aren't there yet: a broker tells rights by name."""
    unseen = [topic.target for topic in plan.mirrored if topic.target not in topics]
    known = {**topics, **(await wire.topics(unseen) if unseen else {})}

    def lacking(topic: MirroredTopic) -> Operation | None:
        return known[topic.target].lacks(Operation.WRITE, Operation.READ)

    return {
        topic.source: wire.lacks_right(topic.target, operation)
        for topic in plan.mirrored
        if (operation := lacking(topic)) is not None
    }
