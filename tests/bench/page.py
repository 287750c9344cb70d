"""docs/benchmarks.md, and the raw numbers beside it."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import confluent_kafka
import pyspark

from causeway import __version__
from causeway.lab.places import java_executable
from causeway.lab.record import NEWEST_KAFKA
from tests.bench.slow_line import LineOutcome, line_table
from tests.bench.table import Outcome, markdown
from tests.support.sections import write_section

SECTIONS = ("bench", "groups", "failover", "map")
"""Of the page; `tests/integration/groups/compare_mm2.py` writes the second,
`tests/integration/failover/trials/pace.py` the third, `tests/proofs/translation/followed.py` the fourth."""
_METHOD = Path(__file__).with_name("method.md")
PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"
_LINE = """\
One partition. A proxy between all contenders and the source delays each byte by 50 ms, in both directions.
The speed without delay is measured through the same proxy.

"""


def write_page(outcomes: Sequence[Outcome], line: LineOutcome | None, page: Path = PAGE) -> None:
    page.parent.mkdir(parents=True, exist_ok=True)
    write_section(page, "bench", _page(outcomes, line), SECTIONS)
    page.with_suffix(".json").write_text(raw(outcomes, line), encoding="utf-8")


def raw(outcomes: Sequence[Outcome], line: LineOutcome | None) -> str:
    told = {
        "machine": machine(),
        "outcomes": [
            {
                "workload": asdict(outcome.workload),
                "log_bytes": outcome.log_bytes,
                "limit_seconds": outcome.limit_seconds,
                "turns": [turn.as_dict() for turn in outcome.turns],
                "idleness": [asdict(each) for each in outcome.idleness],
                "stood_still": [str(each) for each in outcome.stood_still],
            }
            for outcome in outcomes
        ],
        "slow_line": line.as_dict() if line else None,
    }
    return json.dumps(_rounded(told), indent=1) + "\n"


def machine() -> dict[str, str | int]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    told = subprocess.run([java_executable(), "-version"], capture_output=True, text=True, check=True).stderr
    return {
        "cores": os.cpu_count() or 0,
        "memory_gigabytes": round(memory / (1 << 30)),
        "processor": _processor(),
        "system": f"{platform.system()} {platform.release()}",
        "java": told.splitlines()[0],
        "python": platform.python_version(),
        "kafka": NEWEST_KAFKA,
        "spark": pyspark.__version__,
        "librdkafka": confluent_kafka.libversion()[0],
        "causeway": __version__,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _rounded(value: object) -> object:
    match value:
        case float():
            return round(value, 3)
        case dict():
            return {key: _rounded(each) for key, each in value.items()}
        case list() | tuple():
            return [_rounded(each) for each in value]
        case _:
            return value


def _page(outcomes: Sequence[Outcome], line: LineOutcome | None) -> str:
    sections = "\n".join(_section(outcome) for outcome in outcomes)
    return (
        "\n".join(
            ("# Causeway beside MirrorMaker 2\n", _place(), _METHOD.read_text(encoding="utf-8"), sections)
        )
        + (f"\n## Over a slow line\n\n{_LINE}{line_table(line)}" if line else "")
        + f"\n## Nothing to do\n\n{_idle_table(outcomes)}"
    )


def _place() -> str:
    here = machine()
    return f"""\
`make bench` wrote this section on {here["date"]}; the raw numbers are in `benchmarks.json`. \
Versions: Causeway \
{here["causeway"]}, Kafka and MirrorMaker {here["kafka"]}, Spark {here["spark"]}, \
Python {here["python"]}, librdkafka {here["librdkafka"]}, {here["java"]}.

One machine holds everything: {here["cores"]} cores ({here["processor"]}), \
{here["memory_gigabytes"]} GB, {here["system"]}. The two brokers take their share: contenders compete with
them for the same cores, and the numbers are noisy. Each cell is the mean of the turns, and `±` is the
distance between the fastest and the slowest turn. Ratios say more than rates.
"""


def _section(outcome: Outcome) -> str:
    work = outcome.workload
    return f"""\
## {work.title}

{outcome.log_bytes / 1e6:,.0f} MB of log on the source, {work.value_bytes_in_all / 1e6:,.0f} MB of values. \
The limit: {", ".join(f"{seconds:.1f}" for seconds in outcome.limit_seconds)} s.

{markdown(outcome)}"""


def _idle_table(outcomes: Sequence[Outcome]) -> str:
    found = [each for outcome in outcomes for each in outcome.idleness]
    lines = ["| partitions | run, s | run, CPU-s | round, ms | round, CPU-ms |\n|---|---|---|---|---|\n"]
    lines += [
        f"| {each.partitions:,} | {each.run_wall_seconds:.1f} | {each.run_cpu_seconds:.1f} "
        f"| {each.round_wall_seconds * 1000:.0f} | {each.round_cpu_seconds * 1000:.0f} |\n"
        for each in found
    ]
    waiting = [
        turn.idle_cpu_per_second
        for outcome in outcomes
        for turn in outcome.turns
        if turn.idle_cpu_per_second is not None
    ]
    told = f"{min(waiting) * 1000:.0f} to {max(waiting) * 1000:.0f}" if waiting else "no"
    return (
        "A run of Causeway that finds everything copied, from the start of spark-submit to its end. Also a\n"
        "round of a run that follows a quiet source, without the pause of 0.2 s after it.\n\n"
        + "".join(lines)
        + f"\nMirrorMaker 2 in the seconds after its last record: {told} CPU-ms a second.\n"
    )
