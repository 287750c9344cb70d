"""Groups of a flow: which they are, what is known of them, the work in one task or in several.

Safe beside a run of the flow's copy, and beside another one of itself: everything that it writes is a lower
bound of what is true a moment later, and the next run corrects what an older one wrote last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from causeway.brokers.admin.topics import ClusterAdmin
from causeway.brokers.transport.connection import Wire
from causeway.brokers.transport.topic_metadata import TopicMetadata
from causeway.brokers.wire.consumer_groups import ConsumerGroups
from causeway.core.copy.ports import OutcomeUnknown, Unreachable
from causeway.core.groups.report import GroupsReport
from causeway.core.groups.sync_rules import Outcome
from causeway.core.groups.task import GroupTask, GroupTaskResult, cut_task, together
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import ClusterUnreachable
from causeway.core.kernel.identity import Pair, TopicPartition
from causeway.core.kernel.timestamps import rfc3339
from causeway.core.model.flow import Flow
from causeway.core.model.group_filter import FlowGroups
from causeway.core.offsets.offset_map import MAP_PARTITIONS
from causeway.core.state.flow_state import FlowState
from causeway.core.state.known_pairs import KnownPair
from causeway.usecases.groups.share import work_on_groups
from causeway.usecases.run_lock.internal_topics import create_missing_topics, group_topics
from causeway.usecases.run_lock.ownership import Say, refuse_fenced
from causeway.usecases.session.blocking import blocking
from causeway.usecases.session.both_clusters import (
    Clusters,
    refuse_one_cluster,
    refuse_other_clusters,
    run_at_both,
)
from causeway.usecases.session.flows_topic_health import refuse_unsound

MOST_IN_ONE_TASK = 200_000
"""Groups times partitions that are worked on here, without Spark."""
_ROWS_IN_ALL = 20_000
_SAY_SECONDS = 2.0

CarryGroups = Callable[[Sequence[GroupTask]], list[GroupTaskResult]]


def sync_groups(
    flow: Flow,
    groups: FlowGroups,
    source: ClusterEndpoint,
    target: ClusterEndpoint,
    say: Say,
    *,
    writes: bool,
    carry: CarryGroups | None = None,
) -> GroupsReport:
    """Checkpoints, offset syncs and group offsets of a flow, once; without `carry` (Spark) it is done here.

    :raises FlowFenced: the flow is closed, perhaps because its groups have moved: nothing is written.
    """

    async def work(clusters: Clusters) -> GroupsReport:
        refuse_one_cluster(flow, clusters)
        began = clusters.network.monotonic()
        with _trouble_of_groups(flow, "run it again: nothing is half done"):
            found = await survey_groups(flow, groups, clusters)
            refuse_other_clusters(flow, clusters, found.state)
            if writes:
                await _prepare(flow, groups, clusters, found)
            task = replace(found.task, writes=writes)
            result = await _carried(task, clusters, say, carry)
        now_ms = clusters.network.time_ms()
        return GroupsReport(
            flow=flow.name,
            began_at=rfc3339(now_ms),
            at_ms=now_ms,
            seconds=clusters.network.monotonic() - began,
            wrote=writes,
            syncs_offsets=groups.sync_offsets,
            groups=task.groups,
            excluded=found.excluded,
            result=result,
            fenced="" if found.state.fence is None else str(found.state.fence),
        )

    return run_at_both(source, target, work)


async def _prepare(flow: Flow, groups: FlowGroups, clusters: Clusters, found: GroupsSeen) -> None:
    """:raises FlowFenced: nothing may be written. | :raises ProtocolFault: nothing is sure."""
    await refuse_unsound(flow, clusters.target, found.state)
    refuse_fenced(flow.name, found.state)
    topics, admin = group_topics(flow, groups), ClusterAdmin(clusters.target.wire.endpoint)
    await blocking(lambda: create_missing_topics(topics, admin, found.existing))


async def _carried(
    task: GroupTask, clusters: Clusters, say: Say, carry: CarryGroups | None
) -> GroupTaskResult:
    if carry is None:
        return await _work_here(task, clusters, say)
    return together(await blocking(lambda: carry(shares_of(task))))


@contextmanager
def _trouble_of_groups(flow: Flow, remedy: str) -> Iterator[None]:
    """:raises ClusterUnreachable: a cluster didn't answer in the middle."""
    try:
        yield
    except (Unreachable, OutcomeUnknown) as trouble:
        raise ClusterUnreachable(f"groups of flow {flow.name}", rule=str(trouble), remedy=remedy) from trouble


