"""The offset map's records as they are read, and which of them are true: one entry per key, newest wins.

The order of what is left: merged runs first, by their place on the target, then the lanes' own in the order
of their commits. Maintenance merges what is oldest only, and takes away whatever doesn't hold any more: so
each run that is left by itself is newer than all merged ones, whenever those were written down.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from causeway.core.identity import TopicPartition
from causeway.core.map_format import decode_runs, is_merged, target_of
from causeway.core.offset_map import Run


@dataclass(frozen=True, slots=True)
class Entry:
    """A record of the map that counts."""

    key: bytes
    runs: tuple[Run, ...]
    size_bytes: int = 0
    """Of key and value."""

    @property
    def is_merged(self) -> bool:
        return is_merged(self.key)


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """`entries` in the order in which they were said."""
    found = list(entries)
    merged = sorted((e for e in found if e.is_merged), key=lambda e: e.runs[0].target_first)
    return [*merged, *(e for e in found if not e.is_merged)]


class MapEntries:
    """What committed records of the map add up to; `wanted` target partitions, or all.

    Every record is looked at, also those that aren't wanted: one that this code doesn't know is refused.
    """

    def __init__(self, wanted: Container[TopicPartition] | None = None) -> None:
        self._wanted = wanted
        self._values: dict[TopicPartition, dict[bytes, bytes]] = {}

    def take(self, key: bytes, value: bytes | None) -> None:
        target = target_of(key)
        if self._wanted is not None and target not in self._wanted:
            return
        values = self._values.setdefault(target, {})
        values.pop(key, None)  # what is said again is said later
        if value is not None:
            values[key] = value

    @property
    def targets(self) -> list[TopicPartition]:
        return [target for target, values in self._values.items() if values]

    def entries(self, target: TopicPartition) -> list[Entry]:
        found = [
            Entry(key, decode_runs(key, value), len(key) + len(value))
            for key, value in self._values.get(target, {}).items()
        ]
        return in_order(found)

    def runs(self, target: TopicPartition) -> list[Run]:
        return [run for entry in self.entries(target) for run in entry.runs]

    def by_target(self) -> dict[TopicPartition, list[Run]]:
        return {target: self.runs(target) for target in self.targets}
