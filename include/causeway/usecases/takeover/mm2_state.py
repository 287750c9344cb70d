"""What MirrorMaker 2 has left: position, offset syncs, mirrors; and whether it still works."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from causeway.brokers.transport.topic_metadata import TopicMetadata
from causeway.brokers.wire.describe import group_state
from causeway.brokers.wire.log_reader import LATEST, READ_COMMITTED, READ_UNCOMMITTED, WireLogReader
from causeway.brokers.wire.mm2_topics import (
    all_offset_syncs,
    committed_by_mirror_maker,
    offsets_partitions,
)
from causeway.brokers.wire.topic_reader import WireTopicReader
from causeway.core.copy.ports import LogEnd, Refused, Unreachable
from causeway.core.kernel.errors import FlowHeld
from causeway.core.kernel.identity import Pair, TopicPartition
from causeway.core.model.flow import Flow
from causeway.core.model.naming import is_internal
from causeway.core.offsets.pair_position import Kept, where_it_was_left
from causeway.core.records.mm2_formats import OffsetSync
from causeway.core.state.flow_state import FlowState
from causeway.core.state.position import ForeignPosition, Position
from causeway.core.takeover.mm2_mirror import Extent, MirrorMakerPlaces
from causeway.core.topics.plan import is_wanted
from causeway.usecases.session.both_clusters import Clusters

_GONE = frozenset({"Empty", "Dead"})
Ends = dict[TopicPartition, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One pair of partitions that MirrorMaker 2 may have mirrored."""

    pair: Pair
    committed: int | None
    syncs: tuple[OffsetSync, ...]
    extent: Extent
    source_stable: int
    """Before it no transaction of the source is open."""
    target_stable: int
    own: Literal["stands", "other topics", None]
    """What the flow knows of it itself: a position, or that it had one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mm2State:
    candidates: tuple[Candidate, ...]
    ends: Ends
    """Of everything that MirrorMaker 2 writes there: they must not move."""
    left_out: tuple[str, ...]
    """Source topics that MirrorMaker 2 has mirrored, and the flow doesn't."""


async def refuse_living(clusters: Clusters, places: MirrorMakerPlaces) -> None:
    """:raises FlowHeld: a worker of MirrorMaker 2 is a member of its group."""
    state = await group_state(clusters.target.wire, places.group)
    if state not in _GONE:
        raise FlowHeld(
            f"MirrorMaker 2, group {places.group} of {clusters.target.wire.endpoint}",
            value=state,
            rule="has a worker that is at work",
            remedy="stop MirrorMaker 2, and run this again; of one that was killed the group knows in 10 s",
        )


async def refuse_growth(clusters: Clusters, places: MirrorMakerPlaces, before: Ends) -> None:
    """:raises FlowHeld: something of what MirrorMaker 2 writes has grown."""
    now = await _ends(clusters.target, list(before), READ_UNCOMMITTED)
    for tp, end in before.items():
        if now[tp] != end:
            raise FlowHeld(
                f"{tp} of {clusters.target.wire.endpoint}",
                value=now[tp],
                rule=f"ended at {end} a moment ago: MirrorMaker 2 still writes, or somebody else does",
                remedy="stop it, and run this again",
            )
    await refuse_living(clusters, places)


async def read_mm2_state(
    flow: Flow, places: MirrorMakerPlaces, clusters: Clusters, state: FlowState
) -> Mm2State:
    """:raises NotAuthorized: something of it may not be read; that must not look like nothing."""
    await refuse_living(clusters, places)
    committed = await committed_by_mirror_maker(clusters.target, places, flow.source)
    pairs = await _pairs(flow, clusters)
    mirrored = {pair.source.topic for pair in pairs}
    syncs = await _offset_syncs(clusters, places, mirrored)
    targets, sources = [pair.target for pair in pairs], [pair.source for pair in pairs]
    own = await _own(flow, clusters, state, pairs)
    target_ends = await _ends(clusters.target, targets, READ_UNCOMMITTED)
    target_stables = await _ends(clusters.target, targets, READ_COMMITTED)
    target_starts = await _starts(clusters.target, targets)
    source_ends = await _ends(clusters.source, sources, READ_UNCOMMITTED)
    source_stables = await _ends(clusters.source, sources, READ_COMMITTED)
    source_starts = await _starts(clusters.source, sources)
    candidates = tuple(
        Candidate(
            pair=pair,
            committed=committed.get(pair.source),
            syncs=tuple(syncs.get(pair.source, ())),
            extent=Extent(
                source_start=source_starts[pair.source],
                source_end=(source_stables if places.is_isolated else source_ends)[pair.source],
                target_start=target_starts[pair.target],
                target_end=target_ends[pair.target],
            ),
            source_stable=source_stables[pair.source],
            target_stable=target_stables[pair.target],
            own=own[pair.target],
        )
        for pair in pairs
    )
    watched = await offsets_partitions(clusters.target, places)
    return Mm2State(
        candidates=candidates,
        ends=target_ends | await _ends(clusters.target, watched, READ_UNCOMMITTED),
        left_out=tuple(sorted({tp.topic for tp in committed} - mirrored)),
    )


