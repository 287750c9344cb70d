"""What the campaign proves: sequences of digests, compared partition by partition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from causeway.core.verify.report import VerifyReport
from tests.proofs.chaos.parts.readers import Digests
from tests.proofs.chaos.schedule import Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What a reader of the mirror saw, beside what a `read_committed` reader of the source sees."""

    lost: int
    repeated: int
    """Seen again: each time but the first."""
    out_of_order: int
    """Seen for the first time after a record that comes later on the source."""
    foreign: int
    """Not on the source, or aborted there."""

    @property
    def is_exact(self) -> bool:
        return self == Tally(lost=0, repeated=0, out_of_order=0, foreign=0)

    def __add__(self, other: Tally) -> Tally:
        return Tally(**{name: getattr(self, name) + getattr(other, name) for name in Tally.__slots__})


def tally(wanted: Digests, seen: Digests) -> Tally:
    """Of one partition; no two records of the source are the same."""
    order = np.argsort(wanted, kind="stable")
    place = np.searchsorted(wanted, seen, sorter=order)
    found = order[np.minimum(place, len(wanted) - 1)] if len(wanted) else np.zeros(len(seen), dtype=int)
    known = found[wanted[found] == seen] if len(wanted) else found[:0]
    firsts = known[np.sort(np.unique(known, return_index=True)[1])]
    return Tally(
        lost=len(wanted) - len(firsts),
        repeated=len(known) - len(firsts),
        out_of_order=int(np.count_nonzero(firsts < np.maximum.accumulate(firsts))) if len(firsts) else 0,
        foreign=len(seen) - len(known),
    )


def tally_all(source: Mapping[str, Digests], seen: Mapping[str, Digests]) -> Tally:
    nothing = np.zeros(0, dtype="<u8")
    parts = (tally(wanted, seen.get(f"sf.{place}", nothing)) for place, wanted in source.items())
    return sum(parts, Tally(lost=0, repeated=0, out_of_order=0, foreign=0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    records: int
    repeats: int
    """What a reader without isolation saw again."""
    committed: Tally
    uncommitted: Tally
    faults: Mapping[Fault, int]
    hits: int
    runs: int
    events: list[str]
    seconds: float


def prove(
    source: Mapping[str, Digests],
    saw_committed: Mapping[str, Digests],
    saw_uncommitted: Mapping[str, Digests],
    report: Mapping[str, Any],
    verified: VerifyReport,
    *,
    faults: Mapping[Fault, int],
    hits: int,
    runs: int,
    events: list[str],
    seconds: float,
) -> Proof:
    """:raises AssertionError: naming every partition in which something is not as it must be."""
    wrong: list[str] = []
    records = repeats = 0
    told = {row["target"]: row["repeats_in_all"] for row in report["partitions"]}
    for place, wanted in source.items():
        wrong += compare_in_order(f"read_committed reader of {place}", wanted, saw_committed[f"sf.{place}"])
        seen = saw_uncommitted[f"sf.{place}"]
        if not np.array_equal(np.unique(seen), np.unique(wanted)):
            wrong.append(f"{place}: the read_uncommitted reader saw other records than the source has")
        twice = len(seen) - len(np.unique(seen))
        if twice != told[f"sf.{place}"]:
            wrong.append(
                f"{place}: the read_uncommitted reader saw {twice} records again, "
                f"the report says {told[f'sf.{place}']}"
            )
        records, repeats = records + len(wanted), repeats + twice
    wrong += [f"verify: {verdict}" for verdict in verified.unequal]
    if verified.records_equal != records:
        wrong.append(f"verify: {verified.records_equal} equal records of {records}")
    if report["lag"] or report["parked"]:
        wrong.append(f"the last report: lag {report['lag']}, parked {report['parked']}")
    if repeats != report["repeats_in_all"]:
        wrong.append(f"{repeats} repeats were seen, the report says {report['repeats_in_all']}")
    if wrong:
        raise AssertionError("; ".join(wrong))
    return Proof(
        records=records, repeats=repeats,
        committed=tally_all(source, saw_committed), uncommitted=tally_all(source, saw_uncommitted),
        faults=faults, hits=hits, runs=runs, events=events, seconds=seconds,
    )  # fmt: skip


def compare_in_order(what: str, wanted: Digests, seen: Digests) -> list[str]:
    """Nothing lost, nothing repeated, nothing out of order: or where it first isn't so."""
    if np.array_equal(wanted, seen):
        return []
    shorter = min(len(wanted), len(seen))
    differing = np.flatnonzero(wanted[:shorter] != seen[:shorter])
    first = int(differing[0]) if len(differing) else shorter
    lost = len(np.setdiff1d(wanted, seen))
    foreign = len(np.setdiff1d(seen, wanted))
    again = len(seen) - len(np.unique(seen))
    return [
        f"{what}: {len(seen)} records of {len(wanted)}, first difference at record {first}; "
        f"{lost} lost, {foreign} foreign, {again} repeated"
    ]
