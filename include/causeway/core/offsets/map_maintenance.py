"""Keep the offset map small: what to merge and what to take away, for one target partition at a time.

    dead         runs that newer ones have replaced (a lost tail), and those of a target topic that is gone
    too old      runs below the target's log start, up to the one after which the log begins
    mergeable    all others but the newest: they become records of many runs each (`map_format.py`)

What is left says the same as before, but for what is too old; `plan_target` checks that of its own plan.

Invariants
    A. A step is one transaction: a merged record is seen together with the absence of what it replaces.
    B. Steps are played in order, and what is merged is the oldest that is left: a run that stays by itself
       looks newer than every merged one.
    C. The newest runs stay as the lane wrote them: what a lane recovers by is touched by nobody else.
    D. A run below the log start goes only if a newer one stays: a lost position is rebuilt from the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from uuid import UUID

from causeway.core.kernel.errors import ProtocolFault
from causeway.core.kernel.identity import TopicPartition
from causeway.core.offsets.map_entries import Entry, in_order
from causeway.core.offsets.map_format import decode_ranges, encode_merged
from causeway.core.offsets.offset_map import MappedRange, valid_ranges

KEPT_RUNS = 16
LEAST_TO_MERGE = 32
MOST_SEGMENTS = 8_192
_MOST_TOMBSTONES = 4_096


@dataclass(frozen=True, slots=True)
class Step:
    """What one transaction has to write, all of it: new records, and tombstones (None)."""

    records: tuple[tuple[bytes, bytes | None], ...]

    @property
    def keys(self) -> set[bytes]:
        return {key for key, _ in self.records}


def plan_target(
    target: TopicPartition, entries: Sequence[Entry], *, target_topic_id: UUID, log_start: int
) -> list[Step]:
    """`entries` in the map's order, of this target partition; nothing to do: no steps."""
    ours = [entry for entry in entries if entry.runs[0].target_topic_id == target_topic_id]
    dead = [entry.key for entry in entries if entry.runs[0].target_topic_id != target_topic_id]
    too_old: list[bytes] = []
    merges: list[Step] = []
    for source_topic_id in dict.fromkeys(entry.runs[0].source_topic_id for entry in ours):
        group = [entry for entry in ours if entry.runs[0].source_topic_id == source_topic_id]
        found = _Group(group, log_start)
        dead += found.dead
        too_old += found.too_old
        merged = list(found.merges())
        _check(target, group, found, merged)
        merges += merged
    steps = [
        Step(_tombstones(keys[at : at + _MOST_TOMBSTONES]))
        for keys in (dead, too_old)
        for at in range(0, len(keys), _MOST_TOMBSTONES)
    ]
    return steps + merges


class _Group:
    """The entries of one pair of topics, and what each one's runs are worth."""

    def __init__(self, entries: Sequence[Entry], log_start: int) -> None:
        holding = valid_ranges(chain.from_iterable(entry.runs for entry in entries))
        self._rank = {_begins_at(run): at for at, run in enumerate(holding)}
        self._holding = holding
        self._teller = {_begins_at(run): entry.key for entry in entries for run in entry.runs}
        """Of runs at the same place the newest one holds."""
        self.dead = [entry.key for entry in entries if not self._held(entry)]
        alive = [entry for entry in entries if self._held(entry)]
        alive.sort(key=lambda entry: self._rank[_begins_at(self._held(entry)[0])])
        touchable = len(holding) - KEPT_RUNS
        self.too_old: list[bytes] = []
        self._mergeable: list[Entry] = []
        begins = [self._held(entry)[0].target_first for entry in alive]
        for entry, next_begins in zip(alive, begins[1:], strict=False):
            if self._rank[_begins_at(self._held(entry)[-1])] >= touchable:
                break
            if next_begins <= log_start:
                self.too_old.append(entry.key)
            else:
                self._mergeable.append(entry)

    def _held(self, entry: Entry) -> list[MappedRange]:
        """What is true of it still, cut where a newer run begins."""
        told = (_begins_at(run) for run in entry.runs if self._teller[_begins_at(run)] == entry.key)
        return [self._holding[self._rank[place]] for place in told if place in self._rank]

    def merges(self) -> Iterator[Step]:
        """Of neighbours, from the oldest on without a gap. Full merged records stay, and so do the last runs
        if they are few."""
        chunks = list(self._together())
        for number, together in enumerate(chunks, 1):
            alone = sum(not entry.is_merged for entry in together)
            if alone == 0 or (number == len(chunks) and alone < LEAST_TO_MERGE):
                continue
            key, value = encode_merged([run for entry in together for run in self._held(entry)])
            gone = [entry.key for entry in together if entry.key != key]
            yield Step(((key, value), *_tombstones(gone)))

    def _together(self) -> Iterator[list[Entry]]:
        together: list[Entry] = []
        size = 0
        for entry in self._mergeable:
            segments = sum(len(run.segments) for run in self._held(entry))
            if size + segments > MOST_SEGMENTS:
                yield together
                together, size = [], 0
            if entry.is_merged and 2 * segments > MOST_SEGMENTS:
                yield together
                together, size = [], 0
                continue
            together.append(entry)
            size += segments
        yield together


def _begins_at(run: MappedRange) -> tuple[int, int]:
    return run.source_first, run.target_first


def _tombstones(keys: Iterable[bytes]) -> tuple[tuple[bytes, None], ...]:
    return tuple((key, None) for key in keys)


def apply_step(entries: Iterable[Entry], step: Step) -> list[Entry]:
    """What a reader finds once the step is committed."""
    left = [entry for entry in entries if entry.key not in step.keys]
    made = [
        Entry(key, decode_ranges(key, value), len(key) + len(value)) for key, value in step.records if value
    ]
    return in_order([*left, *made])


def _check(target: TopicPartition, entries: Sequence[Entry], found: _Group, merges: Iterable[Step]) -> None:
    """A map that gave other offsets would send readers to other records: better a big one."""
    alive = apply_step(entries, Step(_tombstones(found.dead)))
    young = after = apply_step(alive, Step(_tombstones(found.too_old)))
    for step in merges:
        after = apply_step(after, step)
    if _what_holds(entries) != _what_holds(alive) or _what_holds(young) != _what_holds(after):
        raise ProtocolFault(
            f"offset map of {target}",
            value=f"{len(entries)} entries",
            rule="would say something else once merged",
            remedy="nothing was written; please report it: this is a defect of Causeway",
        )


def _what_holds(entries: Iterable[Entry]) -> list[tuple[int, int, tuple[tuple[int, int], ...]]]:
    holding = valid_ranges(chain.from_iterable(entry.runs for entry in entries))
    return [(*_begins_at(run), run.segments) for run in holding]
