"""What a rebuild costs: the old primary's topics are emptied, and filled again with what the new one has.

    old primary   start ==== mirrored ==== mirrored_next ~~~~ tail ~~~~ old_end       all of it is deleted
    new primary        start ==== mirrored ==== ---- written since ----               all is copied again

The tail is exported before. What is lost permanently are records before it that the new primary doesn't
have: retention was faster there, the mirror began after them, or an earlier failback left them there.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from causeway.core.kernel.errors import BadInput
from causeway.core.kernel.estimate import Estimate, total
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.plurals import some
from causeway.core.kernel.timestamps import rfc3339
from causeway.core.offsets.offset_map import MappedRange

_UNKNOWN_MS = -1
_THINNED = "compaction on the new primary may have taken records that the old one keeps"
_UNSEEN = "without DescribeConfigs nobody sees whether the new primary compacts them, and so has less"
Stretch = tuple[int, int]
"""Offsets, half-open."""
Settings = Mapping[str, str] | None
"""Of a topic; None: this user may not see them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionImpact:
    old: TopicPartition
    held: Estimate
    """Records of the old primary: all of them are deleted, the tail too."""
    held_bytes: Estimate
    gone: Estimate
    """Those of them that are neither on the new primary nor in the tail."""
    anew: Estimate
    newest_ms: int = _UNKNOWN_MS
    """When the old primary was last written to, by its records' times; -1: not known."""

    def as_dict(self) -> dict[str, object]:
        return {
            "old": str(self.old),
            "deleted_records": self.held.as_dict(),
            "deleted_bytes": self.held_bytes.as_dict(),
            "gone_for_good": self.gone.as_dict(),
            "copied_anew": self.anew.as_dict(),
            "last_written": _time(self.newest_ms),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A group that has committed on the old primary: what it stands at will be gone."""

    group: str
    topics: tuple[str, ...]
    is_active: bool

    def as_dict(self) -> dict[str, object]:
        return {"group": self.group, "topics": list(self.topics), "has_members": self.is_active}


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildImpact:
    source: str
    """The old primary."""
    partitions: tuple[PartitionImpact, ...]
    readers: tuple[Reader, ...] = ()
    written_to: tuple[str, ...] = ()
    """Topics of the old primary that grew while they were looked at."""

    @property
    def deleted(self) -> Estimate:
        return total(each.held for each in self.partitions)

    @property
    def anew(self) -> Estimate:
        return total(each.anew for each in self.partitions)

    @property
    def gone(self) -> Estimate:
        return total(each.gone for each in self.partitions)

    @property
    def losing(self) -> list[str]:
        """Topics of which records are lost permanently, or of which that isn't known; the dearest first."""
        by_topic: dict[str, list[Estimate]] = {}
        for each in self.partitions:
            by_topic.setdefault(each.old.topic, []).append(each.gone)
        gone = {topic: total(figures) for topic, figures in by_topic.items()}
        lost = [topic for topic, figure in gone.items() if not figure.is_nothing]
        return sorted(lost, key=lambda topic: (gone[topic].dearness, topic))

    @property
    def loses(self) -> bool:
        return not self.gone.is_nothing

    def of_topic(self, topic: str) -> list[PartitionImpact]:
        return [each for each in self.partitions if each.old.topic == topic]

    def readers_of(self, topic: str) -> list[Reader]:
        return [each for each in self.readers if topic in each.topics]

    def last_written(self, topic: str) -> str | None:
        return _time(max((each.newest_ms for each in self.of_topic(topic)), default=_UNKNOWN_MS))

    def as_dict(self) -> dict[str, object]:
        return {
            "gone_for_good": self.gone.as_dict(),
            "partitions": [each.as_dict() for each in self.partitions],
            "readers": [each.as_dict() for each in self.readers],
            "written_to": list(self.written_to),
        }


def refuse_rebuild(price: RebuildImpact, *, accepts_loss: bool) -> None:
    """:raises BadInput: somebody is at work on the old primary, or records would be lost permanently."""
    if price.written_to:
        raise still_written_to(price.source, price.written_to)
    active = [reader.group for reader in price.readers if reader.is_active]
    if active:
        raise BadInput(
            f"consumer groups with members on {price.source}",
            value=some(active),
            rule="read topics that are to be emptied, and would begin again there",
            remedy="stop their consumers, then run it again",
        )
    if price.loses and not accepts_loss:
        raise BadInput(
            f"records on {price.source} that no other cluster has",
            value=f"{price.gone}, of {some(price.losing)}",
            rule="would be lost permanently: the new primary can't bring back what it doesn't have"
            + (f" ({price.gone.because})" if price.gone.because else ""),
            remedy="`--resume` keeps them; `--accept-loss` deletes them",
        )


def refuse_unseen(flow: str, plan: str, field: str) -> None:
    """Where nobody is asked, whoever says yes to a rebuild says to which: what it would empty has a price.

    :raises BadInput: no plan was named.
    """
    if not plan:
        raise BadInput(
            f"rebuild of flow {flow}",
            rule="deletes records, and where it doesn't ask it needs the plan that was agreed to",
            remedy=f"`causeway failback {flow} --rebuild --dry-run` shows the price and the plan: "
            f"name it by {field}",
        )


def still_written_to(source: str, topics: Iterable[str]) -> BadInput:
    return BadInput(
        f"topics of {source}",
        value=some(sorted(topics)),
        rule="are still written to",
        remedy="stop their writers, then run it again; nothing was dropped that isn't in an export",
    )


def thinned_there_only(here: Settings, there: Settings) -> str:
    """Why the new primary may lack, or lose before it has crossed, records of a topic though the map tells of
    them; empty: nothing says so. Settings that may not be seen prove nothing."""
    if compacts(here):
        return ""
    if there is None:
        return _UNSEEN
    return _THINNED if compacts(there) else ""


def compacts(settings: Settings) -> bool:
    """Where the old primary does, the newest of each key is all that has to be left."""
    return settings is not None and "compact" in settings.get("cleanup.policy", "")


def mirrored_stretches(runs: Iterable[MappedRange], new_start: int) -> list[Stretch]:
    """Which of the old primary's offsets the new one still has, rising; `runs` are those that hold."""
    return _joined((source, source + count) for source, _, count in _copies(runs, 0, new_start))


def copies_there(runs: Iterable[MappedRange], old_start: int, new_start: int) -> list[Stretch]:
    """On the new primary: where copies of what the old one still has lie, one for each offset."""
    return _joined((target, target + count) for _, target, count in _copies(runs, old_start, new_start))


def _copies(runs: Iterable[MappedRange], old_start: int, new_start: int) -> Iterator[tuple[int, int, int]]:
    """Source offset, target offset, and how many there are from there on, of what both logs still reach."""
    for run in runs:
        source, target = int(run.source_first), int(run.target_first)
        for copied, skipped in run.segments:
            trimmed = max(new_start - target, old_start - source, 0)
            if trimmed < copied:
                yield source + trimmed, target + trimmed, copied - trimmed
            source, target = source + copied + skipped, target + copied


def _joined(stretches: Iterable[Stretch]) -> list[Stretch]:
    found: list[Stretch] = []
    for first, behind in stretches:
        if found and found[-1][1] == first:
            found[-1] = (found[-1][0], behind)
        else:
            found.append((first, behind))
    return found


def offsets_inside(stretches: Sequence[Stretch], first: int, behind: int) -> int:
    """How many offsets of `[first, behind)` are in one of them."""
    return sum(max(0, min(end, behind) - max(start, first)) for start, end in stretches)


def offsets_outside(stretches: Sequence[Stretch], first: int, behind: int) -> int:
    """How many offsets of `[first, behind)` are in none of them."""
    return max(behind - first, 0) - offsets_inside(stretches, first, behind)


def is_inside(stretches: Sequence[Stretch], first: int, behind: int) -> bool:
    """Whether one of them holds all of `[first, behind)`."""
    at = bisect_right(stretches, first, key=lambda stretch: stretch[0]) - 1
    return at >= 0 and behind <= stretches[at][1]


def is_apart(stretches: Sequence[Stretch], first: int, behind: int) -> bool:
    """Whether none of them holds any of `[first, behind)`."""
    at = bisect_left(stretches, behind, key=lambda stretch: stretch[0]) - 1
    return at < 0 or stretches[at][1] <= first


def _time(newest_ms: int) -> str | None:
    return rfc3339(newest_ms) if newest_ms >= 0 else None
