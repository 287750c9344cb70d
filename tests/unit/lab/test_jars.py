from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from causeway.lab import jars
from causeway.lab.errors import JarsRefused, LabTrouble

FILES = {"broker-1.jar": b"one", "codec-2.jar": b"two", "log-3.jar": b"three"}
LOCK = {name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def verify(directory: Path) -> None:
    jars.verify(directory, LOCK, lock_name="kafka-x.lock")


def test_jars_that_match_their_lock_pass(directory: Path) -> None:
    verify(directory)


def test_a_tampered_jar_is_refused_by_name(directory: Path) -> None:
    (directory / "codec-2.jar").write_bytes(b"twO")
    with pytest.raises(
        JarsRefused, match=rf"codec-2\.jar = sha256 .*kafka-x\.lock says {LOCK['codec-2.jar']}"
    ):
        verify(directory)


def test_a_missing_jar_is_refused_by_name(directory: Path) -> None:
    (directory / "log-3.jar").unlink()
    with pytest.raises(JarsRefused, match=r"log-3\.jar: listed in kafka-x\.lock and not there"):
        verify(directory)


def test_a_jar_too_many_is_refused_by_name(directory: Path) -> None:
    (directory / "stowaway.jar").touch()
    with pytest.raises(JarsRefused, match=r"stowaway\.jar: there and not listed"):
        verify(directory)


def test_the_refusal_says_what_to_delete(directory: Path) -> None:
    (directory / "log-3.jar").unlink()
    with pytest.raises(JarsRefused) as refusal:
        verify(directory)
    assert str(directory) in refusal.value.remedy


@pytest.fixture
def locked_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project root whose set `x` is locked to FILES; the repository serves what is in `served`."""
    lock = tmp_path / "kafka-x.lock"
    lock.write_text("".join(f"{digest}  {name}\n" for name, digest in LOCK.items()))
    served = tmp_path / "served"
    served.mkdir()
    for name, content in FILES.items():
        (served / name).write_bytes(content)
    monkeypatch.setitem(jars.MODULES, "x", ("org:broker:1",))
    monkeypatch.setattr(jars, "lock_path", lambda name: lock)
    # The network and the JVM stay out of the fast suite; test_lab.py runs the real retrieval.
    monkeypatch.setattr(jars, "retrieve", lambda modules, to, ivy_home: shutil.copytree(served, to))
    return tmp_path


def test_fetched_jars_are_installed_whole(locked_home: Path) -> None:
    said: list[str] = []
    directory = jars.ensure_jars("x", root=locked_home, say=said.append)
    assert {path.name for path in directory.iterdir()} == FILES.keys()
    assert "fetching x" in said[0]


def test_jars_that_are_there_cost_no_fetch(locked_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jars.ensure_jars("x", root=locked_home, say=lambda line: None)

    def no_fetch(*_: object, **__: object) -> None:
        raise AssertionError("fetched again")

    monkeypatch.setattr(jars, "retrieve", no_fetch)
    said: list[str] = []
    jars.ensure_jars("x", root=locked_home, say=said.append)
    assert said == []


def test_a_tampered_download_leaves_nothing_installed(locked_home: Path) -> None:
    (locked_home / "served" / "codec-2.jar").write_bytes(b"evil")
    with pytest.raises(JarsRefused, match=r"codec-2\.jar"):
        jars.ensure_jars("x", root=locked_home, say=lambda line: None)
    left = [path.name for path in (locked_home / ".causeway" / "jars").iterdir()]
    assert left == [".fetching"]


def test_a_jar_tampered_with_after_its_installation_is_refused(locked_home: Path) -> None:
    directory = jars.ensure_jars("x", root=locked_home, say=lambda line: None)
    (directory / "broker-1.jar").write_bytes(b"evil")
    with pytest.raises(JarsRefused, match=r"broker-1\.jar"):
        jars.ensure_jars("x", root=locked_home, say=lambda line: None)


def test_an_unknown_set_is_refused_with_the_known_ones() -> None:
    with pytest.raises(LabTrouble, match=r"set of jars = kafka-2\.8\.0: .*kafka-4\.3\.1, kafka-3\.9\.2"):
        jars.ensure_jars("kafka-2.8.0")


@pytest.mark.parametrize("name", list(jars.MODULES))
def test_every_lock_names_what_runs_and_what_writes_its_log(name: str) -> None:
    lock = jars.read_lock(name)
    kind, _, version = name.rpartition("-")
    runs = {
        "kafka": f"kafka_2.13-{version}.jar",
        "mirror-maker": f"connect-mirror-{version}.jar",
        "mirror-client": f"connect-mirror-client-{version}.jar",
    }
    assert runs[kind] in lock
    assert kind == "mirror-client" or any(
        jar.startswith(("log4j-slf4j-impl", "slf4j-reload4j")) for jar in lock
    )
    assert all(len(digest) == 64 for digest in lock.values())
