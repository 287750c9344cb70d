"""Pause a fenced flow's own DAGs: a courtesy, for their runs would end at the fence one by one, in red.

Tasks may not touch Airflow's database, so its REST interface is asked, as the connection `airflow_api` says
(type http; host, port, login, password). Nothing depends on it: without that connection, or an answer, the
log says so and the failover goes on.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

from causeway.airflow.rest import AirflowRefused, AirflowRest
from causeway.core.kernel.errors import CausewayError

API_CONNECTION = "airflow_api"
_DAGS = ("mirror__", "groups__", "maintain__")
log = logging.getLogger("causeway")


def pause_dags(flow: str) -> list[str]:
    """:returns: those that ran until now."""
    rest = _rest(flow)
    if rest is None:
        return []
    of_flow = [prefix + flow for prefix in _DAGS]
    paused = [name for name in of_flow if _is_running(rest, name) and _set(rest, name, is_paused=True)]
    log.info("%s: paused %s", flow, ", ".join(paused) or "nothing: no DAG of the flow ran")
    return paused


def unpause_dags(flow: str, dag_ids: Sequence[str]) -> None:
    """Those that `pause_dags` paused, where nothing came of the failover."""
    rest = _rest(flow) if dag_ids else None
    for dag_id in dag_ids if rest is not None else ():
        assert rest is not None
        if _set(rest, dag_id, is_paused=False):
            log.info("%s: %s runs again", flow, dag_id)


def _rest(flow: str) -> AirflowRest | None:
    try:
        found = BaseHook.get_connection(API_CONNECTION)
    except AirflowNotFoundException:
        log.info(
            "%s: its DAGs aren't paused: there is no connection %s; their runs end at the fence",
            flow,
            API_CONNECTION,
        )
        return None
    host = found.host or "localhost"
    url = host if "://" in host else f"{found.schema or 'http'}://{host}"
    return AirflowRest(f"{url}:{found.port}" if found.port else url, found.login or "", found.password or "")


def _is_running(rest: AirflowRest, dag_id: str) -> bool:
    try:
        return not rest.is_paused(dag_id)
    except AirflowRefused:
        return False  # a flow doesn't have all three
    except CausewayError as trouble:
        log.warning("%s isn't paused: %s", dag_id, trouble)
        return False


def _set(rest: AirflowRest, dag_id: str, *, is_paused: bool) -> bool:
    try:
        rest.set_paused(dag_id, is_paused=is_paused)
    except CausewayError as trouble:
        log.warning("%s isn't %s: %s", dag_id, "paused" if is_paused else "unpaused", trouble)
        return False
    return True