def weigh_groups(flow: Flow, groups: FlowGroups, source: ClusterEndpoint, target: ClusterEndpoint) -> int:
    """Groups times partitions: whether it is worth starting Spark."""

    async def work(clusters: Clusters) -> int:
        with _trouble_of_groups(flow, "run it again"):
            task = (await survey_groups(flow, groups, clusters)).task
        return len(task.groups) * len(task.pairs)

    return run_at_both(source, target, work)


def shares_of(task: GroupTask) -> tuple[GroupTask, ...]:
    return cut_task(
        task,
        shares=MAP_PARTITIONS,
        map_partitions=MAP_PARTITIONS,
        most_rows=_ROWS_IN_ALL // MAP_PARTITIONS,
    )


async def _work_here(task: GroupTask, clusters: Clusters, say: Say) -> GroupTaskResult:
    clock, said_at = clusters.network, clusters.network.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal said_at
        if clock.monotonic() - said_at >= _SAY_SECONDS:
            said_at = clock.monotonic()
            say(f"{task.flow}: {done:,} of {total:,} groups")

    return await work_on_groups(task, clusters.source, clusters.target, tell)


def work_alone(task: GroupTask, source: ClusterEndpoint, target: ClusterEndpoint) -> GroupTaskResult:
    """The same with connections of its own, for an executor.

    :raises ClusterUnreachable: nothing is known; what was committed stays.
    """
    try:
        return run_at_both(source, target, lambda at: work_on_groups(task, at.source, at.target))
    except (Unreachable, OutcomeUnknown) as trouble:
        raise ClusterUnreachable(
            f"groups of flow {task.flow}", rule=str(trouble), remedy="run it again"
        ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsSeen:
    state: FlowState
    task: GroupTask
    excluded: Mapping[str, str]
    """Groups of the source that aren't selected, and why not."""
    existing: frozenset[str]
    """Topics of the target."""


async def survey_groups(flow: Flow, groups: FlowGroups, clusters: Clusters) -> GroupsSeen:
    """Which groups are there, and which pairs of partitions can be translated."""
    source, target = clusters.source.wire, clusters.target.wire
    state = await clusters.flow_state(flow)
    here = await ConsumerGroups(source).listed()
    there = await ConsumerGroups(target).listed()
    existing = await target.topics(None)
    pairs, unfit = _pairs(state, await _topics_of(source, state), existing)
    task = GroupTask(
        flow=flow.name,
        position_group=flow.group,
        map_topic=flow.map_topic,
        checkpoints_topic=flow.checkpoints_topic,
        syncs_topic=flow.syncs_topic,
        topics=flow.topics,
        rules=groups,
        groups=tuple(sorted({name for name in here if groups.selects(name)} | groups.named)),
        active=frozenset(name for name, group in there.items() if group.is_active),
        pairs=tuple(pairs),
        unfit=tuple(unfit),
    )
    excluded = {name: why for name in sorted(here) if (why := groups.why_excluded(name))}
    return GroupsSeen(state=state, task=task, excluded=excluded, existing=frozenset(existing))


async def _topics_of(source: Wire, state: FlowState) -> dict[str, TopicMetadata]:
    names = sorted({pair.source_topic for pair in state.pairs.values()})
    return await source.topics(names) if names else {}


Unfit = tuple[TopicPartition, Outcome, str]


def _pairs(
    state: FlowState, here: Mapping[str, TopicMetadata], there: Mapping[str, TopicMetadata]
) -> tuple[list[Pair], list[Unfit]]:
    """By what the flow has written, whatever its list of topics says now: what is mirrored can be
    translated."""
    pairs: list[Pair] = []
    unfit: list[Unfit] = []
    for name, known in sorted(state.pairs.items()):
        source, target = here[known.source_topic], there.get(name)
        for number in sorted(source.leaders) or range(known.partitions):
            tp = TopicPartition(known.source_topic, number)
            trouble = _trouble(known, source, target, name, number)
            if trouble is not None:
                unfit.append((tp, *trouble))
                continue
            pairs.append(
                Pair(
                    source=tp,
                    target=TopicPartition(name, number),
                    source_topic_id=known.source_topic_id,
                    target_topic_id=known.target_topic_id,
                )
            )
    return pairs, unfit


def _trouble(
    known: KnownPair, source: TopicMetadata, target: TopicMetadata | None, name: str, number: int
) -> tuple[Outcome, str] | None:
    if target is None or number not in target.leaders:
        return Outcome.MISSING, f"{TopicPartition(name, number)} isn't on the target"
    if source.error:
        return Outcome.MISSING, f"{known.source_topic} can't be seen on the source"
    if source.topic_id != known.source_topic_id:
        return Outcome.OTHER_GENERATION, f"{known.source_topic} was recreated on the source"
    if target.topic_id != known.target_topic_id:
        return Outcome.OTHER_GENERATION, f"{name} was recreated on the target"
    return None
