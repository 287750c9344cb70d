"""A flow's offset map, read from the target alone, ready to translate: the source may be gone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Protocol

from causeway.brokers.wire.mm2_topics import read_inherited
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.ports import LogEnd, OutcomeUnknown, Unreachable
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import ClusterUnreachable
from causeway.core.kernel.identity import TargetOffset, TopicPartition
from causeway.core.offsets.mm2_offset_syncs import Inherited
from causeway.core.offsets.translation import FlowMap, PartitionMap, reach_of
from causeway.core.state.flow_state import FlowState
from causeway.core.state.known_pairs import KnownPair
from causeway.usecases.session.both_clusters import run_at_target, state_on
from causeway.usecases.session.pair_positions import read_pair_positions


class FlowNames(Protocol):
    """What a flow keeps its things under. A `Flow` has them all."""

    @property
    def name(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def map_topic(self) -> str: ...


LookAtLog = Callable[[WireTarget, FlowState], Awaitable[None]]


def load_flow_map(
    flow: FlowNames,
    target: ClusterEndpoint,
    source_topics: Collection[str] | None = None,
    look_at_log: LookAtLog | None = None,
) -> FlowMap:
    """As it is now; it doesn't follow. `source_topics`: those that are wanted; None: all.
    `look_at_log`: whoever wants to say what is wrong with the flow's own topics.

    :raises ClusterTrouble: the target can't be read.
    """

    async def load(opened: WireTarget) -> FlowMap:
        try:
            return await _load(flow, opened, source_topics, look_at_log)
        except (Unreachable, OutcomeUnknown) as trouble:
            raise ClusterUnreachable(
                f"offset map of {flow.name}", rule=str(trouble), remedy="try again"
            ) from trouble

    return run_at_target(target, load)


async def _load(
    flow: FlowNames,
    target: WireTarget,
    source_topics: Collection[str] | None,
    look_at_log: LookAtLog | None,
) -> FlowMap:
    state = await state_on(target, flow.name)
    if look_at_log is not None:
        await look_at_log(target, state)
    wanted = [
        tp
        for tp in mirrored_partitions(state)
        if source_topics is None or state.pairs[tp.topic].source_topic in source_topics
    ]
    return await read_flow_map(flow, target, state, wanted)


def mirrored_partitions(state: FlowState) -> list[TopicPartition]:
    """Every target partition that the flow has ever written."""
    return [TopicPartition(topic, n) for topic, pair in state.pairs.items() for n in range(pair.partitions)]


async def inherited_of(
    flow: str, target: WireTarget, pairs: Iterable[KnownPair]
) -> dict[TopicPartition, Inherited]:
    """Who has never adopted anything has inherited nothing, and isn't asked."""
    return await read_inherited(target, flow) if any(pair.adopted_at >= 0 for pair in pairs) else {}


async def read_flow_map(
    flow: FlowNames, target: WireTarget, state: FlowState, partitions: Collection[TopicPartition]
) -> FlowMap:
    """Of these target partitions. The positions are read after the map: `Reach` says why."""
    known = await target.map_of(flow.map_topic, list(partitions))
    inherited = await inherited_of(flow.name, target, state.pairs.values())
    positions = (
        await read_pair_positions(flow, target, state, list(partitions), stable=False) if partitions else {}
    )
    ends = await target.log_ends(list(partitions)) if partitions else {}
    maps: dict[TopicPartition, PartitionMap] = {}
    for tp in partitions:
        pair, end = state.pairs[tp.topic], ends[tp]
        target_end = TargetOffset(end.offset) if isinstance(end, LogEnd) else None
        reach = reach_of(positions[tp], pair, tp.partition, target_end=target_end, place=known[tp].place)
        maps[tp] = PartitionMap(
            known[tp].runs,
            reach,
            source_topic_id=pair.source_topic_id,
            target_topic_id=pair.target_topic_id,
            inherited=inherited.get(tp),
        )
    return FlowMap(state.pairs, maps)
