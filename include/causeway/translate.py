"""Translate offsets from Python: for consumers that keep theirs in Spark or Flink checkpoints, or databases.

    from causeway.translate import TopicPartition, flow_map

    mirror = flow_map("sf_to_nyc", source="sf", target={"bootstrap.servers": "nyc-1:9092"})
    offset = mirror.to_target(TopicPartition("orders", 3), 1_234)      # the next offset to read, on nyc
    if not isinstance(offset, int):
        raise RuntimeError(f"orders-3 has no place on nyc: {offset}")  # OlderThanMap, AheadOfMirror, ...
    mirror.to_source(TopicPartition("sf.orders", 3), offset)           # and back

Of offsets from before a takeover there may be a `LowerBound` instead, whose `at` skips nothing.
Only the target is asked, once: the source may be gone. What is given back is a picture of that moment. For
many offsets of one partition: `mirror.of_target(mirror.target_of(orders)).to_targets(offsets)`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.identity import SourceOffset, TargetOffset, TopicPartition
from causeway.core.model.flow import group_of, map_topic_of
from causeway.core.offsets.mm2_offset_syncs import LowerBound
from causeway.core.offsets.translation import FlowMap, PartitionMap
from causeway.core.offsets.why_not import (
    AheadOfMirror,
    NeverMirrored,
    NotInFlow,
    OlderThanMap,
    OtherGeneration,
    WhyNot,
)
from causeway.usecases.offsets.translate import load_flow_map

__all__ = [
    "AheadOfMirror",
    "FlowMap",
    "LowerBound",
    "NeverMirrored",
    "NotInFlow",
    "OlderThanMap",
    "OtherGeneration",
    "PartitionMap",
    "SourceOffset",
    "TargetOffset",
    "TopicPartition",
    "WhyNot",
    "flow_map",
]


@dataclass(frozen=True, slots=True)
class _Names:
    name: str
    source: str

    @property
    def group(self) -> str:
        return group_of(self.name)

    @property
    def map_topic(self) -> str:
        return map_topic_of(self.source)


def flow_map(
    flow: str, *, source: str, target: Mapping[str, str], topics: Collection[str] | None = None
) -> FlowMap:
    """The flow's map as it is now.

    :param source: the alias of the source in flows.yaml; the map is kept under it.
    :param target: librdkafka's settings of the target cluster, as in its connection.
    :param topics: source topics, if not all of them are wanted.
    :raises CausewayError: the target can't be reached or read.
    """
    return load_flow_map(_Names(flow, source), ClusterEndpoint("target", dict(target)), topics)
