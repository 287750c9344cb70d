"""What is copied: four kinds of data, each the same bytes for every contender."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    name: str
    records: int
    value_bytes: int
    topics: int
    partitions_per_topic: int
    codec: str
    batch_bytes: int
    """What the producer of the source aims at; 0: each record is a batch of its own."""
    broker_settings: tuple[tuple[str, str], ...] = ()
    """Of both brokers, for everybody."""

    @property
    def title(self) -> str:
        codec = "uncompressed" if self.codec == "none" else self.codec
        single = "" if self.batch_bytes else ", each a batch of its own (linger 0)"
        topics = f" of {self.topics} topics" if self.topics > 1 else ""
        return (
            f"{self.records:,} records of {self.value_bytes:,} B, {codec}{single}, "
            f"{self.partitions:,} partitions{topics}"
        )

    @property
    def topic_names(self) -> tuple[str, ...]:
        return tuple(f"{self.name}-{number}" for number in range(self.topics))

    @property
    def partitions(self) -> int:
        return self.topics * self.partitions_per_topic

    @property
    def value_bytes_in_all(self) -> int:
        """Uncompressed: what `MB/s` and `per GB` are about, because it is the same for everybody."""
        return self.records * self.value_bytes

    def scaled(self, scale: float) -> Workload:
        """A smaller one of the same kind: fewer records, and fewer topics where those are the point."""
        topics = max(round(self.topics * scale), 1)
        least = topics * self.partitions_per_topic
        records = max(round(self.records * scale), least)
        return replace(self, topics=topics, records=records)


_BATCH_BYTES = 64 << 10

WORKLOADS = (
    Workload(
        name="plain",
        records=5_000_000,
        value_bytes=100,
        topics=1,
        partitions_per_topic=4,
        codec="none",
        batch_bytes=_BATCH_BYTES,
    ),
    Workload(
        name="lz4",
        records=1_500_000,
        value_bytes=1_000,
        topics=1,
        partitions_per_topic=4,
        codec="lz4",
        batch_bytes=_BATCH_BYTES,
    ),
    Workload(
        name="singles",
        records=500_000,
        value_bytes=200,
        topics=1,
        partitions_per_topic=4,
        codec="none",
        batch_bytes=0,
    ),
    Workload(
        name="wide",
        records=500_000,
        value_bytes=200,
        topics=20,
        partitions_per_topic=50,
        codec="none",
        batch_bytes=16 << 10,
        # A broker makes index files of 10 MiB for each new partition, at the default: see method.md.
        broker_settings=(("log.index.size.max.bytes", str(256 << 10)),),
    ),
)


LINE = Workload(
    name="line",
    records=500_000,
    value_bytes=1_000,
    topics=1,
    partitions_per_topic=1,
    codec="none",
    batch_bytes=_BATCH_BYTES,
)
"""Copied over a slow line (slow_line.py)."""


def split_names(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]


def chosen(names: str, scale: float, batch_bytes: int | None) -> tuple[Workload, ...]:
    """By name, comma separated, all if empty.

    :raises ValueError: a name that none has.
    """
    known = {workload.name: workload for workload in WORKLOADS}
    wanted = split_names(names) or list(known)
    strange = [name for name in wanted if name not in (*known, LINE.name)]
    if strange:
        raise ValueError(f"WORKLOADS = {', '.join(strange)}: known are {', '.join((*known, LINE.name))}")
    found = (known[name].scaled(scale) for name in wanted if name in known)
    return tuple(
        replace(each, batch_bytes=batch_bytes) if batch_bytes and each.batch_bytes else each for each in found
    )
