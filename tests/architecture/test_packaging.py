"""What the package asks for, what the locks pin, what the image installs: three lists that have to agree."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from causeway import __version__
from causeway.cli.extras import EXTRA_OF
from tests.architecture.install import ROOT, brought, project, requirements

OWNERS = {
    "airflow": "apache-airflow",
    "kafka": "kafka-python",
    "py4j": "pyspark",
    "pydantic_core": "pydantic",
    "yaml": "pyyaml",
}
"""Of modules that aren't called like what brings them."""
USED_WITHOUT_AN_IMPORT = {
    "apache-airflow-providers-apache-kafka",
    "pandas",
    "pyspark-client",
    "rfc3339-validator",
}
NOT_OF_THE_LOCK = {"playwright"}
"""Drives the browser, in an environment of its own: tests/airflow/ui/requirements.txt."""
RUNNING = (None, "spark", "airflow")
BESIDE = ("lab", "dev")
BUILDS_IT = "setuptools"


def own(*extras: str | None) -> dict[str, Requirement]:
    """What these ask for by name; `causeway[...]` stands for another extra."""
    asked = [each for extra in extras for each in requirements(extra)]
    return {name: each for each in asked if (name := canonicalize_name(each.name)) != "causeway"}


def asked_in(name: str) -> dict[str, Requirement]:
    lines = [line.partition("#")[0].strip() for line in (ROOT / name).read_text().splitlines()]
    found = [Requirement(line) for line in lines if line and not line.startswith("-r ")]
    return {canonicalize_name(each.name): each for each in found}


def pinned_in(name: str) -> dict[str, str]:
    """Each pin with its hashes, as it is written."""
    text = (ROOT / name).read_text()
    return {canonicalize_name(pin.partition("==")[0]): pin for pin in re.split(r"\n(?=\S)", text.strip())}


def version_of(pin: str) -> str:
    return pin.split("==")[1].split(maxsplit=1)[0]


def imported_by(*folders: str) -> set[str]:
    found: set[str] = set()
    for path in (path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {each.name.partition(".")[0] for each in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add(provider_of(node) or str(node.module).partition(".")[0])
    known = sys.stdlib_module_names | {"causeway", "tests", "__future__"}
    return {canonicalize_name(OWNERS.get(name, name)) for name in found - known}


def provider_of(node: ast.ImportFrom) -> str:
    """`airflow.providers.standard.operators.x` is of apache-airflow-providers-standard."""
    found = re.match(r"airflow[.]providers[.](apache[.]\w+|\w+)", str(node.module))
    return f"apache-airflow-providers-{found[1].replace('.', '-')}" if found else ""


def test_the_version_is_written_in_one_place() -> None:
    """The wheel has the version of `causeway.__version__`: test_wheel.py builds it."""
    assert "version" not in project()
    assert project()["dynamic"] == ["version"]
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == __version__
    assert f"dist/causeway-{__version__}-py3-none-any.whl[" in (ROOT / "docs" / "install.md").read_text()


def test_the_package_asks_for_what_it_imports() -> None:
    asked = own(None, "spark", "airflow", "lab").keys()
    imported = imported_by("include", "dags", "plugins", "spark_jobs")
    assert imported - asked == set()
    assert asked - imported == USED_WITHOUT_AN_IMPORT


def test_the_tests_import_nothing_that_only_happens_to_be_there() -> None:
    assert imported_by("tests") - own(None, "spark", "airflow", *BESIDE).keys() == NOT_OF_THE_LOCK


@pytest.mark.parametrize(
    "extras", [(), ("spark",), ("lab",), pytest.param(("airflow",), marks=pytest.mark.airflow)], ids=str
)
def test_an_install_can_import_what_it_should(extras: tuple[str, ...], tmp_path: Path) -> None:
    """Without an extra all but the rooms that are named in install.py; with it those rooms, too."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.architecture.install", *extras],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=os.environ | {"AIRFLOW_HOME": str(tmp_path)},
    )
    assert json.loads(done.stdout) == {}


def test_the_extra_that_a_command_names_brings_the_library() -> None:
    without = brought(requirements())
    for library, extra in EXTRA_OF.items():
        owner = OWNERS.get(library, library)
        assert owner in brought(requirements(extra)) - without, library


@pytest.mark.parametrize(
    ("file", "extras"),
    [("requirements-runtime.in", RUNNING), ("requirements.in", BESIDE)],
    ids=["run", "rest"],
)
def test_each_reason_is_written_for_what_the_package_asks_for(
    file: str, extras: tuple[str | None, ...]
) -> None:
    builds = {BUILDS_IT} if file == "requirements-runtime.in" else set()
    assert asked_in(file).keys() == own(*extras).keys() - {BUILDS_IT} | builds


def test_the_lock_is_what_the_package_allows_and_the_reasons_pin() -> None:
    locked = {name: version_of(pin) for name, pin in pinned_in("requirements.txt").items()}
    allowed = {**own(*RUNNING, *BESIDE)}
    reasons = asked_in("requirements.in") | asked_in("requirements-runtime.in")
    wrong = {
        str(each): locked[name]
        for name, each in [*allowed.items(), *reasons.items()]
        if not each.specifier.contains(locked[name])
    }
    assert wrong == {}


def test_the_runtime_lock_is_a_part_of_the_lock() -> None:
    everything, running = pinned_in("requirements.txt"), pinned_in("requirements-runtime.txt")
    assert running.items() <= everything.items(), "run make lock"
    assert all("--hash=sha256:" in pin for pin in everything.values())


def test_the_runtime_lock_is_whole_and_has_nothing_else() -> None:
    """It is installed without a resolver: what it lacks would be missing, what nobody needs would stay."""
    needed = brought([*asked_in("requirements-runtime.in").values()])
    assert pinned_in("requirements-runtime.txt").keys() == needed


def test_the_image_installs_the_runtime_lock() -> None:
    recipe = (ROOT / "docker-compose.yaml").read_text()
    assert "COPY requirements-runtime.txt pyproject.toml ./\n" in recipe
    assert "pip install --no-cache-dir --no-deps --require-hashes -r requirements-runtime.txt " in recipe
    assert "--no-deps --no-build-isolation -e . && pip check\n" in recipe
