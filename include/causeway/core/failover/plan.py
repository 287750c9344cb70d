"""The plan of a failover: which group moves where on the target, what that repeats or skips.

Pure: the same findings give the same plan, and a plan has a hash that changes with anything that an apply
would do otherwise: parameters, offsets before and after, ids of topics.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from uuid import UUID

from causeway.core.errors import BadInput
from causeway.core.failover.figure import Bound, Figure, at_least, at_most, exact, unknown
from causeway.core.failover.place import Place, Reason
from causeway.core.failover.wish import Active, Mode, Wish
from causeway.core.group_sync import Committed
from causeway.core.identity import TargetOffset, TopicPartition
from causeway.core.instants import rfc3339
from causeway.core.offset_map import Run

_HASH_CHARACTERS = 16
_NAMED_AT_MOST = 5
_OWN = (
    "it has committed on the target by itself, or an earlier failover has put it there, and that stays; "
    "a moment (--at TIME) moves it"
)
_BOUND = "its place is a lower bound, by MirrorMaker 2's offset syncs"


@dataclass(frozen=True, slots=True, kw_only=True)
class LastKnown:
    """Where a group stood on the source, as far as anybody knows, and what that is on the target."""

    at: TargetOffset | None
    why_not: str = ""
    """Why it has no place on the target."""
    is_live: bool = False
    """Asked of the source just now; else it may have read on since."""
    told_by: str = ""
    is_ahead: bool = False
    """It has read on the source what isn't mirrored."""
    is_older: bool = False
    """It hasn't read on the source what the target never had, or has no more."""
    is_bound: bool = False
    """Its place may lie further on: MirrorMaker 2's offset syncs know no nearer one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFacts:
    name: str
    is_active: bool
    """On the target."""
    here: Mapping[TopicPartition, Committed]
    """On the target."""
    known: Mapping[TopicPartition, LastKnown]
    """By target partition."""
    own: frozenset[TopicPartition] = frozenset()
    """Where what it holds on the target is its own progress there, not a mirror's word."""
    topics: frozenset[str] = frozenset()
    """Of the target, that it reads by somebody's word: nobody has ever seen the group."""
    refused: str = ""
    """It can't be read or moved at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirrored:
    """One target partition of the flow."""

    target: TopicPartition
    target_topic_id: UUID
    log_start: TargetOffset
    end: TargetOffset
    """Behind the last mirrored record."""
    runs: Sequence[Run]
    """Those that hold."""
    place: Place | None = None
    """For the moment; None: the wish is `latest`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    group: str
    target: TopicPartition
    before: Committed | None
    after: TargetOffset
    reasons: tuple[str, ...] = ()
    rereads: Figure
    """Records that it has read already, as far as known, and will read again."""
    skips: Figure
    """Records that it hasn't read, as far as known, and won't read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftAlone:
    group: str
    target: TopicPartition | None
    """None: the whole group."""
    why: str

    def __str__(self) -> str:
        return f"{self.group}{f' on {self.target}' if self.target else ''}: {self.why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FailoverPlan:
    wish: Wish
    moves: tuple[Move, ...]
    left_alone: tuple[LeftAlone, ...]
    topic_ids: Mapping[str, UUID] = field(default_factory=dict)

    @property
    def groups(self) -> tuple[str, ...]:
        return tuple(sorted({move.group for move in self.moves}))

    @property
    def agreement(self) -> str:
        """What somebody says yes to."""
        return agreement_of(self.wish, self.groups, self.hash)

    @property
    def hash(self) -> str:
        ids = sorted((name, topic_id.hex) for name, topic_id in self.topic_ids.items())
        left = [(each.group, str(each.target), each.why) for each in self.left_alone]
        return _digest([self.wish.key, ids, [_said(move) for move in self.moves], left])


def agreement_of(wish: Wish, groups: Iterable[str], plan_hash: str) -> str:
    """Of a planned failover which groups go: their offsets follow from where they stand when the last record
    is mirrored, and that isn't yet."""
    return _digest([wish.key, sorted(groups)]) if wish.is_planned else plan_hash


def _digest(said: list[object]) -> str:
    return sha256(json.dumps(said, separators=(",", ":")).encode()).hexdigest()[:_HASH_CHARACTERS]


def _said(move: Move) -> list[object]:
    before = None if move.before is None else (move.before.offset, move.before.metadata)
    return [move.group, move.target.topic, move.target.partition, move.after, before]


def plan_failover(
    wish: Wish, groups: Iterable[GroupFacts], mirrored: Mapping[TopicPartition, Mirrored]
) -> FailoverPlan:
    """:raises BadInput: active groups, or a moment that the target doesn't reach back to."""
    facts = sorted(groups, key=lambda each: each.name)
    _refuse_active(wish, facts)
    movable = [group for group in facts if not (group.refused or group.is_active)]
    _refuse_too_early(wish, {tp: mirrored[tp] for g in movable for tp in _partitions(wish, g, mirrored)})
    moves: list[Move] = []
    left: list[LeftAlone] = []
    for group in facts:
        if group.refused or group.is_active:
            why = group.refused or "it has members on the target, which go on where they are"
            left.append(LeftAlone(group=group.name, target=None, why=why))
            continue
        for tp in _partitions(wish, group, mirrored):
            match _move(wish, group, mirrored[tp]):
                case Move() as move:
                    moves.append(move)
                case LeftAlone() as alone:
                    left.append(alone)
    topics = {move.target.topic for move in moves}
    return FailoverPlan(
        wish=wish,
        moves=tuple(moves),
        left_alone=tuple(left),
        topic_ids={m.target.topic: m.target_topic_id for m in mirrored.values() if m.target.topic in topics},
    )


