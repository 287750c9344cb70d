from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from causeway.lab import processes

SLEEPER = [sys.executable, "-I", "-S", "-c", "import time; print('awake', flush=True); time.sleep(600)"]


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[processes.ProcessIdentity]:
    process = processes.start(SLEEPER, log_path=tmp_path / "log", tied=True)
    yield process
    processes.kill(process)


def test_a_recycled_pid_is_never_signalled(sleeper: processes.ProcessIdentity) -> None:
    earlier_owner = dataclasses.replace(sleeper, start_ticks=sleeper.start_ticks - 1)
    assert not processes.send(earlier_owner, signal.SIGKILL)
    assert not processes.is_alive(earlier_owner)
    processes.end(earlier_owner, patience_seconds=0)
    assert processes.is_alive(sleeper)


def test_a_process_that_ended_is_gone_even_before_it_is_reaped() -> None:
    with subprocess.Popen(["true"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert Path(f"/proc/{child.pid}/stat").read_text().split()[2] == "Z"
        assert processes.identify(child.pid) is None


def test_end_insists_when_asking_does_not_help(tmp_path: Path) -> None:
    stubborn = "trap '' TERM; echo deaf; while :; do sleep 1; done"
    process = processes.start(["sh", "-c", stubborn], log_path=tmp_path / "log", tied=True)
    while "deaf" not in (tmp_path / "log").read_text():
        pass
    processes.end(process, patience_seconds=0.1)
    assert not processes.is_alive(process)


def test_end_wakes_a_paused_process(sleeper: processes.ProcessIdentity) -> None:
    processes.send(sleeper, signal.SIGSTOP)
    processes.end(sleeper, patience_seconds=60)
    assert not processes.is_alive(sleeper)


def test_a_tied_process_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    log, started = tmp_path / "log", []

    def start_and_see_it_run() -> None:
        started.append(processes.start(SLEEPER, log_path=log, tied=True))
        while "awake" not in log.read_text():  # by then the tie is made: only now the thread's end can cut it
            pass

    thread = threading.Thread(target=start_and_see_it_run)
    thread.start()
    thread.join()
    assert not processes.wait_until_gone(started[0], timeout_seconds=0.3)
    processes.kill(started[0])


@pytest.mark.parametrize("tied", [True, False])
def test_only_an_untied_process_outlives_a_starter_killed_with_9(tmp_path: Path, tied: bool) -> None:
    log = tmp_path / "log"
    starter = (
        "from pathlib import Path; from causeway.lab import processes; import time\n"
        f"print(processes.start({SLEEPER!r}, log_path=Path({str(log)!r}), tied={tied}).pid, flush=True)\n"
        "time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", starter], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = processes.identify(int(parent.stdout.readline()))
        assert child is not None
        while "awake" not in log.read_text():
            pass
        parent.kill()
    assert processes.wait_until_gone(child, timeout_seconds=20 if tied else 0.3) is tied
    processes.kill(child)
