"""What the target knows of partitions whose source can't be asked: where each stands, and its last record.

The end of the source is unknown, and so is the lag: nothing is made up for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from causeway.brokers.wire.target_log import WireTarget
from causeway.core.kernel.identity import TopicPartition
from causeway.core.model.flow import Flow
from causeway.core.state.flow_state import FlowState
from causeway.core.state.position import Position
from causeway.usecases.offsets.scan_records import Sample, Search, first_records
from causeway.usecases.session.pair_positions import read_pair_positions


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownPlace:
    source: TopicPartition
    target: TopicPartition
    position: Position | None
    """None: unknown, or none of ours."""
    last_record_ms: int | None = None
    """The time that the last mirrored record carries; None: none is there, or retention has taken it."""


def places_begun(state: FlowState) -> list[TopicPartition]:
    """By target partition, in order: all that the flow has begun with."""
    return [
        TopicPartition(name, number)
        for name, known in sorted(state.pairs.items())
        for number in range(known.partitions)
    ]


async def known_places(
    flow: Flow, target: WireTarget, state: FlowState, targets: Iterable[TopicPartition]
) -> dict[TopicPartition, KnownPlace]:
    """By source partition; of those among the target partitions that the flow has begun with."""
    begun = [tp for tp in targets if tp.topic in state.pairs]
    if not begun:
        return {}
    found = await read_pair_positions(flow, target, state, begun, stable=False)
    positions = {tp: place for tp, place in found.items() if isinstance(place, Position)}
    times = await _times_of_last_records(target, state, positions)
    sources = {tp: TopicPartition(state.pairs[tp.topic].source_topic, tp.partition) for tp in begun}
    return {
        source: KnownPlace(source=source, target=tp, position=positions.get(tp), last_record_ms=times.get(tp))
        for tp, source in sources.items()
    }


async def _times_of_last_records(
    target: WireTarget, state: FlowState, positions: Mapping[TopicPartition, Position]
) -> dict[TopicPartition, int]:
    """Of logs that are still the ones which the positions were written about."""
    topics = await target.wire.topics(sorted({tp.topic for tp in positions}))
    ids = {name: state.pairs[name].target_topic_id for name in topics}
    searches = {
        tp: Search(start=position.target_next - 1, end=position.target_next)
        for tp, position in positions.items()
        if position.target_next > 0 and topics[tp.topic].topic_id == ids[tp.topic]
    }
    found = await first_records(target, ids, searches)
    return {tp: sample.timestamp_ms for tp, sample in found.items() if isinstance(sample, Sample)}
