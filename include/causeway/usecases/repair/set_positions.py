"""Setting positions by hand: the flow is fenced for as long as it takes, then opened as it was.

Everything that sets a position without data goes through here, and nothing else ever does: fence, claim
every lane the flow ever had, say which pair it is and since which generation, commit.

Invariants
    A. The fence of a command is known by its token, and stands beside all others. It is taken away again
       whatever happens, Ctrl-C included, over connections of its own; where that can't be, the error says
       how to.
    B. After each claim, and before the first word that counts, the command proves that its own fence still
       stands: somebody may have lifted it while the command slept.
    C. A position is set only if the target ends where it did when it was looked at.
    D. What is written can be written again: a command that was broken off is simply repeated.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

from causeway import interruption
from causeway.brokers.admin.topics import ClusterAdmin
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.lanes import lane_of
from causeway.core.copy.ports import LaneFenced, LogEnd, OutcomeUnknown, Unreachable
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import BadInput, CausewayError, ClusterUnreachable, FlowHeld
from causeway.core.kernel.identity import Pair, SourceOffset, TargetOffset, TopicPartition
from causeway.core.model.flow import Flow
from causeway.core.offsets.map_format import encode_place
from causeway.core.offsets.offset_map import map_partition
from causeway.core.records.records import Record
from causeway.core.state.fences import COMMAND
from causeway.core.state.flow_state import FlowState
from causeway.core.state.position import Position
from causeway.core.state.repair_commands import adopt_command
from causeway.usecases.run_lock.command_fence import CommandFence
from causeway.usecases.run_lock.fence import claim_all_lanes
from causeway.usecases.run_lock.internal_topics import create_internal_topics
from causeway.usecases.run_lock.ownership import Terms, remember_clusters, write_fence, write_lift
from causeway.usecases.run_lock.reverse_flow import ReverseFlowReader
from causeway.usecases.run_lock.transactional_writer import PortionWriter
from causeway.usecases.session.blocking import blocking
from causeway.usecases.session.both_clusters import (
    Clusters,
    refuse_one_cluster,
    refuse_other_clusters,
    run_at_both,
    run_at_target,
)
from causeway.usecases.session.flows_topic_health import refuse_unsound

_PASSING = (Unreachable, OutcomeUnknown, LaneFenced)
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    by: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPosition:
    """Where a partition goes on: from `source_next` on, after whatever its target holds then."""

    pair: Pair
    source_next: int
    target_end: int
    """Where the target's log ended when it was looked at."""
    end_decided: bool = False
    """What the target held up to there showed where to continue."""
    source_epoch: int = -1
    """Of the record before `source_next`; -1: not known."""
    records: int = 0
    """Mirrored before, as far as known: counts go on."""
    aborted_records: int = 0
    stood_at: int = -1
    """The source offset where it would have gone on by itself; -1: not known."""


def run_command(
    flow: Flow,
    source: ClusterEndpoint,
    target: ClusterEndpoint,
    what: str,
    work: Callable[[Clusters, FlowState], Awaitable[T]],
) -> T:
    """What `work` gives, with both clusters and the flow's state, for a command that is called `what`.

    :raises BadInput: they aren't the flow's clusters. | :raises ClusterUnreachable: nothing is sure.
    """
    return run_at_both(source, target, lambda clusters: at_work(flow, clusters, what, work))


async def at_work(
    flow: Flow, clusters: Clusters, what: str, work: Callable[[Clusters, FlowState], Awaitable[T]]
) -> T:
    """As `run_command`, with connections that are open already."""
    refuse_one_cluster(flow, clusters)
    with trouble_of_command(flow, what):
        return await work(clusters, await checked_state(flow, clusters))


async def checked_state(flow: Flow, clusters: Clusters) -> FlowState:
    """:raises BadInput: they aren't the flow's clusters, or their flow in the other direction leads."""
    state = await clusters.flow_state(flow)
    refuse_other_clusters(flow, clusters, state)
    await refuse_unsound(flow, clusters.target, state)
    await ReverseFlowReader(flow, clusters).look_and_hold()
    return state


