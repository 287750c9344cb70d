"""A recorded cluster as the product's readers would meet it: bytes, in the order in which they were read.

In the files bytes are text where they are UTF-8 that reads the same when it is printed; else {"base64": ...}.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

NOT_COMPACTED = "causeway-quarantine."


@dataclass(frozen=True, slots=True)
class Stored:
    """A record of an internal topic."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class Golden:
    """`is_compacted`: as a cleaner would leave the topics, the newest record of each key."""

    def __init__(self, folder: Path, *, is_compacted: bool = False) -> None:
        self.folder, self.is_compacted = folder, is_compacted

    @cached_property
    def internal_topics(self) -> list[str]:
        return sorted(path.name.removesuffix(".json") for path in (self.folder / "internal").glob("*.json"))

    def records(self, topic: str) -> list[Stored]:
        """None of a topic that this cluster doesn't have."""
        if topic not in self.internal_topics:
            return []
        rows = self._json(f"internal/{topic}.json")
        every = [
            Stored(
                row["partition"],
                row["offset"],
                row["timestamp_ms"],
                as_bytes(row["key"]),
                as_bytes(row["value"]),
                tuple((name, as_bytes(value)) for name, value in row.get("headers", [])),
            )
            for row in rows
        ]
        if not self.is_compacted or topic.startswith(NOT_COMPACTED):
            return every
        newest = {(record.partition, record.key): record for record in every}
        return sorted(newest.values(), key=lambda record: (record.partition, record.offset))

    def topics_named(self, beginning: str) -> list[str]:
        return [topic for topic in self.internal_topics if topic.startswith(beginning)]

    @property
    def cluster_id(self) -> str:
        return str(self._json("cluster.json")["id"])

    @cached_property
    def topics(self) -> dict[str, Any]:
        """Id and number of partitions of every topic."""
        found: dict[str, Any] = self._json("topics.json")
        return found

    @cached_property
    def groups(self) -> dict[str, dict[str, Any]]:
        """By group and partition: topic, partition, offset, metadata."""
        found: dict[str, dict[str, Any]] = self._json("groups.json")
        return found

    @cached_property
    def logs(self) -> dict[str, dict[str, list[tuple[int, int, Any]]]]:
        """Of topics that aren't internal: offset, time and value, by partition."""
        found: dict[str, dict[str, list[tuple[int, int, Any]]]] = self._json("logs.json")
        return found

    def _json(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text(encoding="utf-8"))


def as_text(value: bytes | None) -> object:
    if value is None:
        return None
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = ""
    return (
        text
        if text.isprintable() and text.encode() == value
        else {"base64": base64.b64encode(value).decode()}
    )


def as_bytes(told: Any) -> bytes | None:
    if told is None:
        return None
    return base64.b64decode(told["base64"]) if isinstance(told, dict) else str(told).encode()
