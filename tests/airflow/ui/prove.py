"""The failover from Airflow's page, in a real browser: the form, the approval with its sheet, the green run.

`make browser` makes the environment of the walk; the machine brings the Chromium (CHROMIUM=path, or one of
the usual names). Pictures go to docs/ui.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from causeway.lab.cluster import LabCluster
from causeway.lab.record import ClusterSpec
from tests.integration.failover.in_airflow import FailoverDag, airflow_between
from tests.integration.failover.stage import FailoverStage

_ROOT = Path(__file__).parents[3]
_PICTURES = _ROOT / "docs/ui"
_PYTHON = _ROOT / ".causeway/browser/bin/python"
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PARTITIONS, RECORDS, LOST = 3, 3_000, 100
GROUPS = ("billing", "audit", "search", "mail", "fraud")
FLOWS = """\
clusters:
  sf: {connection: kafka_sf}
  nyc: {connection: kafka_nyc}
flows:
  sf_to_nyc: {source: sf, target: nyc, topics: [orders], groups: ["orders[.].*"], lanes: 3,
    sync.group.offsets.enabled: true}
"""
Say = Callable[[str], None]


class WalkFailed(Exception):
    """The page showed something else than it should, or there is no browser to look at it."""


def prove(folder: Path, say: Say) -> str:
    chromium = find_chromium()
    clusters = {name: LabCluster(ClusterSpec(name=name), folder / name, say=say) for name in ("sf", "nyc")}
    begin_ms = (int(time.time()) // 60 * 60 - 3_600) * 1000
    try:
        for cluster in clusters.values():
            cluster.start()
        with airflow_between(clusters, FLOWS, folder, say) as dag:
            stage = _mirrored(dag, clusters, begin_ms)
            clusters["sf"].kill()
            moment_ms = begin_ms + 2_400_000
            said = _walk(dag, chromium, moment_ms, say)
            _compare(stage, moment_ms - 30_000)
            stage.mirror.close()
    finally:
        for cluster in clusters.values():
            cluster.stop()
    return _section(said)


def find_chromium() -> str:
    """:raises WalkFailed: there is none, or no environment to drive it."""
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        raise WalkFailed(f"no Chromium: install one ({', '.join(_NAMES)}), or set CHROMIUM to its path")
    if not _PYTHON.exists():
        raise WalkFailed("nothing drives the browser yet: run `make browser`")
    return found


def _mirrored(dag: FailoverDag, clusters: dict[str, LabCluster], begin_ms: int) -> FailoverStage:
    """One record a second for fifty minutes; groups stand here and there; the last ones never arrive."""
    stage = FailoverStage(clusters["sf"], clusters["nyc"], "orders", PARTITIONS, named=dag.flow)
    for first in (0, RECORDS // 2):
        for p in range(PARTITIONS):
            stage.write([begin_ms + n * 1_000 for n in range(first, first + RECORDS // 2)], p)
        stage.run()
    for number, name in enumerate(GROUPS):
        stage.commit(name, dict.fromkeys(range(PARTITIONS), 1_000 + 400 * number))
    stage.sync()
    stage.write([begin_ms + n * 1_000 for n in range(RECORDS, RECORDS + LOST)])
    return stage


def _walk(dag: FailoverDag, chromium: str, moment_ms: int, say: Say) -> str:
    at = time.gmtime(moment_ms // 1000)
    _PICTURES.mkdir(exist_ok=True)
    wish = {
        "url": dag.home.url,
        "user": dag.rest.user,
        "password": dag.home.password,
        "dag": dag.dag_id,
        "chromium": chromium,
        "day": time.strftime("%Y/%m/%d", at),
        "minute": time.strftime("%H:%M", at),
        "pictures": str(_PICTURES),
        "sheets": str(dag.home.reports / f"failover-{dag.flow.name}"),
    }
    walked = subprocess.run(
        [str(_PYTHON), str(Path(__file__).with_name("walk.py"))],
        input=json.dumps(wish),
        capture_output=True,
        text=True,
        check=False,
    )
    say(walked.stdout)
    if walked.returncode:
        raise WalkFailed(walked.stderr[-3_000:])
    return walked.stdout


def _compare(stage: FailoverStage, moment_ms: int) -> None:
    for p in range(PARTITIONS):
        wanted = next(at for _, at, time_ms, _ in stage.mirrored_records(p) if time_ms >= moment_ms)
        for name in GROUPS:
            if stage.there(name)[p] != wanted:
                raise WalkFailed(f"{name} on {p}: at {stage.there(name)[p]}, the moment is at {wanted}")


def _section(said: str) -> str:
    steps = sum(line.startswith("picture") for line in said.splitlines())
    return f"""\
## Failover from Airflow's page

`make browser`, then `python -m tests.proofs.prove --only ui` plays it.
A source of {PARTITIONS * RECORDS + LOST:,} records is killed with -9. In a real Airflow a headless Chromium
fills in the form. The form is refused once, with the reason; it is corrected and accepted. The approval shows
the sheet, on a desk and on a telephone of 375 pixels. After the approval the run turns green, and each of
{len(GROUPS)} groups is at the first record of its moment on each partition. {steps} pictures were taken on
the way.

| the form | refused, with the reason | the approval |
|---|---|---|
| ![form](ui/form.png) | ![refused](ui/refused.png) | ![approval](ui/approval.png) |

| approval, 375 px | green | the sheet's page, 375 px |
|---|---|---|
| ![on a telephone](ui/approval-phone.png) | ![green](ui/green.png) | ![the sheet](ui/sheet-phone.png) |
"""
