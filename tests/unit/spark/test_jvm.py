"""Spark's JVM ends with who started it; here a script stands in for the one that starts it."""

import atexit
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark import SparkConf, SparkContext

from causeway.core.kernel.errors import BadInput
from causeway.interruption import listening
from causeway.spark import jvm

_SECONDS = 20.0
SparkHome = Callable[[str], Path]
Started = Callable[..., tuple[jvm._Jvm, list[int]]]


@pytest.fixture
def spark_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SparkHome:
    """Whose `spark-submit` writes down who it is, and what it was given; `then` is what it does after it."""

    def made(then: str) -> Path:
        script = tmp_path / "bin/spark-submit"
        script.parent.mkdir()
        noted = f'env > {tmp_path}/environ; echo "$@" > {tmp_path}/words'
        script.write_text(f"#!/bin/sh\n{noted}; echo $$ > {tmp_path}/pid; {then}\n")
        script.chmod(0o755)
        monkeypatch.setattr(jvm, "_find_spark_home", lambda: str(tmp_path))
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        monkeypatch.setattr("tempfile.tempdir", None)
        monkeypatch.setattr(SparkContext, "_gateway", None)
        return tmp_path

    return made


def folders(home: Path) -> list[Path]:
    return sorted(home.glob("causeway-spark-*"))


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_one_that_does_not_start_is_an_error_with_a_remedy(spark_home: SparkHome) -> None:
    home = spark_home("exit 3")
    with pytest.raises(BadInput, match=r"that Java ended with code 3 .*JAVA_HOME"):
        jvm.ensure_jvm(SparkConf())
    assert folders(home) == []


def test_ctrl_c_while_it_starts_ends_it_with_all_that_it_has_started(
    spark_home: SparkHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = spark_home("sleep 100 & echo $! > $0.child; wait")
    child = home / "bin/spark-submit.child"
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_SF", "sesame")

    def press_once_it_is_there(_seconds: float) -> None:
        if child.is_file() and child.read_text().strip():
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(time, "sleep", press_once_it_is_there)
    with listening(), pytest.raises(KeyboardInterrupt):
        jvm.ensure_jvm(SparkConf().set("spark.driver.extraJavaOptions", "-Dmine=1"))
    monkeypatch.undo()
    pids = [int(path.read_text()) for path in (home / "pid", child)]
    deadline = time.monotonic() + _SECONDS
    while any(map(is_there, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert [pid for pid in pids if is_there(pid)] == []
    assert folders(home) == []
    assert "sesame" not in (home / "environ").read_text(), "lanes bring their passwords along"
    assert "-Dmine=1 -Djava.io.tmpdir=" in (home / "words").read_text()


def test_it_goes_with_a_process_that_is_killed(spark_home: SparkHome) -> None:
    home = spark_home("exec sleep 100")
    code = (
        "from causeway.spark import jvm; from pyspark import SparkConf\n"
        f"jvm._find_spark_home = lambda: {str(home)!r}\n"
        "jvm.ensure_jvm(SparkConf())\n"
    )
    starter = subprocess.Popen([sys.executable, "-c", code])
    deadline = time.monotonic() + _SECONDS
    noted = home / "pid"
    while not (noted.is_file() and noted.read_text().strip()) and time.monotonic() < deadline:
        time.sleep(0.02)
    pid = int(noted.read_text())
    assert is_there(pid)
    starter.kill()
    starter.wait()
    while is_there(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_there(pid)


_ASKS = """
from pyspark import SparkConf, SparkContext
from causeway.spark.jvm import ensure_jvm
ensure_jvm(SparkConf().set("spark.driver.extraJavaOptions", "-Dmine=1").set("spark.driver.memory", "64m"))
asked = SparkContext._jvm.java.lang.System.getProperty
print(asked("mine"), asked("java.io.tmpdir"))
"""


def test_a_real_jvm_starts_where_the_temporary_folder_has_a_blank_or_a_quote_in_its_path(
    tmp_path: Path,
) -> None:
    folder = tmp_path / 'it\'s a "folder"'
    folder.mkdir()
    environ = {**os.environ, "TMPDIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", _ASKS], env=environ, capture_output=True, text=True, check=False, timeout=180
    )
    assert done.stdout.startswith(f"1 {folder}/causeway-spark-"), done.stderr
    assert folders(folder) == []


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Started:
    """What runs a command; `groups` are those that were killed."""
    groups: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda group, _signal: groups.append(group))

    def made(*command: str) -> tuple[jvm._Jvm, list[int]]:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, process_group=0)
        return jvm._Jvm(process, tmp_path / "folder"), groups

    return made


@pytest.mark.parametrize("ending", ["end", "kill"])
def test_one_that_has_ended_by_itself_has_no_group_any_more(started: Started, ending: str) -> None:
    """Its number may be another group's by then."""
    one, groups = started("true")
    one.process.wait()
    getattr(one, ending)()
    assert groups == []


@pytest.mark.parametrize("ending", ["end", "kill"])
def test_one_that_was_ended_is_not_ended_again_when_the_process_exits(
    started: Started, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    forgotten: list[Callable[[], None]] = []
    monkeypatch.setattr(atexit, "unregister", forgotten.append)
    one, groups = started("sh", "-c", "read word; exit 0")
    if ending == "kill":
        assert one.process.stdin is not None
        one.process.stdin.close()
    getattr(one, ending)()
    assert forgotten == [one.end]
    assert groups == ([one.process.pid] if ending == "kill" else [])
