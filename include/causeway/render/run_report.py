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

from causeway.core.kernel.errors import BadInput
from causeway.core.kernel.plurals import counted, outcome_in_words
from causeway.render.tables import table

Report = Mapping[str, Any]

REPORTS_VARIABLE = "CAUSEWAY_REPORTS"
SHOWN_TOPICS = 40
SHOWN_RANGES = 10
KEPT_LINES = 20
KEPT_CHARACTERS = 160
_NUMBERS = (
    "records",
    "bytes",
    "verbatim",
    "repeats",
    "settled",
    "quarantined",
    "lag",
    "rounds",
    "transactions",
    "seconds",
)


def report_path(flow: str, run_id: str, attempt: int) -> Path:
    """`<folder>/<flow>/<run>.<attempt>.json`; all workers must see the folder (CAUSEWAY_REPORTS)."""
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
    """What XCom and the asset keep: the numbers, and as much of what was left out as fits."""
    left_out = [cut(line) for line in left_out_lines(report)]
    return {
        "flow": report["flow"],
        "run": report["run"],
        "generation": report["generation"],
        "outcome": report["outcome"],
        **{name: report[name] for name in _NUMBERS},
        "repacked": sum(report["repacked"].values()),
        "parked_count": len(report["parked"]),
        "refused_topics_count": len(report["refused_topics"]),
        "left_out": left_out[:KEPT_LINES],
        "report": str(path),
    }


def cut(text: str) -> str:
    return text if len(text) <= KEPT_CHARACTERS else f"{text[: KEPT_CHARACTERS - 1]}…"


def left_out_lines(report: Report) -> Iterator[str]:
    """What a person has to look at: topics that were left alone, partitions that are parked."""
    for topic in report["refused_topics"]:
        yield f"LEFT ALONE {topic['topic']}: {topic['reason']}; {topic['remedy']}"
    for entry in report["parked"]:
        yield f"PARKED {entry['source']}: {entry['reason']}: {entry['facts']}; {entry['remedy']}"


def noted_lines(report: Report) -> Iterator[str]:
    """What isn't in the mirror for a good reason."""
    for partition in report.get("partitions", ()):
        if partition.get("held_back"):
            yield (
                f"HELD BACK {partition['source']}: {counted(partition['held_back'], 'source offset')} from "
                f"{partition['last_stable']} on, in or after a transaction that is still open there; "
                "they are copied once it ends"
            )
        if partition.get("later"):
            yield f"WAITS {partition['source']}: {partition['later']}"
        for why, ranges in partition.get("quarantined", {}).items():
            yield f"QUARANTINED {partition['source']}: {why}: {_ranges(ranges)}"


def report_lines(report: Report) -> Iterator[str]:
    """The run in lines, for people: what happened, the busiest topics, what was left out and why."""
    size, seconds = spell_bytes(report["bytes"]), report["seconds"]
    outcome = outcome_in_words(report["outcome"], len(report["parked"]))
    records = counted(report["records"], "record")
    yield f"{report['flow']}: {outcome}; {records}, {size} in {seconds:.1f} s"
    yield f"{counted(report['rounds'], 'round')}, {counted(report['transactions'], 'transaction')}"
    yield f"batches: {report['verbatim']:,} verbatim, {_repacked(report['repacked'])}"
    yield (
        f"generation {report['generation']}; lag {report['lag']:,}; "
        f"default readers saw {counted(report['repeats'], 'record')} again{_settled(report['settled'])}"
    )
    if report["partitions"]:
        yield from _by_topic(report["partitions"]).splitlines()
    for partition in report["partitions"]:
        if partition["recopied_from"] is not None:
            yield copied_again(partition["source"], partition["target"], partition["recopied_from"])
    yield from report.get("notes", ())
    yield from noted_lines(report)
    yield from left_out_lines(report)


def copied_again(source: str, target: str, source_offset: int) -> str:
    """An unclean election on the target is no reason to stop, but one to say."""
    return f"COPIED AGAIN {source} from source offset {source_offset} on: {target} had lost its tail"


def _ranges(ranges: Sequence[Sequence[int]]) -> str:
    """Source offsets, the first ones of many."""
    shown = [str(first) if first + 1 == behind else f"{first}-{behind - 1}" for first, behind in ranges]
    count = sum(behind - first for first, behind in ranges)
    more = f" and {len(shown) - SHOWN_RANGES:,} ranges more" if len(shown) > SHOWN_RANGES else ""
    offsets = ", ".join(shown[:SHOWN_RANGES]) + more
    return f"{counted(count, 'record')}, source offsets {offsets}"


def _settled(records: int) -> str:
    return f", {records:,} of dead workers were kept" if records else ""


def _repacked(reasons: Mapping[str, int]) -> str:
    why = ", ".join(f"{count:,} {reason}" for reason, count in sorted(reasons.items()))
    return f"{sum(reasons.values()):,} repacked" + (f" ({why})" if why else "")


def spell_bytes(size: int) -> str:
    amount = float(size)
    for unit in ("B", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GiB"


def _by_topic(partitions: Sequence[Mapping[str, Any]]) -> str:
    totals: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for partition in partitions:
        row = totals[partition["source"].rpartition("-")[0]]
        row[0] += 1
        for place, name in enumerate(("records", "size_bytes", "lag"), start=1):
            row[place] += partition[name]
    busiest = sorted(totals.items(), key=lambda item: (-item[1][1], item[0]))
    shown = table(
        ("TOPIC", "PARTITIONS", "RECORDS", "BYTES", "LAG"),
        [(topic, *numbers) for topic, numbers in busiest[:SHOWN_TOPICS]],
    )
    more = len(busiest) - SHOWN_TOPICS
    return f"{shown}\nand {more} topics more, in the report" if more > 0 else shown
