"""Where the two clusters of a failed-over flow parted, and what a failback does there.

The forward flow was fenced at one place on both sides. What the old primary has after it was never mirrored:
the divergent tail. What the new primary has after it was written since the failover: that is to go back.

    old primary   ======== mirrored_next ~~~~ tail ~~~~ old_end
    new primary   ======== written_from  ---- written since the failover ----
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256
from uuid import UUID

from causeway.core.failback.rebuild_impact import RebuildImpact
from causeway.core.kernel.estimate import Estimate, total
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.timestamps import rfc3339
from causeway.core.model.naming import EXPORT_MARK

_HASH_CHARACTERS, _STANDS_BY = 16, "stands by since failback "
_MOMENT_CHARACTERS = len("20261118T040300Z")


class FailbackMode(StrEnum):
    RESUME = "resume"
    """Copy back what was written since the failover; the divergent tail stays."""
    REBUILD = "rebuild"
    """Empty the old primary's topics and mirror the new primary into them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """One partition, on both sides."""

    old: TopicPartition
    new: TopicPartition
    old_topic_id: UUID
    new_topic_id: UUID
    mirrored_next: int
    """On the old primary: from here on nothing crossed."""
    old_start: int
    """The oldest record there is: retention, or a rebuild under way, may have passed `mirrored_next`."""
    written_from: int
    """On the new primary: from here on lies what was written since."""
    epoch: int
    """Of the record before `written_from`; -1: not known."""
    old_end: int
    new_start: int
    """The oldest record there is: retention may have passed `written_from`."""
    tail: Estimate
    tail_bytes: Estimate
    written: Estimate

    @property
    def tail_from(self) -> int:
        return max(self.mirrored_next, self.old_start)

    @property
    def has_tail(self) -> bool:
        return not self.tail.is_nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class FailbackPlan:
    flow: str
    reverse: str
    way: FailbackMode
    cuts: tuple[Divergence, ...]
    """Of topics that have one name on both sides; they parted."""
    late: tuple[Divergence, ...]
    """Of topics with a mirror of its own: nothing else writes it, so the tail just crosses later."""
    notes: tuple[str, ...] = field(default=())
    at_work: tuple[str, ...] = ()
    """Groups with members on the new primary that have read these topics: one that subscribes to a pattern
    reads the exports, too. What its members subscribe to isn't known."""
    rebuild: RebuildImpact | None = None
    """What going the way `rebuild` costs besides."""

    @property
    def hash(self) -> str:
        """Changes with whatever would be done otherwise; not with what writers add on the new primary, nor
        with what retention or a rebuild that is under way takes from the old one."""
        said = [
            [str(c.old), str(c.new), c.old_topic_id.hex, c.new_topic_id.hex, c.mirrored_next, c.old_end]
            for c in (*self.cuts, *self.late)
        ]
        whole = json.dumps([self.flow, self.reverse, str(self.way), said], separators=(",", ":"))
        return sha256(whole.encode()).hexdigest()[:_HASH_CHARACTERS]

    @property
    def tail(self) -> Estimate:
        return total(cut.tail for cut in self.cuts)

    @property
    def written(self) -> Estimate:
        return total(cut.written for cut in self.cuts)

    def as_dict(self) -> dict[str, object]:
        said: dict[str, object] = {
            "v": 1,
            "flow": self.flow,
            "reverse": self.reverse,
            "way": str(self.way),
            "plan": self.hash,
            "divergent_records": self.tail.as_dict(),
            "to_copy_back": self.written.as_dict(),
            "partitions": [_cut_dict(cut, parted=True) for cut in self.cuts]
            + [_cut_dict(cut, parted=False) for cut in self.late],
            "notes": list(self.notes),
            "groups_at_work": list(self.at_work),
        }
        return said if self.rebuild is None else {**said, "rebuild": self.rebuild.as_dict()}


def export_topic(topic: str, begun_ms: int) -> str:
    """Where the divergent tail of a topic goes: the same name in every try of one failback."""
    moment = datetime.fromtimestamp(begun_ms / 1000, UTC).strftime("%Y%m%dT%H%M%SZ")
    return f"{export_prefix(topic)}{moment}"


