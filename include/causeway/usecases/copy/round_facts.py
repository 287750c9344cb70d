"""What a round reads of each pair of partitions: its position, both logs' ends, and where it begins.

Where the start rule is asked, and for whom: a partition without a position that the flow hasn't begun with.
A refused answer is a reason to wait, never a place; what was answered once is asked no more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from causeway.brokers.wire.log_reader import LATEST, READ_COMMITTED, WireLogReader
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.park_reasons import refusal_of_rights
from causeway.core.copy.ports import EpochEnd, LogEnd, Refused, is_unreachable
from causeway.core.copy.round_plan import PartitionFacts
from causeway.core.kernel.identity import Pair, SourceOffset, TopicPartition
from causeway.core.model.flow import Flow
from causeway.core.offsets.pair_position import set_position, where_it_was_left
from causeway.core.state.flow_state import FlowState
from causeway.core.state.known_pairs import KnownPair
from causeway.core.state.parked import Parked
from causeway.core.state.position import Position
from causeway.core.state.reverse_flow import ReverseFlow, ReverseLimit
from causeway.core.state.start_ledger import StartAt
from causeway.usecases.session.pair_positions import Standing, kept_of

Ends = Mapping[TopicPartition, LogEnd | Refused]
LogStarts = Mapping[TopicPartition, int | Refused]


@dataclass(frozen=True, slots=True)
class Memory:
    """What the flow remembers of its pairs."""

    flow: Flow
    state: FlowState
    known: Mapping[str, KnownPair]
    other_way: ReverseFlow | None

    def has_begun(self, pair: Pair) -> bool:
        known, has_start = self.known.get(pair.target.topic), self.state.start_of(pair) is not None
        return known is not None and known.has_begun(pair.target.partition, has_start=has_start)

    def is_asked_of_the_map(self, pair: Pair) -> bool:
        """Whether the map may know where it was left: a recovery finds pairs and their partitions by
        committed positions, and those expire."""
        is_over = pair.ids in self.state.forgotten
        return self.has_begun(pair) or (self.state.floor > 0 and not is_over)

    def has_grown(self, pair: Pair) -> bool:
        """A partition that a mirrored topic got later begins at its beginning, whatever the start rule."""
        known = self.known.get(pair.target.topic)
        return known is not None and pair.target.partition >= known.partitions

    def adopted_at(self, pair: Pair) -> int:
        known = self.known.get(pair.target.topic)
        return known.adopted_at_of(pair.target.partition) if known else -1

    def opposite(self, pair: Pair) -> ReverseLimit | None:
        return self.other_way.of(self.flow, pair) if self.other_way is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Logs:
    """Both sides' logs as they are now; partitions that refused are among them."""

    positions: Mapping[TopicPartition, Standing]
    ends: Ends
    log_starts: LogStarts
    target_ends: Ends
    left: Mapping[TopicPartition, Position | None]
    """Of the positions that are gone, by target partition."""


async def read_facts(
    memory: Memory,
    source: WireLogReader,
    target: WireTarget,
    pairs: Sequence[Pair],
    parked: dict[TopicPartition, Parked],
    later: dict[TopicPartition, str],
) -> list[PartitionFacts]:
    if not pairs:
        return []
    positions = await target.positions(memory.flow.group, [p.target for p in pairs], stable=False)
    partitions = [p.source for p in pairs]
    logs = _Logs(
        positions=positions,
        ends=await source.list_offsets(dict.fromkeys(partitions, LATEST), isolation=READ_COMMITTED),
        log_starts=await source.log_starts(partitions),
        target_ends=await target.log_ends([p.target for p in pairs]),
        left=await _left(memory, target, [p for p in pairs if positions[p.target] is None]),
    )
    starts = await _starts(memory, source, pairs, logs)
    turned = await _turned_sources(source, pairs, positions, logs.ends)
    facts: list[PartitionFacts] = []
    for pair in pairs:
        asked = (logs.ends[pair.source], logs.log_starts[pair.source], starts.get(pair.source))
        there = logs.target_ends[pair.target]
        if refused := next((each for each in asked if isinstance(each, Refused)), None):
            _put_off(memory.flow, pair, refused, parked, later)
        elif is_unreachable(there) or (pair.source in starts and isinstance(there, Refused)):
            later[pair.source] = f"{pair.target} on {memory.flow.target}: {there}"  # a lane would wait, too
        else:
            facts.append(_partition_facts(memory, pair, logs, starts, is_turned=pair.source in turned))
    return facts


