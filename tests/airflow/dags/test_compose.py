"""docker-compose.yaml can't be run here; what can be checked without a container engine is checked."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = pytest.mark.airflow

PROJECT = Path(__file__).resolve().parents[3]
SECRETS = {"POSTGRES_PASSWORD", "FERNET_KEY", "JWT_SECRET", "SESSION_KEY"}


@pytest.fixture(scope="module")
def compose() -> Any:
    return yaml.safe_load((PROJECT / "docker-compose.yaml").read_text())


def settings(compose: Any) -> dict[str, str]:
    found: dict[str, str] = compose["services"]["scheduler"]["environment"]
    return found


def test_each_airflow_setting_is_one_that_airflow_knows(compose: Any) -> None:
    from airflow.configuration import conf

    known = {
        f"AIRFLOW__{section}__{key}".upper()
        for section, described in conf.configuration_description.items()
        for key in described["options"]
    }
    ours = {name for name in settings(compose) if name.startswith("AIRFLOW__")}
    assert len(ours) > 10
    assert ours - known == set()


def test_no_secret_has_a_default() -> None:
    text = (PROJECT / "docker-compose.yaml").read_text()
    used = dict(re.findall(r"(?<!\$)\$\{([A-Z_]+)(:\?|[^}]?)", text))
    assert used.keys() >= SECRETS
    assert set(used.values()) == {":?"}


def test_the_example_names_each_variable_that_is_asked_for() -> None:
    asked = set(re.findall(r"\$\{([A-Z_]+):\?", (PROJECT / "docker-compose.yaml").read_text()))
    example = (PROJECT / ".env.example").read_text()
    assert set(re.findall(r"^([A-Z_]+)=", example, re.MULTILINE)) == asked


def test_it_runs_the_settings_that_the_demo_runs(compose: Any, tmp_path: Path) -> None:
    """What the demo proves must not be switched off where it counts."""
    from causeway.demo.airflow_home import airflow_environment, prepare_home

    home = prepare_home(tmp_path, PROJECT)
    shown = airflow_environment(home, {})
    for name in ("AIRFLOW__CORE__SENSITIVE_VAR_CONN_NAMES", "AIRFLOW__CORE__EXECUTOR"):
        assert settings(compose)[name] == shown[name]


def test_all_parts_of_airflow_are_the_same_image_with_the_same_settings(compose: Any) -> None:
    parts = [compose["services"][name] for name in ("init", "api-server", "scheduler", "dag-processor")]
    assert {part["image"] for part in parts} == {"causeway"}
    assert all(part["environment"] == parts[0]["environment"] for part in parts)


def test_what_the_image_copies_is_there(compose: Any) -> None:
    recipe = compose["services"]["init"]["build"]["dockerfile_inline"]
    copied = [name for line in re.findall(r"^COPY (.*) \S+$", recipe, re.MULTILINE) for name in line.split()]
    assert copied
    assert [name for name in copied if not (PROJECT / name).exists()] == []
