"""The Python task of a flow's maintenance DAG; no Spark is started for it."""

from __future__ import annotations

import logging
from dataclasses import asdict
from typing import Any

from causeway.airflow.connections import airflow_endpoint
from causeway.airflow.failures import failing_as_airflow_does
from causeway.config.flows_file.load import load_flows

log = logging.getLogger("causeway")


def maintain_map(flow: str, flows_file: str) -> dict[str, Any]:
    """What became of the map, for XCom.

    :raises AirflowException: the target can't be used, the flow is fenced, a run began in the middle.
    """
    from causeway.usecases.offsets import maintain_map as offsets_maintain_map

    deployment = load_flows(flows_file)
    wanted = deployment.flow(flow)
    with failing_as_airflow_does():
        target = airflow_endpoint(deployment, wanted.target)
        report = offsets_maintain_map.maintain_map(wanted, target, log.info)
    log.info(
        "%s entries of %s bytes became %s of %s",
        report.entries_before,
        report.bytes_before,
        report.entries_after,
        report.bytes_after,
    )
    for partition in report.put_off:
        log.info("put off: %s: a lane wrote there meanwhile", partition)
    return asdict(report)