def _partition_facts(
    memory: Memory,
    pair: Pair,
    logs: _Logs,
    starts: Mapping[TopicPartition, StartAt | Refused],
    *,
    is_turned: bool,
) -> PartitionFacts:
    end, log_start, start = logs.ends[pair.source], logs.log_starts[pair.source], starts.get(pair.source)
    assert isinstance(end, LogEnd)
    assert isinstance(log_start, int)
    assert not isinstance(start, Refused)
    there, position = logs.target_ends[pair.target], logs.positions[pair.target]
    is_set = position is None and pair.target.topic in memory.known
    return PartitionFacts(
        pair=pair,
        position=position,
        log_start=log_start,
        last_stable=end.offset,
        start=start,
        known=memory.has_begun(pair) or logs.left.get(pair.target) is not None,
        stands=logs.left.get(pair.target),
        adopted_at=memory.adopted_at(pair),
        set_by_hand=set_position(memory.state.set_by_hand.values(), pair) if is_set else None,
        target_end=there if isinstance(there, LogEnd) else None,
        source_turned=is_turned,
        opposite=memory.opposite(pair),
    )


async def _left(
    memory: Memory, target: WireTarget, pairs: Sequence[Pair]
) -> dict[TopicPartition, Position | None]:
    begun = [pair for pair in pairs if memory.is_asked_of_the_map(pair)]
    known = await target.map_of(memory.flow.map_topic, [pair.target for pair in begun]) if begun else {}
    return {
        pair.target: where_it_was_left(pair, kept_of(memory.state, pair, known[pair.target]))
        for pair in begun
    }


async def _starts(
    memory: Memory, source: WireLogReader, pairs: Sequence[Pair], logs: _Logs
) -> dict[TopicPartition, StartAt | Refused]:
    """By source partition, of those without a position."""
    starts: dict[TopicPartition, StartAt | Refused] = {}
    asking: list[TopicPartition] = []
    for pair in pairs:
        if logs.positions[pair.target] is not None or memory.opposite(pair) is not None:
            continue
        if (recorded := memory.state.start_of(pair)) is not None:
            starts[pair.source] = recorded
        elif logs.left.get(pair.target) is not None:
            continue
        elif memory.has_grown(pair) or _begins_at_zero(memory, pair, logs):
            starts[pair.source] = _at_log_start(logs.log_starts[pair.source])
        elif not memory.has_begun(pair):
            asking.append(pair.source)
    starts |= await resolve_start(memory.flow, source, asking, logs.ends, logs.log_starts)
    there = {pair.source: logs.target_ends[pair.target] for pair in pairs}
    return {tp: _beside(start, there[tp]) for tp, start in starts.items()}


def _beside(start: StartAt | Refused, target_end: LogEnd | Refused) -> StartAt | Refused:
    """An answer of just now, with where the target's log ends."""
    if isinstance(start, Refused) or start.generation >= 0 or isinstance(target_end, Refused):
        return start
    return replace(start, target_end=target_end.offset)


def _begins_at_zero(memory: Memory, pair: Pair, logs: _Logs) -> bool:
    """Known from before starts were written down, and nothing of it can have been passed over: the mirror is
    empty, nobody ever set a place in that topic, and the source has lost nothing."""
    there, known = logs.target_ends[pair.target], memory.known.get(pair.target.topic)
    return (
        known is not None
        and memory.has_begun(pair)
        and logs.left.get(pair.target) is None
        and known.adopted_at < 0
        and memory.flow.start.at == "earliest"
        and logs.log_starts[pair.source] == 0
        and isinstance(there, LogEnd)
        and there.offset == 0
    )


