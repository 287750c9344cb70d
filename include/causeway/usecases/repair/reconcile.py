"""Reconcile: find again where a partition stands, from positions, the map and the records themselves.

The nearest thing that is known comes first: the flow's own position; what the map says of a tail that was
lost; the position of a flow that was called otherwise. From there the target's tail is compared with the
source, record by record: what is the source's counts as mirrored, what is foreign stays where it lies. With
nothing known, the target's last records are looked for in the source; they have to be there just once.

Nothing is guessed: where that leads nowhere, a person has to adopt.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from causeway.brokers.admin.record_reader import RecordReader
from causeway.core.copy.lane_rules import range_before, target_tail_is_lost
from causeway.core.copy.lane_task import Assignment
from causeway.core.copy.ports import EpochEnd, LogEnd, Refused, Unreachable
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import BadInput
from causeway.core.kernel.identity import Pair, SourceOffset, TargetOffset, TopicPartition
from causeway.core.model.flow import Flow
from causeway.core.offsets.pair_position import where_it_was_left
from causeway.core.state.flow_state import FlowState
from causeway.core.state.position import Position
from causeway.core.state.repair_commands import adopt_remedy, restart_remedy
from causeway.core.verify.tail_search import Followed, Search, ShownRecord, follow
from causeway.usecases.repair.adopt import Adopted, go_on_at
from causeway.usecases.repair.asked_partition import pair_at, refuse_of_another_flow
from causeway.usecases.repair.set_positions import (
    NewPosition,
    Reason,
    run_command,
)
from causeway.usecases.run_lock.fence import fence_for_people
from causeway.usecases.session.blocking import blocking
from causeway.usecases.session.both_clusters import Clusters
from causeway.usecases.session.pair_positions import kept_of

_SAMPLE_RECORDS = 16
_FIRST_STRETCH = 1_000
_OWN_POSITION = "the flow's position"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a partition is known to have stood, and by what."""

    source_next: int
    target_next: int
    told_by: str
    other: str | None = None
    """The flow that wrote it under another name."""
    source_epoch: int = -1
    records: int = 0
    aborted_records: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    beginning: NewPosition
    told_by: str
    other: str | None = None
    found: int = 0
    """Records after the place that was known, which are the source's."""
    foreign: int = 0
    """And those that aren't: they stay where they lie."""

    @property
    def is_news(self) -> bool:
        return self.told_by != _OWN_POSITION or bool(self.found or self.foreign)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    found: Found
    adopted: Adopted | None
    """None: it stands where its own position says, and nothing lies after that."""


def reconcile_partition(
    flow: Flow,
    source: ClusterEndpoint,
    target: ClusterEndpoint,
    at: TopicPartition,
    reason: Reason,
    *,
    dry_run: bool = False,
) -> Reconciled:
    """:raises BadInput: where it stands can't be found; nothing is written then."""

    async def work(clusters: Clusters, state: FlowState) -> Reconciled:
        refuse_of_another_flow(flow, state, at.topic)
        reconciling = _Reconciling(flow, clusters, source, target, state)
        pair = await pair_at(flow, clusters, at)
        found = await reconciling.find(pair)  # before anybody is disturbed
        if not found.is_news:
            return Reconciled(found=found, adopted=None)
        if not dry_run and found.other is not None:
            named = replace(flow, name=found.other)
            because = f"renamed to {flow.name}: {reason.because}"
            await fence_for_people(clusters.target, clusters.network, named, by=reason.by, because=because)
            found = await reconciling.find(pair)
        adopted = await go_on_at(
            flow,
            clusters,
            target,
            state,
            found.beginning,
            reason,
            how="reconcile",
            dry_run=dry_run,
        )
        return Reconciled(found=found, adopted=adopted)

    return run_command(flow, source, target, f"reconciliation of {at}", work)


