"""Spark's JVM of a run that `spark-submit` didn't start: it ends with this process, at whatever moment.

PySpark would start one itself, and keeps it to itself until it answers, some seconds later: a process that
ends meanwhile leaves it running, and gets its stack trace on the screen. So it is started here, tied to this
process and in a process group of its own, and PySpark gets its address, as `spark-submit` does.
"""

from __future__ import annotations

import atexit
import os
import shlex
import signal
import struct
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway

from causeway import interruption
from causeway.spark.java import not_started, without_passwords

SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""In the environment of a driver that `spark-submit` started."""
_SECRET = "PYSPARK_GATEWAY_SECRET"  # noqa: S105 - a variable's name
_ADDRESS_VARIABLE, _ADDRESS = "_PYSPARK_DRIVER_CONN_INFO_PATH", "address"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_TIED_EXEC = Path(__file__).parents[1] / "tied_exec.py"
_POLL_SECONDS = 0.05
_GOODBYE_SECONDS = 5.0


def ensure_jvm(conf: SparkConf) -> None:
    """PySpark's own, of `spark-submit` or of an earlier run of this process, or a new one.

    :raises BadInput: it doesn't start.
    """
    if SparkContext._gateway is not None or SUBMITTED in os.environ:  # noqa: SLF001 - PySpark has no other name
        return
    jvm = _start_jvm(conf)
    try:
        gateway = _connected(jvm.address_when_told())
    except BaseException:
        jvm.kill()
        raise
    gateway.proc = jvm.process
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001
    _running.append(jvm)
    atexit.register(jvm.end)


def kill_jvm() -> None:
    """Of a context that was broken off while it started; the next run of this process gets a new one."""
    while _running:
        _running.pop().kill()
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001


@dataclass(frozen=True, slots=True)
class _Jvm:
    process: subprocess.Popen[bytes]
    folder: Path
    """For its files, and those of its launcher."""

    def address_when_told(self) -> bytes:
        """It is moved into place whole."""
        told = self.folder / _ADDRESS
        while not told.is_file():
            interruption.check()
            if (code := self.process.poll()) is not None:
                raise not_started(os.environ, code)
            time.sleep(_POLL_SECONDS)
        return told.read_bytes()

    def end(self) -> None:
        """In order; it knows by its broken pipe."""
        with suppress(OSError):
            assert self.process.stdin is not None
            self.process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(_GOODBYE_SECONDS)
        self.kill()

    def kill(self) -> None:
        """With all of its group: its launcher starts another JVM for a moment. Once its end has been heard
        of, the group's number may be another's."""
        atexit.unregister(self.end)
        if self.process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        rmtree(self.folder, ignore_errors=True)


_running: list[_Jvm] = []


def _start_jvm(conf: SparkConf) -> _Jvm:
    folder = Path(mkdtemp(prefix="causeway-spark-"))
    tied = [sys.executable, "-I", "-S", str(_TIED_EXEC), str(os.getpid())] if sys.platform == "linux" else []
    own = shlex.quote(f"-Djava.io.tmpdir={folder}")  # Spark's launcher splits the options as a shell does
    options = f"{conf.get(_JAVA_OPTIONS, '')} {own}"
    settings = [*conf.getAll(), (_JAVA_OPTIONS, options.strip())]
    words = [word for key, value in settings for word in ("--conf", f"{key}={value}")]
    asked = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
    environ = without_passwords(os.environ)
    process = subprocess.Popen(
        [*tied, str(Path(_find_spark_home()) / "bin/spark-submit"), *words, *asked],
        stdin=subprocess.PIPE,  # where it can't be tied it ends when this pipe breaks
        env={**environ, "SPARK_CONNECT_MODE": "0", _ADDRESS_VARIABLE: str(folder / _ADDRESS)},
        process_group=0,  # a terminal sends Ctrl-C to the group that it shows
    )
    return _Jvm(process, folder)


def _connected(told: bytes) -> Any:
    """What the JVM wrote: its port, and the secret with its length before it."""
    port, length = struct.unpack_from("!ii", told)
    os.environ |= {SUBMITTED: str(port), _SECRET: told[8 : 8 + length].decode()}
    try:
        return launch_gateway()
    finally:
        del os.environ[SUBMITTED], os.environ[_SECRET]