async def resolve_start(
    flow: Flow, source: WireLogReader, fresh: Sequence[TopicPartition], ends: Ends, log_starts: LogStarts
) -> dict[TopicPartition, StartAt | Refused]:
    """What the start rule says now, of each; a refusal says nothing of where it is."""
    found: Mapping[TopicPartition, LogEnd | Refused] = {}
    if flow.start.at == "timestamp" and fresh:
        assert flow.start.timestamp_ms is not None
        found = await source.list_offsets(dict.fromkeys(fresh, flow.start.timestamp_ms))
    starts: dict[TopicPartition, StartAt | Refused] = {}
    at_end: list[TopicPartition] = []
    for tp in fresh:
        at = found.get(tp)
        if flow.start.at == "earliest":
            starts[tp] = _at_log_start(log_starts[tp])
        elif isinstance(at, Refused):
            starts[tp] = at
        elif at is not None and at.offset >= 0:
            starts[tp] = StartAt(offset=SourceOffset(at.offset), epoch=-1)
        else:  # `latest`, or no record is as late as that
            at_end.append(tp)
    return {**starts, **await starts_at_end(source, {tp: ends[tp] for tp in at_end})}


async def starts_at_end(source: WireLogReader, ends: Ends) -> dict[TopicPartition, StartAt | Refused]:
    """With the epoch of the record before each end. The leader's own may have no record yet: a broker forgets
    such an epoch at the next election, and whoever fetched by it would be called diverging for ever."""
    known = {tp: end for tp, end in ends.items() if isinstance(end, LogEnd)}
    before = {tp: end.leader_epoch - 1 for tp, end in known.items() if end.leader_epoch > 0}
    found = await source.epoch_ends(before) if before else {}
    starts: dict[TopicPartition, StartAt | Refused] = {
        tp: end for tp, end in ends.items() if isinstance(end, Refused)
    }
    for tp, end in known.items():
        starts[tp] = _with_epoch_before(end, found.get(tp))
    return starts


def _with_epoch_before(end: LogEnd, before: EpochEnd | Refused | None) -> StartAt | Refused:
    """`before`: where the epochs before the leader's own end."""
    if isinstance(before, Refused):
        return before
    is_empty = before is not None and before.end >= end.offset
    return StartAt(
        offset=SourceOffset(end.offset), epoch=before.epoch if before and is_empty else end.leader_epoch
    )


def _at_log_start(log_start: int | Refused) -> StartAt | Refused:
    if isinstance(log_start, Refused):
        return log_start
    return StartAt(offset=SourceOffset(log_start), epoch=-1)


async def _turned_sources(
    source: WireLogReader,
    pairs: Sequence[Pair],
    positions: Mapping[TopicPartition, object],
    ends: Ends,
) -> frozenset[TopicPartition]:
    """Sources that lost what was read of them and grew again to just where they had been: with nothing to
    copy no lane would look, and the run would call a mirror caught up that shows another history."""
    reached: dict[TopicPartition, Position] = {}
    for pair in pairs:
        position, end = positions[pair.target], ends[pair.source]
        if not isinstance(position, Position) or not isinstance(end, LogEnd) or position.source_epoch < 0:
            continue
        if end.leader_epoch != position.source_epoch and end.offset == position.source_next:
            reached[pair.source] = position
    if not reached:
        return frozenset()
    found = await source.epoch_ends({tp: position.source_epoch for tp, position in reached.items()})
    return frozenset(
        tp
        for tp, position in reached.items()
        if isinstance(epoch := found[tp], EpochEnd) and epoch.end < position.source_next
    )


def _put_off(
    flow: Flow,
    pair: Pair,
    refused: Refused,
    parked: dict[TopicPartition, Parked],
    later: dict[TopicPartition, str],
) -> None:
    """What the source didn't say is a missing right, or passes."""
    denied = refusal_of_rights(pair.source.topic, "source", refused)
    if denied is None:
        later[pair.source] = f"{pair.source} on {flow.source}: {refused}"
    else:
        parked[pair.source] = denied
