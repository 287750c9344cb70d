"""The Python tasks of a mirror's DAG: thin, with everything that costs time imported when they run.

`report` succeeds and updates the flow's asset also when partitions are parked, for the others went on;
`parked` then fails, without retries, so that the run is red: nobody reads the log of a green one.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airflow.sdk import Asset
from airflow.sdk.exceptions import AirflowFailException

from causeway.core.errors import CausewayError
from causeway.entrypoints.run_report import parked_line, read_report, report_lines, summary

log = logging.getLogger("causeway")

_WORTH_A_RETRY = 3
"""The exit code of ClusterTrouble: the copy task's driver is judged by the same number."""


def prepare_topics(flow: str, flows_file: str) -> None:
    """Makes what is missing on the target, and says what the copy will find."""


def publish_report(path: str, *, outlet_events: Any) -> dict[str, Any]:
    """Shows the run's report in the log; XCom and the flow's asset get its summary."""
    report = read_report(Path(path))
    for line in report_lines(report):
        log.info(line)
    short = summary(report, Path(path))
    if short["parked_count"]:
        log.warning("%d partitions are PARKED; see the task `parked`", short["parked_count"])
    outlet_events[Asset(f"causeway_{short['flow']}")].extra = {k: v for k, v in short.items() if k != "parked"}
    return short


def fail_if_parked(short: Mapping[str, Any]) -> None:
    """:raises AirflowFailException: partitions were left out; the line of each says why and what to do."""
    if not short["parked_count"]:
        log.info("no partition is parked")
        return
    for entry in read_report(Path(short["report"]))["parked"]:
        log.warning("PARKED %s", parked_line(entry))
    raise AirflowFailException(
        f"{short['parked_count']} partitions of {short['flow']} are parked: {'; '.join(short['parked'][:3])}"
    )