def export_prefix(topic: str) -> str:
    """What the names of all exports of a topic begin with; Kafka takes no longer ones than 249."""
    return f"{topic[: 249 - len(EXPORT_MARK) - _MOMENT_CHARACTERS]}{EXPORT_MARK}"


def _cut_dict(cut: Divergence, *, parted: bool) -> dict[str, object]:
    return {
        "old": str(cut.old),
        "new": str(cut.new),
        "mirrored_next": cut.mirrored_next,
        "written_from": cut.written_from,
        "old_end": cut.old_end,
        "diverges": parted,
        "tail_records": cut.tail.as_dict(),
        "tail_bytes": cut.tail_bytes.as_dict(),
        "written": cut.written.as_dict(),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicImpact:
    old: str
    new: str
    partitions: int
    tail: Estimate
    tail_bytes: Estimate
    written: Estimate
    parted: bool


def impacts(plan: FailbackPlan) -> list[TopicImpact]:
    by_topic: dict[tuple[str, str, bool], list[Divergence]] = {}
    for parted, cuts in ((True, plan.cuts), (False, plan.late)):
        for cut in cuts:
            by_topic.setdefault((cut.old.topic, cut.new.topic, parted), []).append(cut)
    return [
        TopicImpact(
            old=old,
            new=new,
            partitions=len(cuts),
            tail=total(cut.tail for cut in cuts),
            tail_bytes=total(cut.tail_bytes for cut in cuts),
            written=total(cut.written for cut in cuts),
            parted=parted,
        )
        for (old, new, parted), cuts in sorted(by_topic.items())
    ]


class Step(StrEnum):
    BEGUN = "begun"
    EXPORTED = "exported"
    """The divergent tail is on the new primary too, and was compared: from here on a rebuild may drop it."""
    RETURNING = "returning"
    """The reverse flow may run."""
    HOME = "home"
    """Writers and groups are back, and the forward flow goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailbackRun:
    run: str
    flow: str
    reverse: str
    way: FailbackMode
    step: Step
    by: str
    begun_ms: int
    at_ms: int
    facts: Mapping[str, object] = field(default_factory=dict)

    @property
    def fence_words(self) -> str:
        return f"failback {self.run}"

    @property
    def is_given_up(self) -> bool:
        """It changed nothing but the fences, and opens no way home."""
        return "given_up" in self.facts

    @property
    def is_under_way(self) -> bool:
        return self.step is not Step.HOME

    @property
    def closes_forward(self) -> bool:
        """The reverse flow leads under the same names: the forward flow rests until all is home."""
        return self.is_under_way and bool(self.facts.get("parted"))

    @property
    def command(self) -> str:
        """What goes on with it, as it is typed."""
        step = "home" if self.step in (Step.RETURNING, Step.HOME) else str(self.way)
        return f"causeway failback {self.flow} --{step}"

    @property
    def stand_by_words(self) -> str:
        """Why the reverse flow stays fenced once all is home: no rollback lifts a fence of these words."""
        return f"{_STANDS_BY}{self.run}: {self.flow} goes on"

    def __str__(self) -> str:
        return f"failback {self.run} of {self.flow} ({self.way}, {self.step} at {rfc3339(self.at_ms)})"


def is_stand_by(owner: str) -> bool:
    """Whether a fence of that owner is one that a homecoming has left on the reverse flow."""
    return owner.startswith(_STANDS_BY)


def parse_failback(flow: str, run: str, fields: Mapping[str, object]) -> FailbackRun:
    """:raises KeyError, ValueError, AssertionError: none of this version's."""
    begun_ms, at_ms, facts = fields["begun_ms"], fields["at_ms"], fields.get("facts") or {}
    assert isinstance(begun_ms, int)
    assert isinstance(at_ms, int)
    assert isinstance(facts, dict)
    return FailbackRun(
        run=run,
        flow=flow,
        reverse=str(fields["reverse"]),
        way=FailbackMode(str(fields["way"])),
        step=Step(str(fields["step"])),
        by=str(fields["by"]),
        begun_ms=begun_ms,
        at_ms=at_ms,
        facts=facts,
    )


def failback_fields(run: FailbackRun) -> dict[str, object]:
    return {
        "reverse": run.reverse,
        "way": str(run.way),
        "step": str(run.step),
        "by": run.by,
        "begun_ms": run.begun_ms,
        "at_ms": run.at_ms,
        "facts": dict(run.facts),
    }
