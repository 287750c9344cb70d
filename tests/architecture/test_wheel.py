"""The wheel: what is in it, and that it works in a folder that is no checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from causeway import __version__
from tests.architecture.install import PACKAGE, ROOT, project
from tests.support.flows_yaml import ONE_FLOW

BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
INFO = f"causeway-{__version__}.dist-info"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy: setuptools leaves its work beside what it builds."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(
        ROOT / "include", source / "include", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__")
    )
    done = subprocess.run(
        [sys.executable, "-c", BUILD, str(out)], cwd=source, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (built,) = out.iterdir()
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(place)
    return place


def ran(installed: Path, folder: Path, *command: str) -> str:
    """The output of Python with this package, and with the libraries that are installed here."""
    ours = {
        name: value for name, value in os.environ.items() if not name.startswith(("CAUSEWAY_", "AIRFLOW_"))
    }
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=ours | {"PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_wheel_has_the_package_and_nothing_else(wheel: Path) -> None:
    kept = {"py.typed", *(f"lab/{path.name}" for path in (PACKAGE / "lab").glob("*.lock"))}
    modules = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")}
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    package = {name.removeprefix("causeway/") for name in names if name.startswith("causeway/")}
    assert package == kept | modules
    assert {name.split("/")[0] for name in names} == {"causeway", INFO}


def test_the_wheel_says_what_it_is_and_needs(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        said = Parser().parsestr(archive.read(f"{INFO}/METADATA").decode())
        commands = archive.read(f"{INFO}/entry_points.txt").decode()
    assert (said["Name"], said["Version"], said["License-Expression"]) == (
        "causeway",
        __version__,
        "Apache-2.0",
    )
    assert set(said.get_all("Provides-Extra") or []) == project()["optional-dependencies"].keys()
    assert len([line for line in said.get_all("Requires-Dist") or [] if "extra ==" not in line]) == len(
        project()["dependencies"]
    )
    assert "causeway = causeway.__main__:main" in commands


def test_the_command_works_outside_a_checkout(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "flows.yaml").write_text(ONE_FLOW)
    assert ran(installed, tmp_path, "-m", "causeway", "--version") == f"causeway {__version__}\n"
    assert "sf_to_nyc" in ran(installed, tmp_path, "-m", "causeway", "flows")


def test_the_library_works_outside_a_checkout(installed: Path, tmp_path: Path) -> None:
    script = "import causeway.translate as t; print(t.__file__, t.flow_map.__name__)"
    assert ran(installed, tmp_path, "-c", script) == f"{installed}/causeway/translate.py flow_map\n"
