"""What is copied: four kinds of data, each the same bytes for every contender."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    name: str
    title: str
    records: int
    value_bytes: int
    topics: int
    partitions_per_topic: int
    codec: str
    batch_bytes: int
    """What the producer of the source aims at; 0: each record is a batch of its own."""

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
        title="5,000,000 records of 100 B, uncompressed, 4 partitions",
        records=5_000_000,
        value_bytes=100,
        topics=1,
        partitions_per_topic=4,
        codec="none",
        batch_bytes=_BATCH_BYTES,
    ),
    Workload(
        name="lz4",
        title="1,500,000 records of 1 KB, lz4, 4 partitions",
        records=1_500_000,
        value_bytes=1_000,
        topics=1,
        partitions_per_topic=4,
        codec="lz4",
        batch_bytes=_BATCH_BYTES,
    ),
    Workload(
        name="singles",
        title="500,000 records of 200 B, each a batch of its own (linger 0), 4 partitions",
        records=500_000,
        value_bytes=200,
        topics=1,
        partitions_per_topic=4,
        codec="none",
        batch_bytes=0,
    ),
    Workload(
        name="wide",
        title="500,000 records of 200 B, spread over 1,000 partitions of 20 topics",
        records=500_000,
        value_bytes=200,
        topics=20,
        partitions_per_topic=50,
        codec="none",
        batch_bytes=16 << 10,
    ),
)


def chosen(names: str, scale: float, batch_bytes: int | None) -> tuple[Workload, ...]:
    """By name, comma separated, all if empty.

    :raises ValueError: a name that none has.
    """
    known = {workload.name: workload for workload in WORKLOADS}
    wanted = [name.strip() for name in names.split(",") if name.strip()] or list(known)
    strange = [name for name in wanted if name not in known]
    if strange:
        raise ValueError(f"WORKLOADS = {', '.join(strange)}: known are {', '.join(known)}")
    found = (known[name].scaled(scale) for name in wanted)
    return tuple(
        replace(each, batch_bytes=batch_bytes) if batch_bytes and each.batch_bytes else each for each in found
    )
