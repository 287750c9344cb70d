"""Begin with a topic again: it was deleted or made again on one of the two sides, and a person says so.

Both topics there: every partition begins by the flow's start rule, after whatever its mirror holds. One of
them gone: the pair is forgotten, and the next run makes what is missing and begins as with a new topic, if
there is anything to begin with.

A topic that is still the one that the flow works with is left as it is: nothing is ever mirrored twice by
repeating the command.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from causeway.brokers.transport.lagging_nodes import agreed_topic
from causeway.brokers.transport.topic_metadata import TopicMetadata
from causeway.brokers.wire.log_reader import LATEST, READ_COMMITTED
from causeway.core.copy.ports import Refused, Unreachable
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import UnknownName
from causeway.core.kernel.identity import Generation, Pair, TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.kernel.kafka_errors import error_name
from causeway.core.model.flow import Flow
from causeway.core.model.naming import FLOWS_TOPIC
from causeway.core.state.flow_records import forgotten_record
from causeway.core.state.flow_state import FlowState
from causeway.core.state.known_pairs import KnownPair
from causeway.core.state.position import Position
from causeway.usecases.copy.round_facts import resolve_start
from causeway.usecases.repair.adopt import remember_pair
from causeway.usecases.repair.asked_partition import its_topics, refuse_of_another_flow
from causeway.usecases.repair.record_positions import record_positions
from causeway.usecases.repair.set_positions import (
    NewPosition,
    Reason,
    commit_positions,
    fenced,
    refuse_leading_back,
    run_command,
    seen_again,
    target_ends,
)
from causeway.usecases.session.both_clusters import Clusters

How = Literal["nothing to do", "forgotten", "begun anew"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarted:
    source_topic: str
    target_topic: str
    how: How
    beginnings: tuple[tuple[int, int, int], ...] = ()
    """(partition, source offset, target offset) where each goes on; target offset -1: a dry run."""
    generation: int = -1


def restart_topic(
    flow: Flow,
    source: ClusterEndpoint,
    target: ClusterEndpoint,
    topic: str,
    reason: Reason,
    *,
    dry_run: bool = False,
) -> Restarted:
    """:raises UnknownName: the flow knows no such topic, or neither side has it."""

    async def work(clusters: Clusters, state: FlowState) -> Restarted:
        refuse_of_another_flow(flow, state, topic)
        mirror = flow.naming.target_topic(topic)
        here, there = await _both(flow, clusters, topic, mirror)
        known = state.pairs.get(mirror)
        if known is not None and known.source_topic != topic:
            known = None
        done = Restarted(source_topic=topic, target_topic=mirror, how="nothing to do")
        if here is None or there is None:
            if known is None:
                return done if here is not None else _was_forgotten(flow, state, done)
            return await _forget(flow, clusters, target, known, done, reason, dry_run=dry_run)
        pairs = _pairs(topic, here, mirror, there)
        if not await _is_another(flow, clusters, known, pairs):
            return done
        beginnings = await _beginnings(flow, clusters, pairs)
        await refuse_leading_back(flow, clusters, beginnings)
        return await _begin(flow, clusters, target, state, beginnings, done, reason, dry_run=dry_run)

    return run_command(flow, source, target, f"restart of {topic}", work)


def _was_forgotten(flow: Flow, state: FlowState, done: Restarted) -> Restarted:
    """The same command, typed again.

    :raises UnknownName: it never was.
    """
    if done.source_topic in state.forgotten.values():
        return replace(done, how="forgotten")
    raise UnknownName(
        f"topic {done.source_topic}",
        rule=f"isn't on {flow.source}, and flow {flow.name} has never mirrored it",
        remedy=its_topics(flow, state),
    )


async def _forget(
    flow: Flow,
    clusters: Clusters,
    target: ClusterEndpoint,
    known: KnownPair,
    done: Restarted,
    reason: Reason,
    *,
    dry_run: bool,
) -> Restarted:
    generation = Generation(-1)
    if not dry_run:
        async with fenced(flow, clusters, target, reason) as own:
            generation = own.generation
            await own.prove(clusters.target)
            key, value = forgotten_record(flow.name, done.target_topic, known)
            await clusters.target.append_plain(FLOWS_TOPIC, key, value)
    return Restarted(
        source_topic=done.source_topic,
        target_topic=done.target_topic,
        how="forgotten",
        generation=generation,
    )


async def _begin(
    flow: Flow,
    clusters: Clusters,
    target: ClusterEndpoint,
    state: FlowState,
    beginnings: Sequence[NewPosition],
    done: Restarted,
    reason: Reason,
    *,
    dry_run: bool,
) -> Restarted:
    """Positions first: until the pair is known with its new ids too, the topic stays parked as a whole."""
    generation, ends = Generation(-1), dict[TopicPartition, int]()
    if not dry_run:
        async with fenced(flow, clusters, target, reason) as own:
            generation = own.generation
            seen = await seen_again(clusters, beginnings)
            set_to = await commit_positions(flow, clusters, seen, own)
            ends |= {tp: int(end) for tp, end in set_to.items()}
            pairs = [each.pair for each in seen]
            await remember_pair(flow, clusters, state, pairs, generation)
            await record_positions(flow, clusters, "restart-topic", seen, set_to, reason, generation)
    return Restarted(
        source_topic=done.source_topic,
        target_topic=done.target_topic,
        how="begun anew",
        beginnings=tuple(
            (b.pair.source.partition, b.source_next, ends.get(b.pair.source, -1)) for b in beginnings
        ),
        generation=generation,
    )


async def _both(
    flow: Flow, clusters: Clusters, topic: str, mirror: str
) -> tuple[TopicMetadata | None, TopicMetadata | None]:
    """The topic on both sides; None: it isn't there."""
    found: list[TopicMetadata | None] = []
    for alias, wire, name in (
        (flow.source, clusters.source.wire, topic),
        (flow.target, clusters.target.wire, mirror),
    ):
        described = await agreed_topic(wire, name)
        if described.error not in (0, Code.UNKNOWN_TOPIC_OR_PARTITION):
            raise Unreachable(f"topic {name} of {alias}: {error_name(described.error)}")
        found.append(None if described.error else described)
    return found[0], found[1]


