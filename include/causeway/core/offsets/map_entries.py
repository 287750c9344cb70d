"""The offset map's records as they are read, and which of them are true: one entry per key, newest wins.

The order of what is left: merged runs first, by their place on the target, then the lanes' own in the order
of their commits. Maintenance merges what is oldest only, and takes away whatever doesn't hold any more: so
each run that is left by itself is newer than all merged ones, whenever those were written down.

A record that can't be read would leave a hole, and a consumer that stands in it would skip records. So the
map of its target partition begins after it: what is older gets no answer any more, and no answer is wrong.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from causeway.core.kernel.errors import NewerFormat, ProtocolFault
from causeway.core.kernel.identity import TopicPartition
from causeway.core.offsets.map_format import (
    decode_place,
    decode_range,
    decode_ranges,
    is_merged,
    is_place,
    merged_place,
    target_of,
)
from causeway.core.offsets.offset_map import MappedRange
from causeway.core.state.position import Position


@dataclass(frozen=True, slots=True)
class Entry:
    """A record of the map that counts."""

    key: bytes
    runs: tuple[MappedRange, ...]
    size_bytes: int = 0
    """Of key and value."""

    @property
    def is_merged(self) -> bool:
        return is_merged(self.key)


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """`entries` in the order in which they were written."""
    found = list(entries)
    merged = sorted((e for e in found if e.is_merged), key=lambda e: e.runs[0].target_first)
    return [*merged, *(e for e in found if not e.is_merged)]


@dataclass(frozen=True, slots=True)
class MapOf:
    """What the map holds of one target partition."""

    runs: list[MappedRange]
    """Older ones first."""
    place: Position | None = None
    """Where it began or was set last, without records."""


@dataclass(frozen=True, slots=True)
class MapTransaction:
    """What one transaction of a lane wrote into a partition of the map."""

    runs: list[MappedRange]
    places: list[tuple[TopicPartition, Position]]

    @property
    def targets(self) -> set[TopicPartition]:
        return {run.target for run in self.runs} | {target for target, _ in self.places}

    @classmethod
    def of(cls, records: Iterable[tuple[bytes, bytes]]) -> MapTransaction:
        found = list(records)
        return cls(
            runs=[decode_range(key, value) for key, value in found if not is_place(key)],
            places=[(target_of(key), decode_place(key, value)) for key, value in found if is_place(key)],
        )


class MapEntries:
    """What committed records of the map add up to; `wanted` target partitions, or all.

    Every key is looked at, also those that aren't wanted: one that this code doesn't know is refused.
    """

    def __init__(self, wanted: Container[TopicPartition] | None = None) -> None:
        self._wanted = wanted
        self._values: dict[TopicPartition, dict[bytes, bytes]] = {}
        self.places: dict[TopicPartition, Position] = {}
        """Where partitions began or were set, the newest of each."""
        self.broken: set[TopicPartition] = set()
        """Of which a value can't be read: known once their entries were asked for."""

    def take(self, key: bytes, value: bytes | None) -> None:
        target = target_of(key)
        if self._wanted is not None and target not in self._wanted:
            return
        if is_place(key):
            self._take_place(target, key, value)
            return
        values = self._values.setdefault(target, {})
        values.pop(key, None)  # what is written again is written later
        if value is not None:
            values[key] = value

    def _take_place(self, target: TopicPartition, key: bytes, value: bytes | None) -> None:
        self.places.pop(target, None)
        if value is None:
            return
        try:
            self.places[target] = decode_place(key, value)
        except ProtocolFault:
            self.broken.add(target)

    @property
    def targets(self) -> list[TopicPartition]:
        return [target for target, values in self._values.items() if values]

    def entries(self, target: TopicPartition) -> list[Entry]:
        """:raises NewerFormat: one of them can't be read here, and could elsewhere."""
        values = self._values.get(target, {})
        found = {key: _decoded(key, value) for key, value in values.items()}
        if None not in found.values():
            return in_order(entry for entry in found.values() if entry)
        self.broken.add(target)
        return in_order(_after(found))

    def runs(self, target: TopicPartition) -> list[MappedRange]:
        return [run for entry in self.entries(target) for run in entry.runs]

    def by_target(self) -> dict[TopicPartition, MapOf]:
        targets = dict.fromkeys([*self.targets, *self.places])
        runs = {target: self.runs(target) for target in targets}
        places = {target: place for target, place in self.places.items() if target not in self.broken}
        return {target: MapOf(runs[target], places.get(target)) for target in targets}


def _decoded(key: bytes, value: bytes) -> Entry | None:
    try:
        return Entry(key, decode_ranges(key, value), len(key) + len(value))
    except NewerFormat:
        raise
    except ProtocolFault:
        return None


def _after(found: Mapping[bytes, Entry | None]) -> list[Entry]:
    """What was written after each entry that can't be read."""
    alone = [at for at, (key, entry) in enumerate(found.items()) if entry is None and not is_merged(key)]
    merged = [merged_place(key) for key, entry in found.items() if entry is None and is_merged(key)]
    if alone:
        entries = list(found.items())[alone[-1] + 1 :]
        return [entry for _, entry in entries if entry is not None and not entry.is_merged]
    return [
        entry
        for key, entry in found.items()
        if entry is not None and (not entry.is_merged or merged_place(key) > max(merged))
    ]
