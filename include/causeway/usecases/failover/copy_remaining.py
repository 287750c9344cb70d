"""A planned failover: prove that nobody writes any more, then mirror what is left, to the last record.

Nothing of it has to be remembered: killed anywhere and run again, it is simply made again. What counts is the
proof after the fence, where neither side can move on unseen: each position stands at its source's end.
"""

from __future__ import annotations

from uuid import uuid4

from causeway.brokers.transport.lagging_nodes import known_topics
from causeway.brokers.wire.consumer_groups import ConsumerGroups
from causeway.brokers.wire.log_reader import LATEST, READ_COMMITTED, READ_UNCOMMITTED, WireLogReader
from causeway.core.copy.ports import LogEnd, Unreachable
from causeway.core.copy.report import RunReport
from causeway.core.failover.plan import FailoverPlan
from causeway.core.failover.request import FailoverRequest, Mode
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import BadInput, ClusterUnreachable
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.plurals import some
from causeway.core.model.flow import Flow
from causeway.core.model.group_filter import FlowGroups
from causeway.core.model.naming import is_heartbeats
from causeway.core.state.flow_state import FlowState
from causeway.core.state.position import Position
from causeway.core.topics.plan import is_wanted
from causeway.usecases.copy.blocking_driver import copy_flow
from causeway.usecases.copy.planning import survey_topics
from causeway.usecases.copy.run import RunOptions
from causeway.usecases.copy.worker import LaneWorker
from causeway.usecases.groups.sync import sync_groups
from causeway.usecases.repair.set_positions import run_command
from causeway.usecases.run_lock.ownership import RunOwner, Say
from causeway.usecases.session.both_clusters import Clusters
from causeway.usecases.session.pair_positions import read_pair_positions
from causeway.usecases.session.source_may_be_gone import FlowSession

_LOOK_EVERY_SECONDS = 1.0
Ends = dict[TopicPartition, int]


def drain(
    flow: Flow,
    source: ClusterEndpoint,
    target: ClusterEndpoint,
    selection: FlowGroups,
    *,
    still_seconds: float,
    by: str,
    say: Say,
) -> None:
    """:raises BadInput: somebody still writes, or something can't be mirrored; no group has been moved."""

    async def watch(clusters: Clusters, state: FlowState) -> Ends:
        return await prove_no_writes(flow, clusters, state, still_seconds)

    ends = run_command(flow, source, target, f"failover of {flow.name}", watch)
    quiet = f"{len(ends)} partitions of {flow.source} did not move for {still_seconds:g} s"
    say(f"{flow.name}: nobody writes: {quiet}")
    report = copy_rest(flow, source, target, by=by, say=say)
    say(f"{flow.name}: {report.records:,} records were left to copy; lag {report.lag}")
    if not selection.is_off:
        sync_groups(flow, selection, source, target, say, writes=True)


async def prove_no_writes(flow: Flow, clusters: Clusters, state: FlowState, seconds: float) -> Ends:
    """The ends of all that the flow mirrors, after watching them so long.

    :raises BadInput: some moved, or a transaction is open on them; names the topics.
    """
    landscape = await survey_topics(flow, clusters.source, clusters.target, state)
    partitions = [
        TopicPartition(topic.source, p)
        for topic in landscape.topics.mirrored
        if not is_heartbeats(topic.source)
        for p in range(topic.partitions)
    ]
    first = await _ends(clusters.source, partitions, READ_UNCOMMITTED)
    deadline = clusters.network.monotonic() + seconds
    while (left := deadline - clusters.network.monotonic()) > 0:
        await clusters.network.sleep(min(left, _LOOK_EVERY_SECONDS))
        now = await _ends(clusters.source, partitions, READ_UNCOMMITTED)
        moved = {tp.topic for tp in partitions if now[tp] != first[tp]}
        if moved:
            raise _refusal(flow, moved, "are still written to", "stop their writers, then run it again")
    stable = await _ends(clusters.source, partitions, READ_COMMITTED)
    if undecided := {tp.topic for tp in partitions if stable[tp] != first[tp]}:
        remedy = "let its producer end it, or abort it with kafka-transactions.sh, then run it again"
        raise _refusal(flow, undecided, "have an open transaction", remedy)
    return first


def _refusal(flow: Flow, topics: set[str], rule: str, remedy: str) -> BadInput:
    return BadInput(f"topics of {flow.source}", value=some(sorted(topics)), rule=rule, remedy=remedy)