def partitions_of(flow: Flow, source: ClusterEndpoint, target: ClusterEndpoint, topic: str) -> list[int]:
    """Those that the source's topic has."""

    async def work(clusters: Clusters, state: FlowState) -> list[int]:
        refuse_of_another_flow(flow, state, topic)
        return sorted((await clusters.source.wire.topics([topic]))[topic].leaders) or [0]

    return run_command(flow, source, target, f"partitions of {topic}", work)


class _Reconciling:
    def __init__(
        self,
        flow: Flow,
        clusters: Clusters,
        source: ClusterEndpoint,
        target: ClusterEndpoint,
        state: FlowState,
    ) -> None:
        self._flow, self._clusters, self._state = flow, clusters, state
        self._source, self._target = source, target

    def other_flow(self, pair: Pair) -> str | None:
        """The name under which this mirror was written, if it wasn't this one.

        :raises BadInput: that flow had another source.
        """
        for name, state in self._clusters.target.other_flows(self._flow.name).items():
            known = state.pairs.get(pair.target.topic)
            if known is None or known.target_topic_id != pair.target_topic_id:
                continue
            if state.source_cluster_id not in (None, self._clusters.source.wire.cluster_id):
                raise BadInput(
                    f"flow {name}",
                    rule=f"mirrored cluster {state.source_cluster_id} to {pair.target.topic}, not this one",
                    remedy="give one of the two mirrors another name",
                )
            return name
        return None

    async def find(self, pair: Pair) -> Found:
        place = await self._place(pair)
        return await blocking(lambda: self._compare(pair, place))

    def _compare(self, pair: Pair, place: Place | None) -> Found:
        with (
            RecordReader(self._source, as_mirrored=True) as source,
            RecordReader(self._target) as target,
        ):
            start, end = target.bounds(pair.target)
            if place is None:
                return self._search(pair, source, target, start, end)
            target.open(pair.target, max(place.target_next, start), end)
            done = _follow(pair, place, source, target)
        return Found(
            beginning=NewPosition(
                pair=pair,
                source_next=done.source_next,
                target_end=end,
                end_decided=True,
                source_epoch=-1 if done.found else place.source_epoch,
                records=place.records + done.found,
                aborted_records=place.aborted_records,
            ),
            told_by=place.told_by,
            other=place.other,
            found=done.found,
            foreign=done.foreign,
        )

    async def _place(self, pair: Pair) -> Place | None:
        """The nearest place that is known; None: only the records can tell."""
        before = self._state.pairs.get(pair.target.topic)
        adopted_at = before.adopted_at_of(pair.target.partition) if before else -1
        assignment = _assignment(pair, adopted_at)
        own = await self._position(self._flow.group, pair)
        if own is not None:
            return await self._kept(pair, assignment, own, _OWN_POSITION)
        known = (await self._clusters.target.map_of(self._flow.map_topic, [pair.target]))[pair.target]
        stood = where_it_was_left(pair, kept_of(self._state, pair, known))
        other = self.other_flow(pair)
        theirs = await self._position(f"causeway.{other}", pair) if other else None
        if other is not None and theirs is None and before is None:
            of_other = self._clusters.target.other_flows(self._flow.name)[other]
            stood = where_it_was_left(pair, kept_of(of_other, pair, known))
        if theirs is not None and (stood is None or theirs.generation >= stood.generation):
            return await self._kept(pair, assignment, theirs, f"the position of flow {other}", other)
        if stood is not None:
            return await self._kept(pair, assignment, stood, "the offset map", None if before else other)
        if assignment.adopted_at >= 0:
            raise self._untold(pair, "the last position was set by hand and is lost, and the map is older")
        return None

    async def _kept(
        self, pair: Pair, assignment: Assignment, position: Position, told_by: str, other: str | None = None
    ) -> Place | None:
        """The position, or what the map knows before it if the target lost its tail."""
        kept = await self._kept_of_target(pair, position)
        if kept < position.target_next:
            return await self._place_in_front(pair, assignment, kept, other)
        return Place(
            source_next=position.source_next,
            target_next=position.target_next,
            told_by=told_by,
            other=other,
            source_epoch=position.source_epoch,
            records=position.records,
            aborted_records=position.aborted_records,
        )

    async def _position(self, group: str, pair: Pair) -> Position | None:
        """:raises BadInput: it is about other topics of these names."""
        found = (await self._clusters.target.positions(group, [pair.target], stable=True))[pair.target]
        if not isinstance(found, Position):
            return None
        if found.ids != pair.ids:
            raise BadInput(
                f"position of {pair.target}",
                rule="is about a topic of that name that is gone",
                remedy=restart_remedy(self._flow.name, pair.source.topic),
            )
        return found

    async def _kept_of_target(self, pair: Pair, position: Position) -> int:
        """Up to where the target still has what was mirrored; its own retention aside."""
        target, tp, epoch = self._clusters.target, pair.target, position.target_epoch
        start, end = (await target.log_starts([tp]))[tp], (await target.log_ends([tp]))[tp]
        if not isinstance(start, int) or not isinstance(end, LogEnd):
            raise Unreachable(f"offsets of {tp}: {start if not isinstance(start, int) else end}")
        told = (await target.epoch_ends({tp: epoch}))[tp] if epoch >= 0 else None
        if isinstance(told, Refused):
            raise Unreachable(f"leader epochs of {tp}: {told}")
        if not target_tail_is_lost(position, told, start, end.offset):
            return int(position.target_next)
        return min(end.offset, told.end) if isinstance(told, EpochEnd) and told.end >= 0 else end.offset

    async def _place_in_front(
        self, pair: Pair, assignment: Assignment, kept: int, other: str | None
    ) -> Place | None:
        runs = (await self._clusters.target.map_runs(self._flow.map_topic, [pair.target]))[pair.target]
        run = range_before(runs, assignment, kept)
        if run is None:
            return None
        at, there = run.source_next, run.target_next
        if there > kept:
            at, there = run.source_of(TargetOffset(kept)), TargetOffset(kept)
        return Place(source_next=at, target_next=there, told_by="the offset map", other=other)

    def _search(self, pair: Pair, source: RecordReader, target: RecordReader, first: int, last: int) -> Found:
        sample = _last_records(target, pair.target, first, last)
        if not sample:
            raise self._untold(pair, "the target shows no record, and neither position nor map tells")
        search = Search(sample)
        start, end = source.bounds(pair.source)
        source.open(pair.source, start, end)
        for record in source.shown():
            search.offer(record)
        if len(search.places) != 1:
            times = "nowhere" if not search.places else f"{len(search.places)} times"
            raise self._untold(pair, f"the target's last {len(sample)} records are {times} in the source")
        beginning = NewPosition(pair=pair, source_next=search.places[0], target_end=last, end_decided=True)
        return Found(beginning=beginning, told_by="the target's last records", found=len(sample))

    def _untold(self, pair: Pair, rule: str) -> BadInput:
        return BadInput(
            f"where {pair.source} stands",
            rule=f"can't be found: {rule}",
            remedy=adopt_remedy(self._flow.name, pair.source),
        )


def _follow(pair: Pair, place: Place, source: RecordReader, target: RecordReader) -> Followed:
    here, there = source.bounds(pair.source)
    if place.source_next < here:  # a gap: for `accept-gap`, once this one is done
        foreign = sum(1 for _ in target.shown())
        return Followed(source_next=place.source_next, foreign=foreign)
    source.open(pair.source, place.source_next, there)
    return follow(place.source_next, source.shown(), target.shown())


def _last_records(target: RecordReader, tp: TopicPartition, start: int, end: int) -> list[ShownRecord]:
    stretch = _FIRST_STRETCH
    while True:
        begin = max(start, end - stretch)
        target.open(tp, begin, end)
        shown = list(target.shown())[-_SAMPLE_RECORDS:]
        if len(shown) == _SAMPLE_RECORDS or begin == start:
            return shown
        stretch *= 10


def _assignment(pair: Pair, adopted_at: int) -> Assignment:
    return Assignment(pair=pair, end=SourceOffset(0), start=None, known=True, adopted_at=adopted_at)
