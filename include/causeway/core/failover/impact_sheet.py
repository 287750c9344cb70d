"""The failover sheet: what a plan would do, and its price, before anybody says yes.

Numbers are exact, a bound or unknown with the reason (`estimate.py`); nothing that can't be known is a zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from causeway.core.failover.plan import FailoverPlan, LeftAlone, Move
from causeway.core.failover.start_offset import StartOffset, shown
from causeway.core.kernel.estimate import Estimate, largest, total
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.timestamps import rfc3339, rfc3339_ms

SHEET_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What of one partition never arrived on the target, if the source doesn't come back."""

    source: TopicPartition
    target: TopicPartition
    records: Estimate
    size_bytes: Estimate
    seconds: Estimate
    """From the last mirrored record to the source's last one, by their own times."""
    mirrored_until_ms: int | None
    """Time of the newest mirrored record; None: there is none with a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicImpact:
    topic: str
    """Its name on the source."""
    partitions: int
    lost_records: Estimate
    lost_bytes: Estimate
    lost_seconds: Estimate
    mirrored_until_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupImpact:
    group: str
    partitions: int
    rereads: Estimate
    skips: Estimate
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    flow: str
    made_at_ms: int
    source_silent: str
    """Why the source can't be asked; empty: it answers."""
    fenced: str
    """Who has fenced the flow already, if somebody has."""
    losses: tuple[Loss, ...]
    plan: FailoverPlan
    places: Mapping[TopicPartition, StartOffset]
    notes: tuple[str, ...] = ()
    journal: str = ""
    """What is odd about the topic that keeps failovers; empty: nothing."""

    @property
    def topics(self) -> tuple[TopicImpact, ...]:
        by_topic: dict[str, list[Loss]] = {}
        for loss in self.losses:
            by_topic.setdefault(loss.source.topic, []).append(loss)
        return tuple(_topic_price(topic, losses) for topic, losses in sorted(by_topic.items()))

    @property
    def groups(self) -> tuple[GroupImpact, ...]:
        by_group: dict[str, list[Move]] = {}
        for move in self.plan.moves:
            by_group.setdefault(move.group, []).append(move)
        return tuple(_group_price(group, moves) for group, moves in sorted(by_group.items()))

    @property
    def dearest_topics(self) -> list[TopicImpact]:
        return sorted(
            self.topics, key=lambda price: (price.lost_records.dearness, price.lost_seconds.dearness)
        )

    @property
    def dearest_groups(self) -> list[GroupImpact]:
        """Who skips most, then who reads most again."""
        return sorted(self.groups, key=lambda price: (price.skips.dearness, price.rereads.dearness))

    @property
    def dearest_moves(self) -> list[Move]:
        """Those of the dearest groups first."""
        rank = {price.group: at for at, price in enumerate(self.dearest_groups)}
        return sorted(self.plan.moves, key=lambda move: (rank[move.group], move.target))

    @property
    def lost(self) -> Estimate:
        return total(loss.records for loss in self.losses)

    @property
    def skips(self) -> Estimate:
        return total(move.skips for move in self.plan.moves)

    @property
    def rereads(self) -> Estimate:
        return total(move.rereads for move in self.plan.moves)

    @property
    def unknown(self) -> tuple[str, ...]:
        """What can't be known, and why; each once."""
        figures = [f for loss in self.losses for f in (loss.records, loss.size_bytes, loss.seconds)]
        figures += [figure for move in self.plan.moves for figure in (move.rereads, move.skips)]
        return tuple(dict.fromkeys(figure.because for figure in figures if figure.because))

    def as_dict(self) -> dict[str, object]:
        wish = self.plan.wish
        return {
            "v": SHEET_VERSION,
            "flow": self.flow,
            "plan": self.plan.agreement,
            "mode": str(wish.mode),
            "made_at": rfc3339(self.made_at_ms),
            "at": "latest" if wish.at_ms is None else rfc3339_ms(wish.at_ms),
            "moment_ms": wish.moment_ms,
            "safety_seconds": wish.safety_ms / 1000,
            "source_answers": not self.source_silent,
            "source_silent": self.source_silent,
            "fenced": self.fenced,
            "lost_records": self.lost.as_dict(),
            "topics": [_topic_dict(topic) for topic in self.topics],
            "groups": [_group_dict(group) for group in self.groups],
            "moves": [self._move_dict(move) for move in self.plan.moves],
            "left_alone": [_left_dict(left) for left in self.plan.left_alone],
            "unknown_because": list(self.unknown),
            "notes": list(self.notes),
            "journal": self.journal,
        }

    def _move_dict(self, move: Move) -> dict[str, object]:
        place = self.places.get(move.target)
        return {
            "group": move.group,
            "topic": move.target.topic,
            "partition": move.target.partition,
            "before": None if move.before is None else move.before.offset,
            "after": move.after,
            "by_target_index": None if place is None else shown(place.index),
            "by_source": None if place is None else shown(place.source),
            "reasons": list(move.reasons),
            "rereads": move.rereads.as_dict(),
            "skips": move.skips.as_dict(),
        }


def _topic_price(topic: str, losses: list[Loss]) -> TopicImpact:
    known = [loss.mirrored_until_ms for loss in losses if loss.mirrored_until_ms is not None]
    return TopicImpact(
        topic=topic,
        partitions=len(losses),
        lost_records=total(loss.records for loss in losses),
        lost_bytes=total(loss.size_bytes for loss in losses),
        lost_seconds=largest(loss.seconds for loss in losses),
        mirrored_until_ms=max(known, default=None),
    )


def _group_price(group: str, moves: list[Move]) -> GroupImpact:
    return GroupImpact(
        group=group,
        partitions=len(moves),
        rereads=total(move.rereads for move in moves),
        skips=total(move.skips for move in moves),
        reasons=tuple(dict.fromkeys(reason for move in moves for reason in move.reasons)),
    )


def _left_dict(left: LeftAlone) -> dict[str, object]:
    return {
        "group": left.group,
        "partition": None if left.target is None else str(left.target),
        "why": left.whole_why,
        "price": None if left.price is None else left.price.as_dict(),
    }


def _topic_dict(price: TopicImpact) -> dict[str, object]:
    until = price.mirrored_until_ms
    return {
        "topic": price.topic,
        "partitions": price.partitions,
        "lost_records": price.lost_records.as_dict(),
        "lost_bytes": price.lost_bytes.as_dict(),
        "lost_seconds": price.lost_seconds.as_dict(),
        "mirrored_until": None if until is None else rfc3339(until),
    }


def _group_dict(price: GroupImpact) -> dict[str, object]:
    return {
        "group": price.group,
        "partitions": price.partitions,
        "rereads": price.rereads.as_dict(),
        "skips": price.skips.as_dict(),
        "reasons": list(price.reasons),
    }
