"""Look at both clusters of a flow that was failed over: where they diverged, and what lies after that place.

Nothing is written. `clusters` are the reverse flow's: its source is the new primary, its target the old.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from causeway.brokers.transport.lagging_nodes import known_topics
from causeway.brokers.transport.topic_metadata import TopicMetadata
from causeway.brokers.wire.consumer_groups import ConsumerGroups
from causeway.brokers.wire.log_reader import LATEST, READ_COMMITTED, READ_UNCOMMITTED, WireLogReader
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.ports import LogEnd, Refused, Unreachable
from causeway.core.failback.divergence import Divergence, FailbackMode, FailbackPlan
from causeway.core.kernel.errors import BadInput
from causeway.core.kernel.estimate import Estimate, at_most, exact, unknown
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import error_name
from causeway.core.kernel.plurals import some
from causeway.core.model.flow import Flow
from causeway.core.model.naming import is_heartbeats
from causeway.core.state.flow_state import FlowState
from causeway.core.state.known_pairs import KnownPair
from causeway.core.state.position import Position
from causeway.core.state.repair_commands import reconcile_remedy
from causeway.usecases.failback.nothing_crossed import MayBegin, Side, nothing_crossed
from causeway.usecases.offsets.scan_records import Stopped, Tally, count_records
from causeway.usecases.session.both_clusters import Clusters, state_on
from causeway.usecases.session.pair_positions import begins_at, has_begun, read_pair_positions

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class FailbackSession:
    """A flow and the one that leads the other way, at work on the same two clusters."""

    forward: Flow
    reverse: Flow
    clusters: Clusters

    @property
    def new(self) -> WireTarget:
        """The forward flow's target, with all that it keeps there."""
        return self.clusters.at_source

    @property
    def old(self) -> WireTarget:
        return self.clusters.target

    def leads_back(self, pair: KnownPair, target_topic: str) -> bool:
        """Whether the reverse flow writes where the forward flow reads; else the mirror is nobody else's."""
        reverse = self.reverse
        carries = reverse.topics.matches(target_topic) and reverse.naming.covers(target_topic)
        if not carries or reverse.naming.comes_from(target_topic, reverse.target):
            return False
        return reverse.naming.target_topic(target_topic) == pair.source_topic


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """One partition before anything is counted."""

    old: TopicPartition
    new: TopicPartition
    pair: KnownPair
    position: Position | None
    mirrored_next: int
    old_range: Range
    """All that is there."""
    new_range: Range
    new_start: int
    parted: bool

    @property
    def tail_from(self) -> int:
        return max(self.mirrored_next, self.old_range[0])


async def find_divergence(pairing: FailbackSession, way: FailbackMode) -> FailbackPlan:
    """:raises BadInput: a topic can't be mirrored back; the message says what can."""
    forward = pairing.forward
    state = await state_on(pairing.new, forward.name)
    _refuse_others(pairing, state)
    places, notes = await _places(pairing, state, way)
    tails = await _count(pairing.old, {p.old: (p.tail_from, p.old_range[1]) for p in places})
    written = await _count(pairing.new, {p.new: p.new_range for p in places if p.parted})
    cuts = [_cut(place, tails, written) for place in places]
    parted = tuple(cut for cut, place in zip(cuts, places, strict=True) if place.parted)
    return FailbackPlan(
        flow=forward.name,
        reverse=pairing.reverse.name,
        way=way,
        cuts=parted,
        late=tuple(cut for cut, place in zip(cuts, places, strict=True) if not place.parted),
        notes=notes,
        at_work=await _at_work_beside_exports(pairing, [cut.new for cut in parted if cut.has_tail]),
    )


async def _at_work_beside_exports(
    pairing: FailbackSession, partitions: list[TopicPartition]
) -> tuple[str, ...]:
    """A hint for people, so nobody who can't be asked stops the failback for it."""
    if not partitions:
        return ()
    groups = ConsumerGroups(pairing.new.wire, spares_the_silent=True)
    active = [name for name, group in (await groups.listed()).items() if group.is_active]
    wanted: dict[str, list[int]] = {}
    for tp in partitions:
        wanted.setdefault(tp.topic, []).append(tp.partition)
    held = await groups.committed(active, wanted)
    return tuple(
        sorted(name for name, offsets in held.items() if offsets and not isinstance(offsets, Refused))
    )


def _refuse_others(pairing: FailbackSession, state: FlowState) -> None:
    forward = pairing.forward
    if not state.pairs:
        raise BadInput(
            "flow", value=forward.name, rule=f"has never mirrored anything to {forward.target}", remedy="none"
        )
    ids = (pairing.old.wire.cluster_id, pairing.new.wire.cluster_id)
    known = (state.source_cluster_id or ids[0], state.target_cluster_id or ids[1])
    if known != ids:
        raise BadInput(
            f"clusters of flow {forward.name}",
            value=f"{ids[0]}, {ids[1]}",
            rule=f"aren't the ones that it began with: {known[0]}, {known[1]}",
            remedy="correct the connections",
        )


