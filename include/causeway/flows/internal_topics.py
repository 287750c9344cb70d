"""The flow's own topics on the target: compacted, never mirrored, made before anything else is written."""

from __future__ import annotations

from causeway.brokers.admin import ClusterAdmin
from causeway.core.flow import Flow
from causeway.core.naming import FLOWS_TOPIC
from causeway.core.offset_map import MAP_PARTITIONS
from causeway.core.topics import NewTopicPlan

_COMPACTED = (("cleanup.policy", "compact"),)
# Every worker reads this one from its beginning: signs of life, one in three seconds, must not pile up.
_SOON = (("segment.ms", "3600000"), ("min.cleanable.dirty.ratio", "0.01"))


def internal_topics(flow: Flow) -> tuple[NewTopicPlan, ...]:
    return (
        NewTopicPlan(FLOWS_TOPIC, 1, _COMPACTED + _SOON, flow.own_replication_factor),
        NewTopicPlan(flow.map_topic, MAP_PARTITIONS, _COMPACTED, flow.own_replication_factor),
    )


def create_internal_topics(flow: Flow, admin: ClusterAdmin, existing: frozenset[str]) -> None:
    """:raises CausewayError: the first one that can't be made; then none is."""
    missing = tuple(topic for topic in internal_topics(flow) if topic.name not in existing)
    if not missing:
        return
    for is_trial in (True, False):
        for error in admin.create_topics(missing, validate_only=is_trial).values():
            raise error
    admin.wait_for_leaders({topic.name: topic.partitions for topic in missing})
