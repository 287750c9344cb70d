"""CPU and memory of processes: nothing that they used may be lost with them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from causeway.lab.processes import ProcessIdentity
from tests.bench import accounting, meter
from tests.bench.accounting import Account, Seen

_BURN = "import time\nwhile time.process_time() < {seconds}: pass\n"
_METER = Path(meter.__file__)


def seen(pid: int, kind: str, cpu: float, memory: int = 0) -> Seen:
    return Seen(ProcessIdentity(pid, 1), kind, cpu, memory)


def metered(folder: Path, code: str) -> float:
    told = folder / "told.json"
    command = [sys.executable, "-I", "-S", str(_METER), str(told), sys.executable, "-S", "-c", code]
    subprocess.run(command, check=True, timeout=60)
    return float(json.loads(told.read_text())["cpu_seconds"])


def test_the_meter_counts_a_child_that_is_gone(tmp_path: Path) -> None:
    child = _BURN.format(seconds=0.3)
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', {child!r}])"
    assert 0.3 <= metered(tmp_path, code) < 3.0


def test_the_meter_counts_an_orphan_that_outlives_its_parent(tmp_path: Path) -> None:
    """As Spark's Python processes do: they end when their JVM is gone."""
    orphan = "import os, time\nwhile os.getppid() == {parent}: time.sleep(0.01)\n" + _BURN.format(seconds=0.3)
    code = (
        "import os, subprocess, sys; "
        f"subprocess.Popen([sys.executable, '-S', '-c', {orphan!r}.format(parent=os.getpid())])"
    )
    assert 0.3 <= metered(tmp_path, code) < 3.0


def test_the_meter_ends_as_its_command_did(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError) as ended:
        metered(tmp_path, "raise SystemExit(7)")
    assert ended.value.returncode == 7


def test_looking_finds_the_cpu_and_memory_of_a_process_but_not_the_meter() -> None:
    code = _BURN.format(seconds=0.3) + "kept = bytearray(50 << 20)\nprint('ready', flush=True)\ninput()"
    command = [
        sys.executable,
        "-S",
        "-c",
        f"import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', {code!r}])",
    ]
    leader = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert leader.stdout is not None
        assert leader.stdout.readline() == b"ready\n"
        (found,) = accounting.look_at(leader.pid, lambda command_line: command_line.split(" ")[0])
    finally:
        leader.communicate(b"\n", timeout=60)
    assert found.identity.pid != leader.pid
    assert found.kind == sys.executable
    assert 0.25 <= found.cpu_seconds < 3.0
    assert 50 << 20 <= found.memory_bytes < 100 << 20


def test_an_account_keeps_the_cpu_of_what_ended() -> None:
    account = Account()
    account.add(1.0, [seen(1, "JVM", 2.0), seen(2, "worker", 0.5)])
    account.add(2.0, [seen(1, "JVM", 3.0)])
    assert account.cpu_seconds() == {"JVM": 3.0, "worker": 0.5}


def test_the_whole_is_what_missed_less() -> None:
    account = Account()
    account.add(1.0, [seen(1, "JVM", 2.0), seen(2, "worker", 1.5)])
    assert account.whole_cpu_seconds(3.0) == 3.5  # the worker's parent ignored its end
    assert account.whole_cpu_seconds(4.0) == 4.0  # the JVM went on for a while after the last look


def test_the_kernel_forgets_a_child_whose_parent_ignores_its_end(tmp_path: Path) -> None:
    """Why looking is needed beside the meter."""
    child = _BURN.format(seconds=0.3)
    code = (
        "import signal, subprocess, sys, time; signal.signal(signal.SIGCHLD, signal.SIG_IGN); "
        f"subprocess.Popen([sys.executable, '-S', '-c', {child!r}]).wait()"
    )
    assert metered(tmp_path, code) < 0.3


def test_a_pid_that_came_back_is_another_process() -> None:
    account = Account()
    account.add(1.0, [Seen(ProcessIdentity(2, 10), "worker", 4.0, 0)])
    account.add(2.0, [Seen(ProcessIdentity(2, 99), "worker", 1.0, 0)])
    assert account.cpu_seconds() == {"worker": 5.0}


def test_a_process_that_became_something_else_counts_once() -> None:
    """spark-submit is a shell that becomes a JVM."""
    account = Account()
    account.add(1.0, [seen(1, "starting", 0.1)])
    account.add(2.0, [seen(1, "JVM", 2.0)])
    assert account.cpu_seconds() == {"JVM": 2.0}


def test_cpu_between_two_moments_is_that_of_the_samples_nearest_to_them() -> None:
    account = Account()
    for at, jvm, worker in ((1.0, 1.0, 0.0), (2.0, 3.0, 0.0), (3.0, 4.0, 0.5), (4.0, 4.5, 2.0)):
        account.add(at, [seen(1, "JVM", jvm), *([seen(2, "worker", worker)] if worker else [])])
    assert account.cpu_between(2.1, 3.9) == {"JVM": 1.5, "worker": 2.0}


def test_the_peak_is_of_all_together_and_not_the_sum_of_peaks() -> None:
    account = Account()
    account.add(1.0, [seen(1, "JVM", 0, 100), seen(2, "worker", 0, 10), seen(3, "worker", 0, 30)])
    account.add(2.0, [seen(1, "JVM", 0, 60), seen(2, "worker", 0, 70)])
    assert account.peak_bytes() == 140
    assert account.peak_bytes_by_kind() == {"JVM": 100, "worker": 70}
    assert account.largest_bytes_by_kind() == {"JVM": 100, "worker": 70}
