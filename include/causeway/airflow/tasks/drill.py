"""The drill's task: the same as `causeway drill`, and red if a clone ended or read elsewhere than planned."""

from __future__ import annotations

import logging
from typing import Any

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowFailException

from causeway.airflow.connections import airflow_endpoint
from causeway.airflow.failures import failing_as_airflow_does
from causeway.config.flows_file.load import load_flows

log = logging.getLogger("causeway")


def rehearse(flow: str, flows_file: str) -> dict[str, Any]:
    from causeway.usecases.failover.drill import drill

    deployment = load_flows(flows_file)
    wanted = deployment.flow(flow)
    with failing_as_airflow_does():
        source, target = (airflow_endpoint(deployment, alias) for alias in (wanted.source, wanted.target))
        by = f"airflow {get_current_context()['dag_run'].run_id}"
        done = drill(wanted, source, target, deployment.groups[flow], by=by, say=log.info)
    log.info("%s: %s", flow, done)
    if done.wrong:
        raise AirflowFailException(done.wrong)
    return {"run": done.run, **done.as_dict()}
