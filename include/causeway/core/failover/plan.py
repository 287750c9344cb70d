"""The plan of a failover: which group moves where on the target, what that repeats or skips.

Pure: the same findings give the same plan, and a plan has a hash that changes with anything that an apply
would do otherwise: parameters, offsets before and after, ids of topics, what stays as it is and what kind of
trouble is the reason. The words that a client found for that trouble aren't part of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from uuid import UUID

from causeway.core.failover.request import Active, FailoverRequest, Mode
from causeway.core.failover.start_impact import (
    BOUND,
    LastKnown,
    LeftImpact,
    Mirrored,
    impact_left,
    impact_of,
    together,
)
from causeway.core.failover.start_offset import Reason
from causeway.core.groups.sync_rules import Committed
from causeway.core.kernel.errors import BadInput
from causeway.core.kernel.estimate import Estimate
from causeway.core.kernel.identity import TargetOffset, TopicPartition
from causeway.core.kernel.plurals import some
from causeway.core.kernel.timestamps import rfc3339

_HASH_CHARACTERS = 16
_OWN = (
    "it has committed on the target by itself, or an earlier failover has put it there, and that stays; "
    "a moment (--at TIME) moves it"
)


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
class Move:
    group: str
    target: TopicPartition
    before: Committed | None
    after: TargetOffset
    reasons: tuple[str, ...] = ()
    rereads: Estimate
    """Records that it has read already, as far as known, and will read again."""
    skips: Estimate
    """Records that it hasn't read, as far as known, and won't read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftAlone:
    group: str
    target: TopicPartition | None
    """None: the whole group."""
    why: str
    detail: str = ""
    """To that, in somebody else's words: not what somebody says yes to."""
    price: LeftImpact | None = None
    """Of staying there; None: it holds nothing there, or can't be read. Not what somebody says yes to."""

    @property
    def whole_why(self) -> str:
        return ": ".join(filter(None, (self.why, self.detail)))

    def __str__(self) -> str:
        return f"{self.group}{f' on {self.target}' if self.target else ''}: {self.whole_why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FailoverPlan:
    wish: FailoverRequest
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


def agreement_of(wish: FailoverRequest, groups: Iterable[str], plan_hash: str) -> str:
    """Of a planned failover which groups go: their offsets follow from where they stand when the last record
    is mirrored, and that isn't yet."""
    return _digest([wish.key, sorted(groups)]) if wish.is_planned else plan_hash


def _digest(said: list[object]) -> str:
    return sha256(json.dumps(said, separators=(",", ":")).encode()).hexdigest()[:_HASH_CHARACTERS]


def _said(move: Move) -> list[object]:
    before = None if move.before is None else (move.before.offset, move.before.metadata)
    return [move.group, move.target.topic, move.target.partition, move.after, before]


def plan_failover(
    wish: FailoverRequest, groups: Iterable[GroupFacts], mirrored: Mapping[TopicPartition, Mirrored]
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
            left.append(LeftAlone(group=group.name, target=None, why=why, price=_staying(group, mirrored)))
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


def _staying(group: GroupFacts, mirrored: Mapping[TopicPartition, Mirrored]) -> LeftImpact | None:
    """All of its partitions together."""
    parts = [
        impact_left(held.offset, group.known.get(tp), mirrored[tp])
        for tp, held in group.here.items()
        if tp in mirrored
    ]
    return together(parts) if parts and not group.refused else None


def _refuse_active(wish: FailoverRequest, groups: Sequence[GroupFacts]) -> None:
    active = [group.name for group in groups if group.is_active]
    if not active or wish.active is not Active.REFUSE:
        return
    if wish.mode is Mode.HOME:
        what, otherwise = (
            "consumer groups with members on the old primary",
            ", then run the same command again",
        )
    else:
        what, otherwise = (
            "consumer groups with members on the target",
            ", or say --active leave to move the others" if len(active) < len(groups) else "",
        )
    raise BadInput(
        what,
        value=some(active),
        rule="can't be moved while they read",
        remedy=f"stop their consumers there{otherwise}",
    )


def _refuse_too_early(wish: FailoverRequest, moved_to: Mapping[TopicPartition, Mirrored]) -> None:
    """A date that was mistyped would put every group at the beginning of everything. What none of them
    reads may be as short as it likes."""
    placed = [m for _, m in sorted(moved_to.items()) if m.place is not None and m.log_start < m.end]
    early = [m for m in placed if m.place and m.place.is_too_early]
    trimmed = [m for m in early if m.place and Reason.TRIMMED in m.place.reasons]
    if wish.clamp or wish.moment_ms is None or not (trimmed or (early and len(early) == len(placed))):
        return
    raise BadInput(
        f"the moment {rfc3339(wish.moment_ms)}",
        value=some([str(m.target) for m in trimmed or early]),
        rule="is earlier than the oldest record there, so records of that moment are missing",
        remedy="write a later moment, or say --clamp earliest to begin with the oldest records",
    )


def _partitions(
    wish: FailoverRequest, group: GroupFacts, mirrored: Mapping[TopicPartition, Mirrored]
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


def _move(wish: FailoverRequest, group: GroupFacts, partition: Mirrored) -> Move | LeftAlone:
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
        detail = place.detail if place is not None else ""
        there = group.here.get(tp)
        cost = None if there is None else impact_left(there.offset, known, partition)
        return LeftAlone(group=group.name, target=tp, why=why_not, detail=detail, price=cost)
    before = group.here.get(tp)
    rereads, skips = impact_of(known, after, partition, stands=0 if before is None else before.offset)
    return Move(
        group=group.name,
        target=tp,
        before=before,
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
        reasons.append(BOUND)
    if known.is_older or at > known.at:
        reasons.append("what lies between there and the target's oldest record isn't on the target")
    return at, tuple(reasons), ""
