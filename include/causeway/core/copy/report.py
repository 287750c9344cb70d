"""What a run did, folded from its lanes' rows: the numbers that somebody trusts at four in the morning.

Records, bytes and batches are of committed transactions only. `repeats` are records of aborted
attempts: readers without isolation saw them once more than everybody else. `settled` are records of
attempts that died and were kept: nobody saw those again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Literal

from causeway.core.copy.lane_task import LaneResult, PartitionRow
from causeway.core.kernel.errors import CausewayError, FlowFenced, Superseded
from causeway.core.kernel.identity import TopicPartition
from causeway.core.state.parked import Parked

REPORT_VERSION = 1
RunOutcome = Literal["caught up", "time over", "interrupted", "superseded", "fenced", "failed"]


def outcome_of(error: CausewayError) -> RunOutcome:
    """Of a run that ends with it."""
    match error:
        case FlowFenced():
            return "fenced"
        case Superseded():
            return "superseded"
        case _:
            return "failed"


@dataclass(slots=True, kw_only=True)
class PartitionReport:
    source: str
    target: str
    source_from: int
    source_next: int
    last_stable: int
    records: int = 0
    """Mirrored by this run; in the end by what is committed, whatever became of a lane's answer."""
    records_before: int = 0
    repeats_before: int = 0
    size_bytes: int = 0
    verbatim_batches: int = 0
    repacked_batches: dict[str, int] = field(default_factory=dict)
    repeats: int = 0
    """Counted since this run began."""
    repeats_in_all: int = 0
    """Since the flow began, from the committed position: no killed run can lose the count."""
    settled: int = 0
    """Of `records`: left open by a worker that died, and kept."""
    quarantined: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """Why, and which source offsets, as ranges: they are in the quarantine topic, not in the mirror."""
    recopied_from: int | None = None
    held_back: int = 0
    """Source offsets after its last stable offset: a transaction is open there."""
    parked: dict[str, str] | None = None
    later: str = ""

    @property
    def lag(self) -> int:
        return max(self.last_stable - self.source_next, 0)

    @property
    def quarantined_records(self) -> int:
        return sum(behind - first for ranges in self.quarantined.values() for first, behind in ranges)

    def put_aside(self, offsets: dict[int, str]) -> None:
        """More records in quarantine; neighbours make one range."""
        for offset, why in sorted(offsets.items()):
            ranges = self.quarantined.setdefault(why, [])
            if ranges and ranges[-1][1] == offset:
                ranges[-1] = (ranges[-1][0], offset + 1)
            else:
                ranges.append((offset, offset + 1))

    def read_back(self, records: int, repeats: int) -> None:
        """Totals as they are committed: the last word."""
        self.records = records - self.records_before
        self.repeats = repeats - self.repeats_before
        self.repeats_in_all = repeats


@dataclass(slots=True, kw_only=True)
class RunReport:
    flow: str
    run: str
    holder: str
    generation: int
    began_at: str
    topics: tuple[str, ...] | None = None
    """The source topics that the run was about; None: all of the flow's."""
    ends_seen_at: str = ""
    """When the run first saw the source's ends: up to there it is caught up (`core/copy/run_end.py`)."""
    seconds: float = 0.0
    outcome: RunOutcome = "failed"
    why: str = ""
    rounds: int = 0
    transactions: int = 0
    doubts: int = 0
    partitions: dict[TopicPartition, PartitionReport] = field(default_factory=dict)
    """By source partition."""
    parked_by_plan: frozenset[TopicPartition] = frozenset()
    """Those that the last plan found parked: they may be cured without a lane's word."""
    waits_by_plan: frozenset[TopicPartition] = frozenset()
    """Likewise those that had to wait."""
    in_doubt: list[dict[str, object]] = field(default_factory=list)
    """Lanes whose doubt didn't end: number, how often in a row, why."""
    refused_topics: list[dict[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def records(self) -> int:
        return sum(p.records for p in self.partitions.values())

    @property
    def size_bytes(self) -> int:
        return sum(p.size_bytes for p in self.partitions.values())

    @property
    def lag(self) -> int:
        return sum(p.lag for p in self.partitions.values())

    @property
    def parked(self) -> list[PartitionReport]:
        return [p for p in self.partitions.values() if p.parked]

    @property
    def leaves_something_out(self) -> bool:
        """Whether a person should look before everything that was asked for is copied."""
        return bool(self.parked or self.refused_topics or self.in_doubt)

    def as_dict(self, *, with_partitions: bool = True) -> dict[str, object]:
        repacked: dict[str, int] = {}
        for p in self.partitions.values():
            for why, count in p.repacked_batches.items():
                repacked[why] = repacked.get(why, 0) + count
        summary: dict[str, object] = {
            "version": REPORT_VERSION,
            "flow": self.flow,
            "run": self.run,
            "holder": self.holder,
            "generation": self.generation,
            "began_at": self.began_at,
            "topics": None if self.topics is None else list(self.topics),
            "ends_seen_at": self.ends_seen_at or None,
            "seconds": round(self.seconds, 3),
            "outcome": self.outcome,
            "why": self.why,
            "records": self.records,
            "bytes": self.size_bytes,
            "lag": self.lag,
            "verbatim": sum(p.verbatim_batches for p in self.partitions.values()),
            "repacked": repacked,
            "repeats": sum(p.repeats for p in self.partitions.values()),
            "repeats_in_all": sum(p.repeats_in_all for p in self.partitions.values()),
            "settled": sum(p.settled for p in self.partitions.values()),
            "held_back": sum(p.held_back for p in self.partitions.values()),
            "quarantined": sum(p.quarantined_records for p in self.partitions.values()),
            "waiting": sum(bool(p.later) for p in self.partitions.values()),
            "rounds": self.rounds,
            "transactions": self.transactions,
            "doubts": self.doubts,
            "in_doubt": self.in_doubt,
            "parked": [{"source": p.source, "target": p.target, **(p.parked or {})} for p in self.parked],
            "refused_topics": self.refused_topics,
            "notes": self.notes,
        }
        if with_partitions:
            summary["partitions"] = [{**asdict(p), "lag": p.lag} for _, p in sorted(self.partitions.items())]
        return summary

    def fold(self, results: Iterable[LaneResult]) -> None:
        for result in results:
            self.transactions += result.transactions
            self.doubts += result.outcome in ("doubt", "beaten")
            for row in result.rows:
                self._fold_row(row)

    def _fold_row(self, row: PartitionRow) -> None:
        mine = self.partitions[row.source]
        if row.source_next >= 0:
            if mine.records == 0 and mine.source_from < 0:
                mine.source_from = row.source_from
            mine.source_next = row.source_next
        mine.records += row.records
        mine.size_bytes += row.size_bytes
        mine.verbatim_batches += row.verbatim_batches
        mine.repeats += row.aborted_records
        mine.settled += row.settled_records
        for why, count in row.repacked_batches.items():
            mine.repacked_batches[why] = mine.repacked_batches.get(why, 0) + count
        mine.put_aside(row.quarantined)
        if row.recopied_from is not None:
            mine.recopied_from = row.recopied_from
        if row.parked is not None or not row.later:  # a lost round says nothing about what was parked
            mine.parked = parked_dict(row.parked)
        mine.later = row.later


def parked_dict(parked: Parked | None) -> dict[str, str] | None:
    return None if parked is None else parked.as_dict()
