"""What the source's readers could see, and whether the target's readers see exactly that.

A source that loses its tail has another history from then on: what was readable before stays a history
that a mirror may have copied to its end; it then has to stop. So there is a list of branches, and
what a target partition shows must be a prefix of one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from causeway.core.kernel.identity import TopicPartition
from causeway.core.records.records import Record, decode_records
from causeway.core.state.position import Position
from tests.simulation.cluster.partition_log import PartitionLog, Stored

FOREIGN = b"foreign"


class Broken(Exception):
    """An invariant doesn't hold."""


@dataclass(slots=True)
class Entry:
    offset: int
    record: Record
    optional: bool = False
    """A mirror may lack it: compaction took it, or its commit was lost with the source's tail."""


def same(one: Record, other: Record) -> bool:
    return (one.timestamp_ms, one.key, one.value, one.headers) == (
        other.timestamp_ms,
        other.key,
        other.value,
        other.headers,
    )


def records_of(batch: Stored) -> list[Record]:
    if not batch.head.record_count:
        return []
    return decode_records(memoryview(batch.data), batch.head)


def _next_like(entries: list[Entry], place: int, record: Record) -> int | None:
    """Where this record is, if it is the next that a mirror has to show."""
    for at in range(place, len(entries)):
        if same(entries[at].record, record):
            return at
        if not entries[at].optional:
            return None
    return None


class History:
    """One source partition."""

    def __init__(self, log: PartitionLog) -> None:
        self.log = log
        self.branches: list[list[Entry]] = [[]]
        self._by_offset: dict[int, Entry] = {}
        self._read_to = 0
        self.cuts: list[int] = []
        self.trimmed = False
        self.changes = 0

    def read_on(self) -> None:
        limit = self.log.last_stable
        if limit <= self._read_to:
            return
        for batch in self.log.read(self._read_to, limit, 1_000_000):
            if self.log.hides(batch):
                continue
            for record in records_of(batch):
                known = self._by_offset.get(record.offset)
                if known is None:
                    entry = self._by_offset[record.offset] = Entry(record.offset, record)
                    self.branches[-1].append(entry)
                elif record.offset >= self.log.start:
                    known.optional = False
        self._read_to = limit

    def cut(self, end: int) -> None:
        self.cuts.append(end)
        self.changes += 1
        stable = self.log.last_stable
        kept = [Entry(e.offset, e.record, e.optional) for e in self.branches[-1] if e.offset < end]
        for entry in kept:
            entry.optional = entry.optional or entry.offset >= stable
        self.branches.append(kept)
        self._by_offset = {e.offset: e for e in kept}
        self._read_to = min(self._read_to, stable)

    def make_optional(self, offsets: set[int]) -> None:
        for branch in self.branches:
            for entry in branch:
                if entry.offset in offsets:
                    entry.optional = True


class Mirror:
    """What a `read_committed` reader of one target partition sees."""

    def __init__(
        self, target: TopicPartition, log: PartitionLog, history: History, begins: Callable[[], int]
    ) -> None:
        """`begins`: the source offset of the first record that belongs here."""
        self.target, self.log, self.history, self._begins_at = target, log, history, begins
        self.sources: dict[int, int] = {}
        """Target offset -> source offset, of what is visible."""
        self.foreign_at: int | None = None
        self.was_cut = False
        """Lost its tail; no position has been committed since that agrees with it."""
        self.has_been_cut = False
        self.position_when_cut: Position | None = None
        self.settled_at: Position | None = None
        """The position when records were committed that it may not know yet."""
        self._begin()

    @property
    def is_settled(self) -> bool:
        """A new leader doesn't know at once how far its log is replicated: readers have to wait for that."""
        return self.log.high_watermark >= self.log.replicated

    def _begin(self) -> None:
        self._version, self._changes = self.log.version, self.history.changes
        self._read_to = 0
        self._places = dict.fromkeys(range(len(self.history.branches)), 0)
        self.sources.clear()
        self.foreign_at = None
        self.last_source = -1

    def read_on(self) -> None:
        limit = self.log.last_stable
        if (
            self._version != self.log.version
            or self._changes != self.history.changes
            or limit < self._read_to
        ):
            self._begin()
        if limit <= self._read_to:
            return
        for batch in self.log.read(self._read_to, limit, 1_000_000):
            if self.log.hides(batch):
                continue
            for record in records_of(batch):
                self._see(record)
        self._read_to = limit

    def _see(self, record: Record) -> None:
        if record.value is not None and record.value.startswith(FOREIGN):
            self.foreign_at = record.offset
            return
        if self.foreign_at is not None and self.foreign_at >= self.log.start:
            raise Broken(
                f"{self.target} goes on at {record.offset} behind a foreign record at {self.foreign_at}"
            )
        places: dict[int, int] = {}
        self._pass_over_what_is_older()
        for number, place in self._places.items():
            found = _next_like(self.history.branches[number], place, record)
            if found is not None:
                places[number] = found + 1
                self.last_source = self.history.branches[number][found].offset
        if not places and self._begins_here(record):
            places = self._anywhere(record)
        if not places:
            raise Broken(self._complaint(record))
        self._places = places
        self.sources[record.offset] = self.last_source

    def _pass_over_what_is_older(self) -> None:
        """What lies before the place where the partition began is never shown."""
        begins = self._begins_at()
        for number in self._places:
            entries = self.history.branches[number]
            while self._places[number] < len(entries) and entries[self._places[number]].offset < begins:
                self._places[number] += 1

    def _begins_here(self, record: Record) -> bool:
        """Of a log that was cut: an abort hid what the cut had left of a transaction, and retention took it
        before anybody could look. The first record that is left is where readers begin."""
        start = self.log.start
        return self.has_been_cut and start > 0 and not any(start <= at < record.offset for at in self.sources)

    def _anywhere(self, record: Record) -> dict[int, int]:
        found: dict[int, int] = {}
        for number, place in self._places.items():
            entries = self.history.branches[number]
            at = next((i for i in range(place, len(entries)) if same(entries[i].record, record)), None)
            if at is not None:
                found[number], self.last_source = at + 1, entries[at].offset
        return found

    def _complaint(self, record: Record) -> str:
        wanted = [
            b[p].record.value if p < len(b) else None
            for b, p in ((self.history.branches[n], p) for n, p in self._places.items())
        ]
        again = [o for o, s in self.sources.items() if self._source_of(record) == s]
        what = f"repeats what it shows at {again[0]}" if again else "isn't what comes next on the source"
        return f"{self.target} at {record.offset} shows {record.value!r}, which {what}: {wanted}"

    def _source_of(self, record: Record) -> int:
        return next((e.offset for b in self.history.branches for e in b if same(e.record, record)), -1)

    @property
    def shows_another_history(self) -> bool:
        """The source lost what is copied here, and went on in another way."""
        return len(self.history.branches) - 1 not in self._places

    def lacks_before(self, source_next: int) -> Entry | None:
        """A record before this source offset that isn't visible here, in every history that fits."""
        missing: list[Entry] = []
        self._pass_over_what_is_older()
        for number, place in self._places.items():
            entries = self.history.branches[number]
            found = next((e for e in entries[place:] if not e.optional), None)
            if found is None or found.offset >= source_next:
                return None
            missing.append(found)
        return missing[0] if missing else None
