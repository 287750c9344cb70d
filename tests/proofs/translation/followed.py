"""What the offset map of a flow that follows costs, in bytes a partition and day: as written, and maintained.

python -m tests.proofs.translation.followed        five minutes; writes its section of docs/benchmarks.md
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import NewTopic

from causeway.core.model.flow import CopyLimits
from causeway.lab.clients import admin_client, wait_for_leaders
from causeway.lab.cluster import LabCluster
from causeway.lab.live import LiveProducer
from causeway.lab.record import ClusterSpec
from causeway.usecases.offsets.maintain_map import MaintenanceReport, maintain_map
from tests.bench.page import PAGE, SECTIONS
from tests.support.mirroring import Mirror, make_flow
from tests.support.sections import write_section

FOLLOWED_SECONDS, FOLLOWED_PER_SECOND = 60, 200
_RATES = (2, 20, 200, 2_000)
_DAY_SECONDS = 86_400
_HALF_SECONDS_A_DAY = 2 * _DAY_SECONDS


@dataclass(frozen=True, slots=True)
class Followed:
    """One partition, followed for a while."""

    records_per_second: int
    seconds: float
    runs: int
    """One of each transaction that had a record."""
    run_bytes: float
    """Key and value, as a lane writes them."""
    merged_run_bytes: float
    """What one more of them adds to a record of merged runs."""
    log_bytes: int
    """Of the map's segments: with batches' heads and transactions' markers, before any compaction."""

    @property
    def runs_a_day(self) -> float:
        return self.runs / self.seconds * _DAY_SECONDS

    @property
    def mb_a_day(self) -> float:
        return self.runs_a_day * self.run_bytes / 1e6

    @property
    def merged_mb_a_day(self) -> float:
        return self.runs_a_day * self.merged_run_bytes / 1e6

    @property
    def log_mb_a_day(self) -> float:
        return self.log_bytes / self.seconds * _DAY_SECONDS / 1e6


def follow(source: LabCluster, target: LabCluster, *, records_per_second: int, seconds: float) -> Followed:
    """A flow of its own, which nobody has run before."""
    name = f"followed{records_per_second}"
    admin = admin_client(source.endpoint())
    admin.create_topics([NewTopic(name, 1)])[name].result(60)
    wait_for_leaders(admin, {name: 1})
    live = LiveProducer(source.endpoint(), topic=name, records_per_second=records_per_second, partitions=1)
    flow = make_flow(name, name, source=name, lanes=1, limits=CopyLimits())
    mirror = Mirror(flow, source, target)
    live.start()
    began = time.monotonic()
    running = threading.Thread(target=mirror.run, kwargs={"run_for_seconds": seconds})
    running.start()
    running.join()
    lasted = time.monotonic() - began
    live.stop()
    mirror.close()
    log_bytes = sum(each.stat().st_size for each in target.home.glob(f"**/{flow.map_topic}-*/*.log"))
    kept = maintain_map(flow, target.endpoint(), lambda _: None)
    return Followed(
        records_per_second=records_per_second,
        seconds=lasted,
        runs=kept.entries_before,
        run_bytes=kept.bytes_before / kept.entries_before,
        merged_run_bytes=_merged_run_bytes(kept),
        log_bytes=log_bytes,
    )


def _merged_run_bytes(kept: MaintenanceReport) -> float:
    """The newest runs stay as they were, and a merged record has a head."""
    newest = (kept.entries_after - 1) * kept.bytes_before / kept.entries_before
    return (kept.bytes_after - newest) / (kept.entries_before - kept.entries_after + 1)


def section(found: Sequence[Followed]) -> str:
    day, halves = time.strftime("%Y-%m-%d", time.gmtime()), _HALF_SECONDS_A_DAY
    (usual,) = [each for each in found if each.records_per_second == FOLLOWED_PER_SECOND]
    rows = "\n".join(
        f"| {each.records_per_second:,} | {each.runs / each.seconds:.1f} | {each.run_bytes:.0f} "
        f"| {each.mb_a_day:.1f} | {each.log_mb_a_day:.1f} | {each.merged_run_bytes:.1f} "
        f"| {each.merged_mb_a_day:.2f} |"
        for each in found
    )
    return f"""\
## The offset map of a flow that follows

Bytes for a partition and day, measured in {FOLLOWED_SECONDS} s at each rate, with one partition and a flow's
default limits. With these a transaction is committed after 0.5 s at the latest, and as soon as nothing is
left to copy. `python -m tests.proofs.translation.followed` wrote this section on {day}, with a load average
of {os.getloadavg()[1]:.0f} afterwards.

- *Map*: keys and values of the live entries.
- *Log*: the map's segments with all heads and markers, before compaction.
- *Maintained*: what stays of a day after `causeway maintain`, a daily DAG, has merged it.

Lanes run in one process here, round after round while records come. Through Spark a round takes 0.1 s or
more, so there are fewer rounds.

| records/s | transactions/s | bytes a run | map, MB | log, MB | bytes a run, maintained | maintained, MB |
|---|---|---|---|---|---|---|
{rows}

With one transaction in 0.5 s, {_HALF_SECONDS_A_DAY:,} a day, that is {halves * usual.run_bytes / 1e6:.1f} MB
a day as written, and {halves * usual.merged_run_bytes / 1e6:.2f} MB maintained.

The size is bounded on both sides. A partition has one entry for each transaction that wrote to it. There are
no more of these than the rounds of a run that follows, however many records come. An entry is removed by the
first maintenance after the target's retention has removed its records. So the map keeps at most *maintained*
times the days of retention, and one day as it was written.
"""


def main() -> int:
    found: list[Followed] = []
    with tempfile.TemporaryDirectory(prefix="causeway-followed-") as folder:
        source, target = (LabCluster(ClusterSpec(name=name), Path(folder) / name) for name in ("sf", "nyc"))
        try:
            source.start()
            target.start()
            for rate in _RATES:
                found.append(follow(source, target, records_per_second=rate, seconds=FOLLOWED_SECONDS))
                print(found[-1], flush=True)
        finally:
            source.stop()
            target.stop()
    write_section(PAGE, "map", section(found), SECTIONS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