def _refuse_active(wish: Wish, groups: Sequence[GroupFacts]) -> None:
    active = [group.name for group in groups if group.is_active]
    if active and wish.active is Active.REFUSE:
        raise BadInput(
            "consumer groups with members on the target",
            value=_some(active),
            rule="can't be moved while they read",
            remedy="stop their consumers there, or say --active leave to move the others",
        )


def _refuse_too_early(wish: Wish, moved_to: Mapping[TopicPartition, Mirrored]) -> None:
    """A date that was mistyped would put every group at the beginning of everything. What none of them
    reads may be as short as it likes."""
    placed = [m for _, m in sorted(moved_to.items()) if m.place is not None and m.log_start < m.end]
    early = [m for m in placed if m.place and m.place.is_too_early]
    trimmed = [m for m in early if m.place and Reason.TRIMMED in m.place.reasons]
    if wish.clamp or wish.moment_ms is None or not (trimmed or (early and len(early) == len(placed))):
        return
    raise BadInput(
        f"the moment {rfc3339(wish.moment_ms)}",
        value=_some([str(m.target) for m in trimmed or early]),
        rule="is earlier than the oldest record there, so records of that moment are missing",
        remedy="write a later moment, or say --clamp earliest to begin with the oldest records",
    )


def _partitions(
    wish: Wish, group: GroupFacts, mirrored: Mapping[TopicPartition, Mirrored]
) -> list[TopicPartition]:
    """For a moment all partitions of each topic that the group reads: where there is no commit, a reader may
    begin at the end and skip. For `latest` those that the group has committed, or, if nobody knows of any,
    those that somebody named: the sheet has to say that they can't be moved so."""
    concerned = {*group.here, *group.known} or {tp for tp in mirrored if tp.topic in group.topics}
    if wish.mode is Mode.HOME:
        return sorted(tp for tp in mirrored if tp in group.known)
    if wish.moment_ms is None:
        return sorted(tp for tp in mirrored if tp in concerned)
    topics = {tp.topic for tp in concerned} | group.topics
    return sorted(tp for tp in mirrored if tp.topic in topics)


def _move(wish: Wish, group: GroupFacts, partition: Mirrored) -> Move | LeftAlone:
    tp, known = partition.target, group.known.get(partition.target)
    place = partition.place
    if wish.moment_ms is None:
        is_own = tp in group.own and wish.mode is not Mode.HOME
        after, reasons, why_not = _latest(known, partition, is_own=is_own)
    elif place is None:
        after, reasons, why_not = None, (), "its times weren't looked at"
    else:
        after, reasons, why_not = place.at, tuple(map(str, place.reasons)), place.why_not
    if after is None:
        return LeftAlone(group=group.name, target=tp, why=why_not)
    rereads, skips = _price(known, after, partition)
    return Move(
        group=group.name,
        target=tp,
        before=group.here.get(tp),
        after=after,
        reasons=reasons,
        rereads=rereads,
        skips=skips,
    )


def _latest(
    known: LastKnown | None, partition: Mirrored, *, is_own: bool
) -> tuple[TargetOffset | None, tuple[str, ...], str]:
    if is_own:
        return None, (), _OWN
    if known is None:
        return None, (), "where it stood on the source isn't known; a moment (--at TIME) moves it"
    if known.at is None:
        return None, (), known.why_not
    at = TargetOffset(max(min(known.at, partition.end), partition.log_start))
    reasons = [] if known.is_live else [f"as {known.told_by} says"]
    if known.is_ahead:
        reasons.append("it has read more than is mirrored: the end of the mirror")
    if known.is_bound:
        reasons.append(_BOUND)
    if known.is_older or at > known.at:
        reasons.append("what lies between there and the target's oldest record isn't on the target")
    return at, tuple(reasons), ""


def _price(known: LastKnown | None, after: TargetOffset, partition: Mirrored) -> tuple[Figure, Figure]:
    """What it reads again, and what it never reads."""
    if known is None or known.at is None:
        why = "where the group stood on the source isn't known" if known is None else known.why_not
        return unknown(why), unknown(why)
    again = _counted(partition, after, known.at)
    never = _counted(partition, known.at, after)
    if known.is_bound:
        return _no_less(again, _BOUND), unknown(_BOUND) if after > known.at else exact(0)
    if known.is_live:
        return again, never
    because = f"{known.told_by} is the last that is known of it, and it may have read on since"
    return _no_less(again, because), _no_more(never, because)


def _counted(partition: Mirrored, first: int, last: int) -> Figure:
    """Records that the flow has mirrored between two places; what somebody else brought isn't in its map."""
    found = mirrored_between(partition.runs, first, last)
    begins = partition.runs[0].target_begins if partition.runs else partition.end
    if first < min(last, begins):
        return at_least(found, f"what lies in front of {begins:,} on {partition.target} isn't in the map")
    return exact(found)


def _no_less(figure: Figure, because: str) -> Figure:
    return at_least(figure.number or 0, because)


def _no_more(figure: Figure, because: str) -> Figure:
    """Who may have read on skips less, but of a number that is itself too small nobody can say."""
    return at_most(figure.number or 0, because) if figure.bound is Bound.EXACT else unknown(figure.because)


def mirrored_between(runs: Iterable[Run], first: int, last: int) -> int:
    """Mirrored records in `[first, last)` of the target: markers and aborted attempts aren't in the map."""
    return sum(
        max(0, min(run.target_next, last) - max(run.target_first, first))
        for run in runs
        if run.target_next > first and run.target_first < last
    )


def _some(names: Sequence[str]) -> str:
    more = len(names) - _NAMED_AT_MOST
    return ", ".join(names[:_NAMED_AT_MOST]) + (f" and {more} more" if more > 0 else "")