async def _offset_syncs(
    clusters: Clusters, places: MirrorMakerPlaces, mirrored: Collection[str]
) -> dict[TopicPartition, list[OffsetSync]]:
    where = WireTopicReader(clusters.source.wire) if places.syncs_on_source else clusters.target
    return await all_offset_syncs(where, places.syncs_topic, mirrored)


async def _pairs(flow: Flow, clusters: Clusters) -> list[Pair]:
    """What the flow mirrors, and has a mirror already, whoever made it."""
    here = await clusters.source.wire.topics(None)
    there = await clusters.target.wire.topics(None)
    pairs: list[Pair] = []
    for name, topic in sorted(here.items()):
        mirror = there.get(flow.naming.target_topic(name)) if _crosses(flow, topic) else None
        if mirror is None or topic.error or mirror.error:
            continue
        pairs += [
            Pair(
                source=TopicPartition(name, number),
                target=TopicPartition(mirror.name, number),
                source_topic_id=topic.topic_id,
                target_topic_id=mirror.topic_id,
            )
            for number in sorted(topic.leaders.keys() & mirror.leaders.keys())
        ]
    return pairs


def _crosses(flow: Flow, topic: TopicMetadata) -> bool:
    return (
        is_wanted(flow, topic.name)
        and not topic.is_internal
        and not is_internal(topic.name)
        and flow.naming.covers(topic.name)
        and not flow.naming.comes_from(topic.name, flow.target)
    )


async def _own(
    flow: Flow, clusters: Clusters, state: FlowState, pairs: Sequence[Pair]
) -> Mapping[TopicPartition, Literal["stands", "other topics", None]]:
    """A pair that was adopted and has no position is a takeover that was broken off: it is done again.

    A run that came before the takeover has remembered the pair, and parked it: where it would have begun says
    nothing. Only what it has copied is its own, and then its map knows of it. One that was killed in its
    commit leaves it open: until the lanes are claimed, what it had committed before counts.
    """
    targets = [pair.target for pair in pairs]
    positions = await positions_of(flow, clusters, targets, stable=False)
    maps = await clusters.target.map_of(flow.map_topic, targets) if targets else {}
    found: dict[TopicPartition, Literal["stands", "other topics", None]] = {}
    for pair in pairs:
        ids, position = pair.ids, positions[pair.target]
        known = state.pairs.get(pair.target.topic)
        found[pair.target] = None
        if isinstance(position, Position):
            is_it = position.ids == ids
            found[pair.target] = "stands" if is_it else "other topics"
        elif known is not None and known.ids == ids:
            kept = Kept(
                runs=maps[pair.target].runs,
                place=maps[pair.target].place,
                adopted_at=known.adopted_at_of(pair.target.partition),
            )
            found[pair.target] = "stands" if where_it_was_left(pair, kept) is not None else None
    return found


async def positions_of(
    flow: Flow, clusters: Clusters, targets: Sequence[TopicPartition], *, stable: bool
) -> Mapping[TopicPartition, Position | ForeignPosition | None]:
    return await clusters.target.positions(flow.group, targets, stable=stable) if targets else {}


async def refuse_set_meanwhile(
    flow: Flow, clusters: Clusters, to_set: Mapping[TopicPartition, Candidate]
) -> None:
    """Under the fence, all lanes claimed. Nobody's position is overwritten by what was looked at before.

    :raises FlowHeld: one that had no position has one now.
    """
    positions = await positions_of(flow, clusters, list(to_set), stable=True)
    for tp, candidate in to_set.items():
        found, pair = positions[tp], candidate.pair
        if isinstance(found, Position) and found.ids == pair.ids:
            raise FlowHeld(
                f"position of {tp}",
                value=found.source_next,
                rule="was set while MirrorMaker 2's mirror was compared: somebody else works on this flow",
                remedy="run the same command again: what has a position is left as it is",
            )


async def _starts(cluster: WireLogReader, partitions: Sequence[TopicPartition]) -> Ends:
    found = await cluster.log_starts(partitions) if partitions else {}
    return {tp: _known(tp, start) for tp, start in found.items()}


async def _ends(cluster: WireLogReader, partitions: Sequence[TopicPartition], isolation: int) -> Ends:
    if not partitions:
        return {}
    found = await cluster.list_offsets(dict.fromkeys(partitions, LATEST), isolation=isolation)
    return {tp: _known(tp, end) for tp, end in found.items()}


def _known(tp: TopicPartition, answer: int | LogEnd | Refused) -> int:
    if isinstance(answer, Refused):
        raise Unreachable(f"offsets of {tp}: {answer}")
    return answer if isinstance(answer, int) else answer.offset