@dataclass(frozen=True, slots=True)
class _Member:
    old: TopicPartition
    new: TopicPartition
    pair: KnownPair


async def _members(
    pairing: FailbackSession, state: FlowState, way: FailbackMode
) -> tuple[list[_Member], list[str]]:
    """Partitions that are on both sides, of topics that are still the ones that parted."""
    pairs = {name: pair for name, pair in state.pairs.items() if not is_heartbeats(pair.source_topic)}
    there = await known_topics(pairing.new.wire, {name: p.target_topic_id for name, p in pairs.items()})
    known = {pair.source_topic: pair.source_topic_id for pair in pairs.values()}
    here = await known_topics(pairing.old.wire, known)
    members: list[_Member] = []
    notes: list[str] = []
    for name, pair in sorted(pairs.items()):
        old, new = here[pair.source_topic], there[name]
        _refuse_other_topics(pairing, pair, old, new)
        if more := len(old.leaders.keys() ^ new.leaders.keys()):
            if way is FailbackMode.REBUILD:
                raise _other_partitions(pairing, old, new)
            notes.append(f"{pair.source_topic}: {more} partitions are on one side only, and stay as they are")
        members += [
            _Member(TopicPartition(pair.source_topic, n), TopicPartition(name, n), pair)
            for n in sorted(old.leaders.keys() & new.leaders.keys())
        ]
    return members, notes


def _other_partitions(pairing: FailbackSession, old: TopicMetadata, new: TopicMetadata) -> BadInput:
    counts, most = (len(old.leaders), len(new.leaders)), max(len(old.leaders), len(new.leaders))
    behind = old if counts[0] < most else new
    return BadInput(
        f"partitions of {old.name}",
        value=f"{counts[0]} on {pairing.forward.source}, {counts[1]} on {pairing.forward.target}",
        rule="must be as many on both sides, so that all of them can be rebuilt",
        remedy=f"`kafka-topics.sh --alter --topic {behind.name} --partitions {most}` where it has fewer",
    )


async def _places(
    pairing: FailbackSession, state: FlowState, way: FailbackMode
) -> tuple[list[_Place], tuple[str, ...]]:
    members, notes = await _members(pairing, state, way)
    olds, news = [each.old for each in members], [each.new for each in members]
    positions = await read_pair_positions(pairing.forward, pairing.new, state, news, stable=True, marked=True)
    old_starts, old_ends = await bounds(pairing.old, olds, READ_UNCOMMITTED)
    _, decided = await bounds(pairing.old, olds, READ_COMMITTED)
    new_starts, new_ends = await bounds(pairing.new, news, READ_COMMITTED)
    _refuse_undecided(pairing, sorted({tp.topic for tp, end in old_ends.items() if decided[tp] != end}))
    sides = (
        Side(at=pairing.old, starts=old_starts, ends=old_ends),
        Side(at=pairing.new, starts=new_starts, ends=new_ends),
    )
    lost = [each for each in members if positions[each.new] is None]
    begun = await _begun(lost, state, *sides, is_rebuilt=way is FailbackMode.REBUILD)
    places: list[_Place] = []
    for each in members:
        found = positions[each.new] or begun.get(each.new)
        position = found if isinstance(found, Position) and found.ids == each.pair.ids else None
        if position is None and has_begun(state, each.new):
            raise _unknown(pairing, each)
        # A partition that both sides got later, or that nobody could ask, was never mirrored.
        crossed, written_from = (position.source_next, position.target_next) if position else (0, 0)
        places.append(
            _Place(
                old=each.old,
                new=each.new,
                pair=each.pair,
                position=position,
                mirrored_next=crossed,
                old_range=(old_starts[each.old], old_ends[each.old]),
                new_range=(max(written_from, new_starts[each.new]), new_ends[each.new]),
                new_start=new_starts[each.new],
                parted=pairing.leads_back(each.pair, each.new.topic),
            )
        )
    return places, (*notes, *_trimmed(places))


async def _begun(
    lost: list[_Member], state: FlowState, old: Side, new: Side, *, is_rebuilt: bool
) -> dict[TopicPartition, Position]:
    """Where partitions were to begin of which no record ever crossed, by the new primary's partitions."""
    starts = {each.new: begins_at(state, each.new) for each in lost}
    asked = [
        MayBegin(old=each.old, new=each.new, source_next=start.source_next, target_next=start.target_next)
        for each in lost
        if (start := starts[each.new]) is not None
    ]
    sure = await nothing_crossed(asked, old, new, is_rebuilt=is_rebuilt)
    return {tp: start for tp, start in starts.items() if start is not None and tp in sure}