def _pairs(topic: str, here: TopicMetadata, mirror: str, there: TopicMetadata) -> list[Pair]:
    """Of the partitions that both have; the mirror grows in the next run, as always."""
    return [
        Pair(
            source=TopicPartition(topic, partition),
            target=TopicPartition(mirror, partition),
            source_topic_id=here.topic_id,
            target_topic_id=there.topic_id,
        )
        for partition in sorted(here.leaders.keys() & there.leaders.keys())
    ]


async def _is_another(flow: Flow, clusters: Clusters, known: KnownPair | None, pairs: list[Pair]) -> bool:
    """Whether one of the two isn't the topic any more that the flow began with."""
    ids = pairs[0].ids
    if known is not None and known.ids != ids:
        return True
    positions = await clusters.target.positions(flow.group, [p.target for p in pairs], stable=True)
    return any(isinstance(found, Position) and found.ids != ids for found in positions.values())


async def _beginnings(flow: Flow, clusters: Clusters, pairs: list[Pair]) -> list[NewPosition]:
    source, partitions = clusters.source, [p.source for p in pairs]
    ends = await source.list_offsets(dict.fromkeys(partitions, LATEST), isolation=READ_COMMITTED)
    log_starts = await source.log_starts(partitions)
    starts = await resolve_start(flow, source, partitions, ends, log_starts)
    target_end = await target_ends(clusters, pairs)
    found: list[NewPosition] = []
    for pair in pairs:
        start = starts[pair.source]
        if isinstance(start, Refused):
            raise Unreachable(f"where {pair.source} begins: {start}")
        found.append(
            NewPosition(
                pair=pair,
                source_next=int(start.offset),
                source_epoch=start.epoch,
                target_end=target_end[pair.target],
            )
        )
    return found
