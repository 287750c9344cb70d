"""dags/mirror.py: what Airflow sees of flows.yaml."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.airflow

PROJECT = Path(__file__).resolve().parents[3]

FLOWS = """\
clusters:
  sf: {connection: kafka_sf}
  nyc: {connection: kafka_nyc}
flows:
  sf_to_nyc:
    source: sf
    target: nyc
    topics: [orders]
    schedule: "@continuous"
    run_for: 10m
    pool: mirrors
    retries: 5
    retry_delay: 45s
  nyc_to_sf:
    source: nyc
    target: sf
    topics: ["audit-.*"]
    schedule: "*/5 * * * *"
"""

Load = Callable[..., Any]

ORDER = ["topics", "copy", "report", "parked", "drift", "sync", "groups"]


def mirrors(bag: Any) -> list[Any]:
    return [dag for name, dag in bag.dags.items() if name.startswith("mirror__")]


@pytest.fixture
def load_dags(load_dags: Load) -> Load:
    """Those of dags/mirror.py."""

    def load(flows: str = FLOWS, **environment: str) -> Any:
        return load_dags("mirror.py", flows, **environment)

    return load


def test_each_flow_is_one_dag(load_dags: Load) -> None:
    bag = load_dags()
    assert bag.import_errors == {}
    assert set(bag.dags) == {"mirror__sf_to_nyc", "mirror__nyc_to_sf", "groups__sf_to_nyc"}


def test_the_flows_file_of_the_project_is_a_dag(load_dags: Load) -> None:
    bag = load_dags((PROJECT / "include" / "flows.yaml").read_text())
    assert bag.import_errors == {}
    assert "mirror__sf_to_nyc" in bag.dags


def test_tasks_follow_one_another(load_dags: Load) -> None:
    for dag in mirrors(load_dags()):
        assert set(dag.task_dict) == set(ORDER)
        downstream = {name: dag.task_dict[name].downstream_task_ids for name in ORDER}
        assert downstream == {
            "topics": {"copy"},
            "copy": {"report", "drift", "groups"},
            "report": {"parked"},
            "parked": set(),
            "drift": {"sync"},
            "sync": set(),
            "groups": set(),
        }


@pytest.mark.parametrize(
    ("keys", "beside"),
    [
        ("sync.topic.configs.enabled: false", set()),
        ("sync.topic.configs.enabled: false\n    sync.topic.acls.enabled: true", {"drift", "sync"}),
        ("emit.heartbeats.enabled: true", {"drift", "sync", "heartbeat"}),
    ],
)
def test_what_isnt_kept_up_has_no_task(load_dags: Load, keys: str, beside: set[str]) -> None:
    dag = load_dags(FLOWS.replace("    pool: mirrors\n", f"    {keys}\n")).dags["mirror__sf_to_nyc"]
    assert set(dag.task_dict) - {"topics", "copy", "report", "parked", "groups"} == beside
    if "heartbeat" in beside:
        heartbeat = dag.task_dict["heartbeat"]
        assert (heartbeat.upstream_task_ids, heartbeat.downstream_task_ids) == (set(), set())


def test_groups_of_a_flow_that_follows_are_synced_each_minute(load_dags: Load) -> None:
    dag = load_dags().dags["groups__sf_to_nyc"]
    assert (dag.schedule, dag.max_active_runs, dag.catchup) == (timedelta(seconds=60), 1, False)
    assert {(task.task_id, task.pool) for task in dag.tasks} == {("groups", "default_pool")}


def test_where_nothing_is_wanted_of_groups_there_is_no_task(load_dags: Load) -> None:
    off = "    emit.checkpoints.enabled: false\n    emit.offset-syncs.enabled: false\n"
    dags = load_dags(FLOWS.replace("    topics: [orders]\n", f"    topics: [orders]\n{off}")).dags
    assert set(dags) == {"mirror__sf_to_nyc", "mirror__nyc_to_sf"}
    assert "groups" not in dags["mirror__sf_to_nyc"].task_dict


def test_settings_are_those_of_the_file(load_dags: Load) -> None:
    dags = load_dags().dags
    mirror = dags["mirror__sf_to_nyc"]
    assert (mirror.max_active_runs, mirror.catchup) == (1, False)
    assert (mirror.schedule, dags["mirror__nyc_to_sf"].schedule) == ("@continuous", "*/5 * * * *")
    assert {task.pool for task in mirror.tasks} == {"mirrors"}
    retries = {name: mirror.task_dict[name].retries for name in ORDER}
    assert retries == {"topics": 5, "copy": 5, "report": 0, "parked": 0, "drift": 5, "sync": 5, "groups": 5}
    assert mirror.task_dict["copy"].retry_delay == timedelta(seconds=45)
    assert mirror.tags == {"mirror", "sf", "nyc"}


def test_the_report_updates_the_asset_of_the_flow(load_dags: Load) -> None:
    dag = load_dags().dags["mirror__sf_to_nyc"]
    outlets = {name: [asset.name for asset in dag.task_dict[name].outlets] for name in ORDER}
    assert outlets.pop("report") == ["causeway_sf_to_nyc"]
    assert not any(outlets.values())


def test_schedules_can_be_switched_off(load_dags: Load) -> None:
    dags = load_dags(CAUSEWAY_SCHEDULES="off").dags
    assert {dag.schedule for dag in dags.values()} == {None}


def test_dags_serialise(load_dags: Load) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    for dag in load_dags().dags.values():
        assert DagSerialization.from_dict(DagSerialization.to_dict(dag)).dag_id == dag.dag_id


def test_a_mistake_in_the_file_is_named_with_line_and_remedy(load_dags: Load) -> None:
    bag = load_dags(FLOWS.replace("run_for: 10m", "run_for: 10minutes"))
    assert bag.dags == {}
    (said,) = bag.import_errors.values()
    last = said.strip().splitlines()[-1]
    assert "flows.yaml:10: flows.sf_to_nyc.run_for" in last
    assert "write 10m" in last


def test_a_running_task_builds_its_own_dag_only(load_dags: Load) -> None:
    bag = load_dags(
        _AIRFLOW_PARSING_CONTEXT_DAG_ID="mirror__nyc_to_sf", _AIRFLOW_PARSING_CONTEXT_TASK_ID="copy"
    )
    assert set(bag.dags) == {"mirror__nyc_to_sf"}


def test_parsing_needs_no_network_and_no_client(tmp_path: Path) -> None:
    """In a process of its own: what other tests have imported must not count."""
    flows = tmp_path / "flows.yaml"
    flows.write_text(FLOWS)
    program = f"""