async def _ends(reader: WireLogReader, partitions: list[TopicPartition], isolation: int) -> Ends:
    found = await reader.list_offsets(dict.fromkeys(partitions, LATEST), isolation=isolation)
    ends: Ends = {}
    for tp, end in found.items():
        if not isinstance(end, LogEnd):
            raise Unreachable(f"end of {tp}: {end}")
        ends[tp] = end.offset
    return ends


def copy_rest(
    flow: Flow, source: ClusterEndpoint, target: ClusterEndpoint, *, by: str, say: Say
) -> RunReport:
    """A run of the mirror in this process: what is left is little, and Spark may not be at hand. Takes over.

    :raises BadInput: something is parked or waits; names it, with its lag.
    """
    worker = LaneWorker(source, target)
    holder = RunOwner(name=by, run_id=f"{by} {uuid4().hex}")
    options = RunOptions(holder=holder, run_for_seconds=None, to_the_last_record=True, take_over=True)
    try:
        report = copy_flow(
            flow, source, target, lambda tasks: [worker.run(task) for task in tasks], options, say
        )
    finally:
        worker.close()
    if report.parked or report.lag:
        behind = [f"{p.source} (lag {p.lag:,})" for p in report.partitions.values() if p.parked or p.lag]
        raise BadInput(
            f"mirror of {flow.name}",
            value=some(behind),
            rule=f"can't be brought to its end: lag {report.lag:,}, {len(report.parked)} partitions parked",
            remedy=f"`causeway status {flow.name}` says why, with a command for each; no group was moved",
        )
    return report


async def left_behind(flow: Flow, sides: FlowSession) -> tuple[str, ...]:
    """After the fence: what the source has and the mirror will never get; nothing of it is final."""
    state = await sides.target.flow_state(flow.name)
    found = await sides.of_source(lambda reader: _left_behind(flow, sides, reader, state))
    return (f"{flow.source} can't be asked: {sides.silent}",) if found is None else found


async def _left_behind(
    flow: Flow, sides: FlowSession, reader: WireLogReader, state: FlowState
) -> tuple[str, ...]:
    pairs = {
        name: pair
        for name, pair in state.pairs.items()
        if is_wanted(flow, pair.source_topic) and not is_heartbeats(pair.source_topic)
    }
    known = {pair.source_topic: pair.source_topic_id for pair in pairs.values()}
    topics = await known_topics(reader.wire, known)
    source_of = {
        TopicPartition(name, p): TopicPartition(pair.source_topic, p)
        for name, pair in pairs.items()
        for p in topics[pair.source_topic].leaders
    }
    ends = await _ends(reader, list(source_of.values()), READ_UNCOMMITTED)
    starts = await reader.log_starts(list(source_of.values()))
    positions = await read_pair_positions(
        flow, sides.target, state, list(source_of), stable=True, marked=True
    )
    behind: list[str] = []
    for tp, origin in source_of.items():
        position, is_begun = positions[tp], tp.partition < state.pairs[tp.topic].partitions
        reached = position.source_next if isinstance(position, Position) else starts[origin]
        if position is None and is_begun and ends[origin]:
            behind.append(f"{origin} ends at {ends[origin]:,}, and how far it is mirrored isn't known")
        elif reached != ends[origin]:
            behind.append(f"{origin} ends at {ends[origin]:,} and is mirrored to {reached}")
    return tuple(sorted(behind))


def refuse_without_source(flow: Flow, sides: FlowSession, wish: FailoverRequest) -> None:
    """What is planned loses nothing, and nobody can promise that of a source that is silent.

    :raises ClusterUnreachable: it can't be asked.
    """
    if not (wish.is_planned and sides.silent):
        return
    gone = f"`causeway failover {flow.name} --at latest` is for a source that is gone, and says what is lost"
    raise ClusterUnreachable(
        f"planned failover of {flow.name}",
        rule=f"needs {flow.source}, which can't be asked: {sides.silent}",
        remedy="run it again once that cluster answers" if wish.mode is Mode.HOME else gone,
    )


async def refuse_readers(flow: Flow, sides: FlowSession, plan: FailoverPlan) -> None:
    """A consumer that goes on reading the source moves its group on without the failover's knowledge.

    :raises BadInput: one is at work there. | :raises ClusterUnreachable: the source can't be asked.
    """
    listed = await sides.of_source(lambda reader: ConsumerGroups(reader.wire).listed())
    refuse_without_source(flow, sides, plan.wish)
    assert listed is not None
    active = [group for group in plan.groups if group in listed and listed[group].is_active]
    if active:
        only = "" if plan.wish.mode is Mode.HOME else "; --groups moves only those that you name"
        raise BadInput(
            f"consumer groups with members on {flow.source}",
            value=some(active),
            rule="would go on there",
            remedy=f"stop their consumers, then run the same command again{only}",
        )
