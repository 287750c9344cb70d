"""What the offset map says of pairs of partitions, for whoever compares them record by record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from causeway.brokers.wire.target_log import WireTarget
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.identity import TopicPartition
from causeway.core.model.flow import Flow
from causeway.core.offsets.offset_map import MappedRange, ranges_of_topics
from causeway.usecases.session.both_clusters import Clusters, run_at_both
from causeway.usecases.verify.partition_pair import PartitionPair


async def read_ranges(
    flow: Flow, target: WireTarget, pairs: Sequence[PartitionPair]
) -> dict[TopicPartition, list[MappedRange]]:
    """By target partition, of those pairs that can't be compared without the map."""
    wanted = [pair.target for pair in pairs if pair.needs_the_map]
    return await target.map_runs(flow.map_topic, wanted) if wanted else {}


def with_current_ranges(
    flow: Flow, source: ClusterEndpoint, target: ClusterEndpoint, pairs: Sequence[PartitionPair]
) -> list[PartitionPair]:
    """The same pairs with the runs of their topics as they are now: for whoever asks neither the flow's state
    nor its positions what to compare."""
    return run_at_both(source, target, lambda clusters: _with_runs_of_now(flow, clusters, pairs))


async def _with_runs_of_now(
    flow: Flow, clusters: Clusters, pairs: Sequence[PartitionPair]
) -> list[PartitionPair]:
    wanted = [pair for pair in pairs if pair.needs_the_map]
    here = await clusters.source.wire.topics(sorted({pair.source.topic for pair in wanted}))
    there = await clusters.target.wire.topics(sorted({pair.target.topic for pair in wanted}))
    ids = {p.target: (here[p.source.topic].topic_id, there[p.target.topic].topic_id) for p in wanted}
    runs = await read_ranges(flow, clusters.target, pairs)
    return [
        replace(pair, runs=tuple(ranges_of_topics(runs[pair.target], ids[pair.target])))
        if pair.needs_the_map
        else pair
        for pair in pairs
    ]