def _unknown(pairing: FailbackSession, each: _Member) -> BadInput:
    forward = pairing.forward.name
    return BadInput(
        f"where {each.old} and {each.new} parted",
        rule=f"isn't known: flow {forward} has no position there, neither its offset map nor its state has "
        "one, and the two logs don't show that nothing ever crossed",
        remedy=reconcile_remedy(forward, each.old),
    )


def _trimmed(places: list[_Place]) -> Iterator[str]:
    for place in places:
        begins = place.position.target_next if place.position else 0
        if place.parted and place.new_start > begins:
            yield (
                f"{place.new}: retention has passed the place where they parted ({begins:,}); what is left "
                f"begins at {place.new_start:,}"
            )


def _refuse_other_topics(
    pairing: FailbackSession, pair: KnownPair, old: TopicMetadata, new: TopicMetadata
) -> None:
    forward = pairing.forward
    for cluster, topic, known in (
        (forward.source, old, pair.source_topic_id),
        (forward.target, new, pair.target_topic_id),
    ):
        if topic.error or topic.topic_id != known:
            why = error_name(topic.error) if topic.error else "was recreated since the flow mirrored it"
            raise BadInput(
                f"topic {topic.name} of {cluster}",
                rule=f"isn't the one that parted: {why}",
                remedy="what it held is gone, so there is no place to go back to; nothing was done: its "
                f"applications stay on {forward.target}",
            )
    if not pairing.leads_back(pair, new.name) and not pairing.reverse.naming.comes_from(
        new.name, pairing.reverse.target
    ):
        raise BadInput(
            f"topic {new.name} of {forward.target}",
            rule=f"isn't mirrored back to {pair.source_topic} by flow {pairing.reverse.name}",
            remedy=f"give {pairing.reverse.name} the same names (failback_of), or prefixes in both",
        )


def _refuse_undecided(pairing: FailbackSession, topics: list[str]) -> None:
    if topics:
        raise BadInput(
            f"topics of {pairing.forward.source}",
            value=some(topics),
            rule="have an open transaction, so nobody can say yet where they end",
            remedy="wait until the broker ends it, or abort it with kafka-transactions.sh",
        )


async def bounds(
    reader: WireLogReader, partitions: list[TopicPartition], isolation: int
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """Where the logs begin and end."""
    starts = await reader.log_starts(partitions)
    ends = await reader.list_offsets(dict.fromkeys(partitions, LATEST), isolation=isolation)
    first: dict[TopicPartition, int] = {}
    last: dict[TopicPartition, int] = {}
    for tp in partitions:
        start, end = starts[tp], ends[tp]
        if isinstance(start, Refused) or not isinstance(end, LogEnd):
            raise Unreachable(f"offsets of {tp}: {start if isinstance(start, Refused) else end}")
        first[tp], last[tp] = start, end.offset
    return first, last


async def _count(
    reader: WireLogReader, ranges: dict[TopicPartition, Range]
) -> dict[TopicPartition, tuple[Estimate, Estimate]]:
    """Records and bytes that a reader sees there."""
    topics = await reader.wire.topics(sorted({tp.topic for tp in ranges}))
    ids = {name: topic.topic_id for name, topic in topics.items()}
    found = await count_records(reader, ids, ranges)
    return {tp: _figures(tally, ranges[tp]) for tp, tally in found.items()}


def _figures(tally: Tally | Stopped, offsets: Range) -> tuple[Estimate, Estimate]:
    if isinstance(tally, Stopped):
        why = f"not all was read: {tally.why}"
        return at_most(max(offsets[1] - offsets[0], 0), why), unknown(why)
    return exact(tally.records), exact(tally.size_bytes)


def _cut(
    place: _Place,
    tails: dict[TopicPartition, tuple[Estimate, Estimate]],
    written: dict[TopicPartition, tuple[Estimate, Estimate]],
) -> Divergence:
    position, (tail, tail_bytes) = place.position, tails[place.old]
    return Divergence(
        old=place.old,
        new=place.new,
        old_topic_id=place.pair.source_topic_id,
        new_topic_id=place.pair.target_topic_id,
        mirrored_next=place.mirrored_next,
        old_start=place.old_range[0],
        written_from=place.new_range[0],
        epoch=position.target_epoch if position and position.target_next == place.new_range[0] else -1,
        old_end=place.old_range[1],
        new_start=place.new_start,
        tail=tail,
        tail_bytes=tail_bytes,
        written=written[place.new][0] if place.new in written else exact(0),
    )