@contextmanager
def trouble_of_command(flow: Flow, what: str) -> Iterator[None]:
    """:raises ClusterUnreachable: one of the clusters didn't answer in the middle; nothing is sure."""
    try:
        yield
    except _PASSING as trouble:
        raise ClusterUnreachable(
            what,
            rule=str(trouble),
            remedy=f"run the same command again; `causeway status {flow.name}` tells whether a fence is "
            "left standing",
        ) from trouble


@asynccontextmanager
async def fenced(
    flow: Flow, clusters: Clusters, target: ClusterEndpoint, reason: Reason
) -> AsyncIterator[CommandFence]:
    """All lanes claimed, after a fence of its own."""
    raised = _CommandFence(flow, reason)
    try:
        yield await raised.write(clusters, ClusterAdmin(target))
    except BaseException as trouble:  # Ctrl-C too: the loop that it broke isn't used again
        _lower(raised, target, trouble)
        raise
    _lower(raised, target, None)


class _CommandFence:
    def __init__(self, flow: Flow, reason: Reason) -> None:
        self.flow, self.reason, self.token = flow, reason, uuid.uuid4().hex

    async def write(self, clusters: Clusters, admin: ClusterAdmin) -> CommandFence:
        flow, target, clock = self.flow, clusters.target, clusters.network
        existing = frozenset(await target.wire.topics(None))
        await blocking(lambda: create_internal_topics(flow, admin, existing))
        by, because = self.reason.by, self.reason.because
        generation = await write_fence(
            target, clock, flow, by=by, because=because, terms=Terms(token=self.token, owner=COMMAND)
        )
        state = await target.flow_state(flow.name)
        await claim_all_lanes(target, clock, flow, state)
        await ReverseFlowReader(flow, clusters).look_and_hold()  # it may have been opened a moment ago
        if state.source_cluster_id is None:
            await remember_clusters(
                target,
                flow.name,
                source_id=clusters.source.wire.cluster_id,
                target_id=target.wire.cluster_id,
            )
        return CommandFence(flow.name, self.token, generation)

    async def lower(self, target: WireTarget) -> None:
        flow, clock = self.flow, target.wire.network
        own = (await target.flow_state(flow.name)).fences.get(self.token)
        if own is not None:
            by, because = self.reason.by, self.reason.because
            await write_lift(target, clock, flow, own, by=by, because=because)


def _lower(own: _CommandFence, endpoint: ClusterEndpoint, trouble: BaseException | None) -> None:
    left = (
        f"the fence of this command may still stand: `causeway status {own.flow.name}` shows it, and "
        f'`causeway lift {own.flow.name} --because "..."` lifts it, with --fence N where several stand'
    )
    try:
        with interruption.whole():
            run_at_target(endpoint, own.lower)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(left) from trouble
    except (*_PASSING, CausewayError) as second:
        if isinstance(trouble, KeyboardInterrupt):
            raise KeyboardInterrupt(left) from second
        raise ClusterUnreachable(f"flow {own.flow.name}", rule=str(second), remedy=left) from second


async def refuse_leading_back(flow: Flow, clusters: Clusters, beginnings: Sequence[NewPosition]) -> None:
    """:raises BadInput: one of them would bring back to the target what the target's own flow wrote."""
    other = await ReverseFlowReader(flow, clusters).look()
    if other is None:
        return
    for each in beginnings:
        source, wrote_to = each.pair.source, other.end_of(each.pair)
        if each.source_next < wrote_to:
            raise BadInput(
                f"source offset of {source}",
                value=each.source_next,
                rule=f"must be {wrote_to} or more: what lies before it is what flow {other.flow} wrote "
                f"there, and would come back to {flow.target}",
                remedy=adopt_command(flow.name, source, wrote_to),
            )


