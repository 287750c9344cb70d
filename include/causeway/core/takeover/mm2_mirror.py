"""Taking a mirror over from MirrorMaker 2: what its topics say, and where its tail stands beside the source.

MirrorMaker 2 writes records first and commits their offsets up to a minute later, and each life of it begins
after the last commit. So its target holds more than it says: what lies after the commit is found by
comparing, record by record, from a place that is known on both sides. Each record has to be the source's next
one, or one from which on it began again; then every source record up to the furthest one is there, and none
after it is.

Invariants
    A. Nothing is proved that wasn't compared. What differs is `Unproved`, and a person decides.
    B. A place is known by an offset sync (MirrorMaker heard both offsets from the brokers), by records that
       are there just once, or because both logs have never lost their beginning.
    C. No earlier life came further than the walk: the walk looks for the next record before it.
    D. What the comparison takes for the source's next record equals it in all that a reader sees: if two
       places can't be distinguished, then the mirrors that they lead to can't, either.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from causeway.core.kernel.identity import TopicPartition
from causeway.core.records.mm2_formats import OffsetSync, Unreadable
from causeway.core.verify.tail_search import ShownRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorMakerPlaces:
    """Where MirrorMaker 2 keeps what it knows of a flow."""

    connector: str
    offsets_topic: str
    """On the target."""
    syncs_topic: str
    syncs_on_source: bool
    group: str
    """Of its workers, on the target: who is a member lives."""
    is_isolated: bool
    """It reads what is committed on the source; else all there is, aborted records too."""
    altering: str = ""
    """The key of a transformation, if there is one: its mirrors aren't the source's records."""


CommittedOffsets = dict[TopicPartition, int]
"""By source partition: the last source offset that MirrorMaker 2 says it has copied."""


def take_connect_offset(
    found: CommittedOffsets, key: bytes | None, value: bytes | None, *, connector: str, cluster: str
) -> None:
    """One record of a Connect offsets topic; later ones win, and none takes away.

    :raises Unreadable: of this connector, and not what MirrorMaker 2 writes.
    """
    try:
        named = json.loads(key or b"null")
        if not isinstance(named, list) or len(named) != 2 or named[0] != connector:
            return
        at = named[1]
        if at.get("cluster") != cluster:
            return
        tp = TopicPartition(str(at["topic"]), int(at["partition"]))
        said = json.loads(value) if value else None
        offset = -1 if said is None else int(said["offset"])
        if offset < 0:  # to MirrorMaker, too, that is none
            found.pop(tp, None)
        else:
            found[tp] = offset
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as cause:
        raise Unreadable(f"not an offset of MirrorSourceConnector: {cause}") from cause


BY_SYNCS = "offset syncs"


class Unproved(Exception):
    """The target's tail can't be proved to be the source's."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """One record that is known on both sides."""

    source: int
    target: int
    told_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """What the two logs hold of a pair of partitions: `[start, end)`."""

    source_start: int
    source_end: int
    target_start: int
    target_end: int


def choose_anchor(syncs: Sequence[OffsetSync], committed: int | None, extent: Extent) -> Anchor | None:
    """The newest sync that both logs still reach; if there is one, not after what was committed."""
    usable = [
        sync
        for sync in syncs
        if extent.source_start <= sync.source_offset < extent.source_end
        and extent.target_start <= sync.target_offset < extent.target_end
    ]
    in_front = [sync for sync in usable if committed is None or sync.source_offset <= committed]
    chosen = (in_front or usable)[-1:]
    return next((Anchor(s.source_offset, s.target_offset, BY_SYNCS) for s in chosen), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Walked:
    """How far the target goes on as the source does."""

    last_source: int
    """The furthest source record that the target holds."""
    last_target: int
    """Where that one lies."""
    compared: int
    repeated: int
    """Records that MirrorMaker 2 has copied more than once."""


ReadFrom = Callable[[int], Iterator[ShownRecord]]


class Walk:
    """The target's tail beside the source, from an anchor on."""

    def __init__(
        self, anchor: Anchor, syncs: Iterable[OffsetSync], source_from: ReadFrom, start: int
    ) -> None:
        """`source_from` reads the source from an offset on; its log begins at `start`."""
        self._anchor, self._source_from, self._start = anchor, source_from, start
        self._told: Mapping[int, int] = {s.target_offset: s.source_offset for s in syncs}
        self._source = source_from(anchor.source)
        self._next: ShownRecord | None = next(self._source, None)
        self._reached, self._at, self._compared, self._repeated = anchor.source - 1, -1, 0, 0

    def over(self, target: Iterable[ShownRecord]) -> Walked:
        """:raises Unproved: a record isn't what should be there."""
        for offset, content in target:
            if self._compared == 0 and offset != self._anchor.target:
                raise Unproved(
                    f"no record is at target offset {self._anchor.target}, though MirrorMaker 2 wrote one"
                )
            self._follow_sync(offset)
            if self._next is None or self._next[1] != content:
                self._next = self._began_anew(offset, (offset, content))
            self._take_offset(offset)
        if not self._compared:
            raise Unproved(f"the target shows no record from offset {self._anchor.target} on")
        return Walked(
            last_source=self._reached,
            last_target=self._at,
            compared=self._compared,
            repeated=self._repeated,
        )

    def _take_offset(self, offset: int) -> None:
        assert self._next is not None
        source = self._next[0]
        self._compared += 1
        if source > self._reached:
            self._reached, self._at = source, offset
        else:
            self._repeated += 1
        self._next = next(self._source, None)

    def _follow_sync(self, offset: int) -> None:
        """Where MirrorMaker 2 recorded which record this is."""
        told = self._told.get(offset)
        if told is None or (self._next is not None and self._next[0] == told):
            return
        if told > self._reached and self._next is not None and self._next[0] < told:
            raise Unproved(
                f"source offset {self._next[0]} isn't there: MirrorMaker went from {self._reached} to {told}"
            )
        self._next = self._reopened(told)
        if self._next is None or self._next[0] != told:
            raise Unproved(f"the source has no record {told} any more, which is at target offset {offset}")

    def _began_anew(self, offset: int, record: ShownRecord) -> ShownRecord:
        """A life of MirrorMaker 2 that was killed before it could tell: the record was copied before."""
        places = [
            at
            for at, content in _up_to(self._source_from(self._start), self._reached)
            if content == record[1]
        ]
        if len(places) != 1:
            expected = "the source's end" if self._next is None else f"source offset {self._next[0]}"
            times = "nowhere" if not places else f"{len(places)} times"
            raise Unproved(f"the record at target offset {offset} isn't {expected}, and is {times} before it")
        found = self._reopened(places[0])
        assert found is not None
        return found

    def _reopened(self, at: int) -> ShownRecord | None:
        self._source = self._source_from(at)
        return next(self._source, None)


def _up_to(records: Iterator[ShownRecord], last: int) -> Iterator[ShownRecord]:
    for record in records:
        if record[0] > last:
            return
        yield record
