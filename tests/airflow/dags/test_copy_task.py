"""The copy task's own decisions; that it runs, is killed and keeps secrets is shown in tests/airflow/e2e."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.airflow

PEM = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    ("params", "arguments"),
    [
        ({"run_for": "10m", "until_caught_up": False, "take_over": False}, ["--run-for", "600"]),
        ({"run_for": "10m", "until_caught_up": True, "take_over": False}, ["--until-caught-up"]),
        ({"run_for": None, "until_caught_up": False, "take_over": False}, ["--until-caught-up"]),
        ({"run_for": "90s", "until_caught_up": False, "take_over": True}, ["--run-for", "90", "--take-over"]),
    ],
)
def test_the_form_becomes_the_drivers_arguments(params: Any, arguments: list[str]) -> None:
    from causeway.airflow.tasks.copy import mode_arguments

    assert mode_arguments(params) == arguments


@pytest.mark.parametrize(
    ("exit_code", "is_final"),
    [(1, False), (2, True), (3, False), (4, True), (6, True), (130, False), (-9, False), (None, False)],
)
def test_only_what_waiting_can_help_is_tried_again(exit_code: int | None, is_final: bool) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from causeway.airflow.tasks.copy import failure

    error = failure(exit_code, "flow = sf_to_nyc: held by somebody; wait for it")
    assert isinstance(error, AirflowFailException) is is_final
    assert "held by somebody; wait for it" in str(error)


def test_the_driver_gets_nothing_of_airflows_own(monkeypatch: pytest.MonkeyPatch) -> None:
    from causeway.airflow.tasks.copy import driver_environment

    for name in ("AIRFLOW__CORE__FERNET_KEY", "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "AIRFLOW_CONN_OTHER"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("KEPT", "as it is")
    environment = driver_environment("local[*]")
    assert [name for name, value in environment.items() if value == "secret"] == []
    assert environment["KEPT"] == "as it is"
    assert environment["CAUSEWAY_PARENT_PID"] == str(os.getpid())


def test_only_a_local_driver_is_bound_to_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    from causeway.airflow.tasks.copy import driver_environment

    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    assert driver_environment("local[2]")["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert "SPARK_LOCAL_IP" not in driver_environment("spark://master:7077")


def test_each_line_of_a_key_is_a_secret() -> None:
    from causeway.airflow.connections import secret_values

    found = secret_values(None, {"bootstrap.servers": "host:9092", "ssl.key.pem": PEM})
    assert {"MIIEvQIBADANBgkq", "hkiG9w0BAQEFAASC", PEM} <= set(found)
    assert "host:9092" not in found


def test_secrets_are_known_by_the_names_of_their_keys() -> None:
    from causeway.airflow.connections import secret_values
    from causeway.core.kernel.endpoint import SECRET_KEYS

    extra = {key: f"value of {key}" for key in SECRET_KEYS}
    assert set(secret_values("of the connection", extra)) == {"of the connection", *extra.values()}


def test_what_is_handed_over_shows_no_secret() -> None:
    from causeway.airflow.connections import HandedOver

    handed = HandedOver({"AIRFLOW_CONN_KAFKA_SF": "hunter22-long"}, ("hunter22-long", "hunter22"))
    assert handed.redact("a hunter22-long b hunter22 c") == "a *** b *** c"
    assert "hunter22" not in repr(handed)


def test_the_task_keeps_nothing_that_a_page_could_show() -> None:
    from causeway.airflow.tasks.copy import CopyOperator

    task = CopyOperator(
        task_id="copy", flow="sf_to_nyc", flows_file=Path("flows.yaml"), application="copy_flow.py"
    )
    shown = {name: getattr(task, name) for name in task.template_fields}
    assert {name for name, value in shown.items() if value} == {"application", "conf", "name"}
