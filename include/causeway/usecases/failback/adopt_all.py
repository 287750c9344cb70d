"""All partitions of a flow adopt at once, and its map gets what the other direction's map knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.lane_rules import is_covered
from causeway.core.failback.divergence import Divergence
from causeway.core.failback.map_handover import to_hand_over
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.identity import Generation, Pair, TargetOffset, TopicPartition
from causeway.core.model.flow import Flow
from causeway.core.offsets.map_format import encode_range
from causeway.core.offsets.offset_map import MappedRange, map_partition
from causeway.core.records.records import Record
from causeway.core.state.flow_state import FlowState
from causeway.usecases.failback.rebuild import turned_pair
from causeway.usecases.repair.adopt import remember_pair
from causeway.usecases.repair.record_positions import record_positions
from causeway.usecases.repair.set_positions import (
    NewPosition,
    Reason,
    commit_positions,
    fenced,
    refuse_leading_back,
)
from causeway.usecases.run_lock.command_fence import CommandFence
from causeway.usecases.run_lock.transactional_writer import PortionWriter
from causeway.usecases.session.both_clusters import Clusters, state_on
from causeway.usecases.session.pair_positions import read_pair_positions

_RUNS_AT_ONCE = 2_000
Ends = Mapping[TopicPartition, TargetOffset]


async def adopt_all(
    flow: Flow,
    clusters: Clusters,
    target: ClusterEndpoint,
    state: FlowState,
    beginnings: Sequence[NewPosition],
    reason: Reason,
) -> tuple[Generation, Ends]:
    """Where each is appended to, by source partition. Doing it again sets the same.

    :raises BadInput: one of them would bring records back to where they came from.
    """
    await refuse_leading_back(flow, clusters, beginnings)
    async with fenced(flow, clusters, target, reason) as own:
        generation = own.generation
        ends = await commit_positions(flow, clusters, beginnings, own)
        for members in _by_topic(beginnings):
            await remember_pair(flow, clusters, state, [each.pair for each in members], generation)
            await record_positions(flow, clusters, "adopt", members, ends, reason, generation)
    return generation, ends


def where_they_parted(cut: Divergence) -> NewPosition:
    return NewPosition(
        pair=turned_pair(cut),
        source_next=cut.written_from,
        source_epoch=cut.epoch,
        target_end=cut.old_end,
    )


def _by_topic(beginnings: Iterable[NewPosition]) -> list[list[NewPosition]]:
    found: dict[str, list[NewPosition]] = {}
    for each in beginnings:
        found.setdefault(each.pair.target.topic, []).append(each)
    return list(found.values())


async def hand_over(
    teller: Flow,
    told_at: WireTarget,
    flow: Flow,
    target: WireTarget,
    pairs: Sequence[Pair],
    generation: Generation,
    own: CommandFence,
) -> int:
    """The map of `teller`, kept at `told_at`, into the map of `flow` at `target`; how many runs that were.

    `pairs` are those of `flow`. After its adoption and under its fence, `own`: no lane writes meanwhile.
    """
    by_target = {pair.target: pair for pair in pairs}
    theirs = await told_at.map_runs(teller.map_topic, [pair.source for pair in pairs])
    state = await state_on(told_at, teller.name)
    positions = await read_pair_positions(
        teller, told_at, state, [pair.source for pair in pairs], stable=True
    )
    ours = await target.map_runs(flow.map_topic, list(by_target))
    count = await target.partitions_to_write(flow.map_topic)
    writer = await PortionWriter.claimed(flow, target, own)
    written = 0
    for tp, pair in by_target.items():
        known = [run for run in theirs[pair.source] if is_covered(run, positions[pair.source])]
        ids = (pair.source_topic_id, pair.target_topic_id)
        runs = to_hand_over(known, ours[tp], tp, ids, generation)
        place = TopicPartition(flow.map_topic, map_partition(tp, count))
        for first in range(0, len(runs), _RUNS_AT_ONCE):
            await writer.write(place, _records(runs[first : first + _RUNS_AT_ONCE], target))
        written += len(runs)
    return written


def _records(runs: Sequence[MappedRange], target: WireTarget) -> list[Record]:
    now_ms = target.wire.network.time_ms()
    return [Record(n, now_ms, *encode_range(run)) for n, run in enumerate(runs)]