import os, runpy, sys
os.environ.update(AIRFLOW_HOME={str(tmp_path)!r}, CAUSEWAY_FLOWS={str(flows)!r})
import airflow.sdk, airflow.providers.apache.spark.operators.spark_submit
def refuse(event, arguments):
    if event.startswith(("socket.connect", "socket.getaddrinfo", "socket.bind", "subprocess.Popen")):
        raise RuntimeError(f"parsing a DAG did {{event}} {{arguments}}")
sys.addaudithook(refuse)
before = set(sys.modules)
runpy.run_path({str(PROJECT / "dags" / "mirror.py")!r})
clients = {{"confluent_kafka", "kafka", "pyspark", "cramjam", "google_crc32c", "cryptography"}}
print(sorted(clients & {{name.split(".")[0] for name in set(sys.modules) - before}}))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("flow", "defaults"),
    [
        ("sf_to_nyc", {"until_caught_up": False, "run_for": "10m", "take_over": False}),
        ("nyc_to_sf", {"until_caught_up": True, "run_for": None, "take_over": False}),
    ],
)
def test_the_form_begins_with_what_the_file_says(load_dags: Load, flow: str, defaults: Any) -> None:
    assert load_dags().dags[f"mirror__{flow}"].params.dump() == defaults


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("run_for", "10 minutes"),
        ("run_for", "0s"),
        ("run_for", "10m; rm"),
        ("run_for", 600),
        ("run_for", "ten"),
        ("until_caught_up", "yes"),
        ("take_over", None),
        ("take_over", 1),
    ],
)
def test_the_form_refuses_other_types_and_words(load_dags: Load, name: str, value: object) -> None:
    from airflow.sdk.exceptions import ParamValidationError

    param = load_dags().dags["mirror__sf_to_nyc"].params.get_param(name)
    with pytest.raises(ParamValidationError):
        param.resolve(value)


@pytest.mark.parametrize(("name", "value"), [("run_for", "90s"), ("run_for", None), ("take_over", True)])
def test_the_form_takes_what_it_asks_for(load_dags: Load, name: str, value: object) -> None:
    assert load_dags().dags["mirror__sf_to_nyc"].params.get_param(name).resolve(value) == value
