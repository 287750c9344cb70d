"""A run's report, made to be read: lines for the log, a small dictionary for XCom and the flow's asset.

Duty: the report itself is written by the Spark driver as JSON, whole; here nothing is computed that isn't
in it. What goes to Airflow's database is cut to a few KB, however many partitions a flow has.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from causeway.core.errors import BadInput

Report = Mapping[str, Any]

REPORTS_VARIABLE = "CAUSEWAY_REPORTS"
SHOWN_TOPICS = 40
KEPT_PARKED = 20
KEPT_CHARACTERS = 160
_NUMBERS = ("records", "bytes", "verbatim", "repacked", "repeats", "lag", "seconds")


def report_path(flow: str, run_id: str, attempt: int) -> Path:
    """`<folder>/<flow>/<run>.<attempt>.json`; the folder must be one that all workers see (CAUSEWAY_REPORTS)."""
    folder = os.environ.get(REPORTS_VARIABLE) or Path(os.environ.get("AIRFLOW_HOME", "."), "reports")
    return Path(folder) / flow / f"{re.sub(r'[^A-Za-z0-9._+-]', '_', run_id)}.{attempt}.json"


def read_report(path: Path) -> Report:
    """:raises BadInput: there is no report at this path."""
    try:
        report: Report = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as reason:
        raise BadInput(
            "report",
            value=path,
            rule=f"can't be read: {reason}",
            remedy=f"if workers are several machines, point {REPORTS_VARIABLE} at a folder that they share",
        ) from reason
    return report


def summary(report: Report, path: Path) -> dict[str, Any]:
    """What XCom and the asset keep: the numbers, and as much of the parked partitions as fits."""
    parked = [cut(parked_line(entry)) for entry in report["parked"]]
    return {
        "flow": report["flow"],
        "run": report["run"],
        "generation": report["generation"],
        "outcome": report["outcome"],
        **{name: report[name] for name in _NUMBERS},
        "parked_count": len(parked),
        "parked": parked[:KEPT_PARKED],
        "report": str(path),
    }


def cut(text: str) -> str:
    return text if len(text) <= KEPT_CHARACTERS else f"{text[: KEPT_CHARACTERS - 1]}…"


def parked_line(entry: Any) -> str:
    """A parked partition as one line, whatever facts the driver gave it."""
    if isinstance(entry, Mapping):
        facts = [str(value) for key, value in entry.items() if value not in (None, "") and key != "partition"]
        name = facts.pop(0) if facts else "?"
        where = f"{name}-{entry['partition']}" if "partition" in entry else name
        return "; ".join([where, *facts])
    return str(entry)


def report_lines(report: Report) -> Iterator[str]:
    """The run in lines, for people: what happened, then each topic, the busiest first, then what is parked."""
    yield (
        f"{report['flow']}: {report['outcome']}; {report['records']:,} records, {spell_bytes(report['bytes'])} "
        f"in {report['seconds']:.1f} s; batches {report['verbatim']:,} verbatim, {report['repacked']:,} repacked"
    )
    yield (
        f"generation {report['generation']}; lag {report['lag']:,}; "
        f"default readers saw {report['repeats']:,} records again"
    )
    yield from _table(_by_topic(report["partitions"]))
    for entry in report["parked"]:
        yield f"PARKED {parked_line(entry)}"


def spell_bytes(size: int) -> str:
    amount = float(size)
    for unit in ("B", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GiB"


def _by_topic(partitions: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str, str, str]]:
    totals: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for partition in partitions:
        row = totals[partition["topic"]]
        row[0] += 1
        for place, name in enumerate(("records", "bytes", "lag"), start=1):
            row[place] += partition[name]
    busiest = sorted(totals.items(), key=lambda item: (-item[1][1], item[0]))
    lines = [
        (topic, f"{count:,}", f"{records:,}", spell_bytes(size), f"{lag:,}")
        for topic, (count, records, size, lag) in busiest[:SHOWN_TOPICS]
    ]
    if len(busiest) > SHOWN_TOPICS:
        lines.append((f"and {len(busiest) - SHOWN_TOPICS} topics more, in the report", "", "", "", ""))
    return lines


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    if not rows:
        return
    table = [("topic", "partitions", "records", "bytes", "lag"), *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    for name, *numbers in table:
        cells = (f"{number:>{width}}" for number, width in zip(numbers, widths[1:], strict=True))
        yield "  ".join([f"{name:<{widths[0]}}", *cells]).rstrip()
