"""All partitions of a flow adopt at once, and its map is told what the other direction's map knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from causeway.brokers.target_log import WireTarget
from causeway.core.endpoint import ClusterEndpoint
from causeway.core.failback.handover import to_hand_over
from causeway.core.flow import Flow
from causeway.core.flow_state import FlowState
from causeway.core.identity import Generation, Pair, TargetOffset, TopicPartition
from causeway.core.lane_rules import is_covered
from causeway.core.map_format import encode_run
from causeway.core.offset_map import Run, map_partition
from causeway.core.records import Record
from causeway.flows.adopt import remember_pair
from causeway.flows.by_hand import (
    Beginning,
    Reason,
    commit_beginnings,
    enter_beginnings,
    fenced,
    refuse_leading_back,
)
from causeway.flows.clusters import Clusters, state_on
from causeway.flows.own_fence import OwnFence
from causeway.flows.standing import where_they_stand
from causeway.flows.writing import PortionWriter

_RUNS_AT_ONCE = 2_000
Ends = Mapping[TopicPartition, TargetOffset]


def adopt_all(
    flow: Flow,
    clusters: Clusters,
    target: ClusterEndpoint,
    state: FlowState,
    beginnings: Sequence[Beginning],
    reason: Reason,
) -> tuple[Generation, Ends]:
    """Where each is appended to, by source partition. Doing it again sets the same.

    :raises BadInput: one of them would bring records back to where they came from.
    """
    run = clusters.network.run
    run(lambda: refuse_leading_back(flow, clusters, beginnings))
    with fenced(flow, clusters, target, reason) as own:
        generation = own.generation
        ends = run(lambda: commit_beginnings(flow, clusters, beginnings, own))
        for members in _by_topic(beginnings):
            _remember(flow, clusters, state, [each.pair for each in members], generation)
            _enter(flow, clusters, members, ends, reason, generation)
    return generation, ends


def _by_topic(beginnings: Iterable[Beginning]) -> list[list[Beginning]]:
    found: dict[str, list[Beginning]] = {}
    for each in beginnings:
        found.setdefault(each.pair.target.topic, []).append(each)
    return list(found.values())


def _remember(
    flow: Flow, clusters: Clusters, state: FlowState, pairs: Sequence[Pair], generation: Generation
) -> None:
    clusters.network.run(lambda: remember_pair(flow, clusters, state, pairs, generation))


def _enter(
    flow: Flow,
    clusters: Clusters,
    members: Sequence[Beginning],
    ends: Ends,
    reason: Reason,
    generation: Generation,
) -> None:
    clusters.network.run(lambda: enter_beginnings(flow, clusters, "adopt", members, ends, reason, generation))


async def hand_over(
    teller: Flow,
    told_at: WireTarget,
    flow: Flow,
    target: WireTarget,
    pairs: Sequence[Pair],
    generation: Generation,
    own: OwnFence,
) -> int:
    """The map of `teller`, kept at `told_at`, into the map of `flow` at `target`; how many runs that were.

    `pairs` are those of `flow`. Behind its adoption and under its fence, `own`: no lane writes meanwhile.
    """
    by_target = {pair.target: pair for pair in pairs}
    theirs = await told_at.map_runs(teller.map_topic, [pair.source for pair in pairs])
    state = await state_on(told_at, teller.name)
    positions = await where_they_stand(teller, told_at, state, [pair.source for pair in pairs], stable=True)
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


def _records(runs: Sequence[Run], target: WireTarget) -> list[Record]:
    now_ms = target.wire.network.time_ms()
    return [Record(n, now_ms, *encode_run(run)) for n, run in enumerate(runs)]