async def seen_again(clusters: Clusters, beginnings: Iterable[NewPosition]) -> list[NewPosition]:
    """After the fence: until it stood, the flow's own run may have written what wasn't there at the first
    look. Where its end showed where to continue, that isn't true any more."""
    members = list(beginnings)
    ends = await target_ends(clusters, [each.pair for each in members])
    return [
        each if each.end_decided else replace(each, target_end=ends[each.pair.target]) for each in members
    ]


async def target_ends(clusters: Clusters, pairs: Sequence[Pair]) -> dict[TopicPartition, int]:
    found = await clusters.target.log_ends([pair.target for pair in pairs])
    ends: dict[TopicPartition, int] = {}
    for tp, end in found.items():
        if not isinstance(end, LogEnd):
            raise Unreachable(f"end of {tp}: {end}")
        ends[tp] = end.offset
    return ends


async def commit_positions(
    flow: Flow,
    clusters: Clusters,
    beginnings: Sequence[NewPosition],
    own: CommandFence,
    remember: Callable[[], Awaitable[None]] | None = None,
) -> dict[TopicPartition, TargetOffset]:
    """One transaction without data for each lane; where each one is appended to, by source partition.

    `remember` what has to be known before the first of them, once it is proved that they may come.
    """
    lanes: dict[int, list[NewPosition]] = {}
    for beginning in beginnings:
        lanes.setdefault(lane_of(beginning.pair.target, flow.lanes), []).append(beginning)
    ends: dict[TopicPartition, TargetOffset] = {}
    for lane, members in lanes.items():
        ends |= await _commit_lane(flow, clusters, lane, members, own, remember)
        remember = None
    return ends


async def _commit_lane(
    flow: Flow,
    clusters: Clusters,
    lane: int,
    members: Sequence[NewPosition],
    own: CommandFence,
    remember: Callable[[], Awaitable[None]] | None,
) -> dict[TopicPartition, TargetOffset]:
    target, clock = clusters.target, clusters.network
    owner = await target.claim(flow.transactional_id(lane), timeout_ms=flow.limits.transaction_timeout_ms)
    await own.prove(target)
    found = await target.log_ends([each.pair.target for each in members])
    positions: dict[TopicPartition, Position] = {}
    for each in members:
        end = found[each.pair.target]
        if not isinstance(end, LogEnd):
            raise Unreachable(f"end of {each.pair.target}: {end}")
        _refuse_growth(each, end.offset)
        positions[each.pair.target] = Position(
            source_next=SourceOffset(each.source_next),
            target_next=TargetOffset(end.offset),
            source_topic_id=each.pair.source_topic_id,
            target_topic_id=each.pair.target_topic_id,
            source_epoch=each.source_epoch,
            target_epoch=end.leader_epoch,
            generation=own.generation,
            producer_id=owner.producer.producer_id,
            time_ms=clock.time_ms(),
            records=each.records,
            aborted_records=each.aborted_records,
            is_placed=True,
        )
    if remember is not None:
        await remember()
    await _append_places(flow, PortionWriter(target, owner, own), positions)
    await owner.commit_positions(flow.group, positions)
    await owner.end(commit=True)
    return {each.pair.source: positions[each.pair.target].target_next for each in members}


async def _append_places(
    flow: Flow, writer: PortionWriter, positions: Mapping[TopicPartition, Position]
) -> None:
    """Into the offset map, in the transaction that commits them: committed offsets expire."""
    count = await writer.target.partitions_to_write(flow.map_topic)
    now_ms = writer.target.wire.network.time_ms()
    records: dict[TopicPartition, list[Record]] = {}
    for tp, position in positions.items():
        mine = records.setdefault(TopicPartition(flow.map_topic, map_partition(tp, count)), [])
        mine.append(Record(len(mine), now_ms, *encode_place(tp, position)))
    for at, places in records.items():
        await writer.append(at, places)


def _refuse_growth(each: NewPosition, end: int) -> None:
    if end != each.target_end:
        raise FlowHeld(
            f"mirror {each.pair.target}",
            value=end,
            rule=f"ended at {each.target_end} when it was looked at: somebody writes there",
            remedy="stop them, and run the same command again",
        )
