"""Positions that were set by hand, into the flow's ledger of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from causeway.core.kernel.identity import Generation, SourceOffset, TargetOffset, TopicPartition
from causeway.core.model.flow import Flow
from causeway.core.model.naming import FLOWS_TOPIC
from causeway.core.state.flow_records import set_record
from causeway.core.state.position_ledger import How, ManualPosition, PlaceSet
from causeway.usecases.repair.set_positions import NewPosition, Reason
from causeway.usecases.session.both_clusters import Clusters


async def record_positions(
    flow: Flow,
    clusters: Clusters,
    how: How,
    beginnings: Sequence[NewPosition],
    ends: Mapping[TopicPartition, TargetOffset],
    reason: Reason,
    generation: Generation,
) -> None:
    """Into the ledger, after what was committed; all of one topic. `ends` are by source partition."""
    pair = beginnings[0].pair
    entry = ManualPosition(
        how=how,
        source_topic=pair.source.topic,
        target_topic=pair.target.topic,
        source_topic_id=pair.source_topic_id,
        target_topic_id=pair.target_topic_id,
        places=tuple(
            PlaceSet(
                partition=each.pair.target.partition,
                source_next=SourceOffset(each.source_next),
                target_next=ends[each.pair.source],
                stood_at=each.stood_at,
            )
            for each in beginnings
        ),
        generation=generation,
        by=reason.by,
        because=reason.because,
        at_ms=clusters.network.time_ms(),
    )
    key, value = set_record(flow.name, entry)
    await clusters.target.append_plain(FLOWS_TOPIC, key, value)
