"""The flow's own topics on the target: never mirrored, made before anything else is written; compacted, but
for the quarantine."""

from __future__ import annotations

from causeway.brokers.admin.topics import ClusterAdmin
from causeway.core.model.flow import Flow
from causeway.core.model.group_filter import FlowGroups
from causeway.core.model.naming import FLOWS_TOPIC
from causeway.core.offsets.mm2_offset_syncs import inherited_topic_of
from causeway.core.offsets.offset_map import MAP_PARTITIONS
from causeway.core.topics.plan import NewTopicPlan
from causeway.core.topics.quarantine import new_quarantine_topic

_COMPACTED = (("cleanup.policy", "compact"),)
# Every worker reads this one from its beginning: signs of life, one in three seconds, must not pile up.
_SOON = (("segment.ms", "3600000"), ("min.cleanable.dirty.ratio", "0.01"))


def internal_topics(flow: Flow) -> tuple[NewTopicPlan, ...]:
    topics = [
        NewTopicPlan(FLOWS_TOPIC, 1, _COMPACTED + _SOON, flow.own_replication_factor),
        NewTopicPlan(flow.map_topic, MAP_PARTITIONS, _COMPACTED, flow.own_replication_factor),
    ]
    if flow.quarantines:
        topics.append(new_quarantine_topic(flow.quarantine_topic, flow.own_replication_factor))
    return tuple(topics)


def group_topics(flow: Flow, groups: FlowGroups) -> tuple[NewTopicPlan, ...]:
    """For those who read what MirrorMaker 2 writes: one partition each, as its own."""
    wanted = ((groups.emit_checkpoints, flow.checkpoints_topic), (groups.emit_offset_syncs, flow.syncs_topic))
    return tuple(
        NewTopicPlan(name, 1, _COMPACTED, flow.own_replication_factor) for is_on, name in wanted if is_on
    )


def inherited_topic(flow: Flow) -> NewTopicPlan:
    """For who takes over from MirrorMaker 2: its offset syncs, as they were."""
    return NewTopicPlan(inherited_topic_of(flow.name), 1, _COMPACTED, flow.own_replication_factor)


def create_internal_topics(flow: Flow, admin: ClusterAdmin, existing: frozenset[str]) -> None:
    """:raises CausewayError: the first one that can't be made; then none is."""
    create_missing_topics(internal_topics(flow), admin, existing)


def create_flows_topic(flow: Flow, admin: ClusterAdmin, existing: frozenset[str]) -> None:
    """As `create_internal_topics`. A map that was deleted isn't recreated by a command that doesn't fill
    it."""
    wanted = tuple(topic for topic in internal_topics(flow) if topic.name == FLOWS_TOPIC)
    create_missing_topics(wanted, admin, existing)


def create_missing_topics(
    wanted: tuple[NewTopicPlan, ...], admin: ClusterAdmin, existing: frozenset[str]
) -> None:
    """:raises CausewayError: as `create_internal_topics`."""
    missing = tuple(topic for topic in wanted if topic.name not in existing)
    if not missing:
        return
    for is_trial in (True, False):
        for error in admin.create_topics(missing, validate_only=is_trial).values():
            raise error
    admin.wait_for_leaders({topic.name: topic.partitions for topic in missing})
