"""Commands that are interrupted at some moment, as processes, and what they leave anywhere.

Processes are found by a word in their environment, which all that they start inherits: also what has left
their session.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from causeway.config.flows_file.load import load_flows
from causeway.config.values.environment import environment_variable
from causeway.core.failover.drill_run import clones_of
from causeway.core.model.naming import SCRATCH_PREFIX
from causeway.lab.clients import admin_client
from causeway.lab.cluster import LabCluster
from tests.integration.failback.stage import FailbackStage

_WORD = "CAUSEWAY_TRIAL"
_HEARD_SECONDS, _END_SECONDS, _GONE_SECONDS = 20.0, 45.0, 3.0
_MASK_LINE = "SigCgt:"
_SCRATCH = (SCRATCH_PREFIX, clones_of("").removesuffix("/"))


@dataclass(frozen=True, slots=True)
class Ended:
    """What a command printed and left; `waited` is from its first readiness to the signal."""

    arguments: tuple[str, ...]
    code: int
    out: str
    err: str
    ended_in_seconds: float
    was_struck: bool
    left_processes: tuple[str, ...]
    left_files: tuple[str, ...]

    @property
    def last_line(self) -> str:
        lines = self.err.strip().splitlines()
        return lines[-1] if lines else ""


@dataclass
class Stage:
    """Two clusters, and a project's folder whose flows.yaml grows by a pair of flows for each story."""

    sf: LabCluster
    nyc: LabCluster
    folder: Path
    token: str
    stories: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.folder / "tmp").mkdir(parents=True)

    @property
    def flows_file(self) -> Path:
        return self.folder / "flows.yaml"

    def story(self) -> FailbackStage:
        """A flow of its own with its way back, mirrored, with two groups."""
        stem = f"{self.token}{len(self.stories)}"
        self.stories.append(stem)
        self._write_flows()
        flows = load_flows(self.flows_file).flows
        made = FailbackStage(
            self.sf, self.nyc, stem, keeps_names=True, flows=(flows[stem], flows[f"{stem}_back"])
        )
        made.write_evenly(self.sf, 400)
        made.forward.run()
        for name in ("a", "b"):
            made.commit(self.sf, name, stem, {0: 30, 1: 50})
        return made

    def _write_flows(self) -> None:
        rules = "replication.policy: identity, lanes: 2"
        lines = ["clusters:", "  sf: {connection: kafka_sf}", "  nyc: {connection: kafka_nyc}", "flows:"]
        for stem in self.stories:
            groups = f"groups: ['{stem}\\..*'], sync.group.offsets.enabled: true"
            lines += [
                f"  {stem}: {{source: sf, target: nyc, topics: [{stem}], {groups}, {rules}}}",
                f"  {stem}_back: {{source: nyc, target: sf, failback_of: {stem}, {groups}, {rules}}}",
            ]
        self.flows_file.write_text("\n".join(lines) + "\n")

    # commands

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "causeway", *arguments, "--file", str(self.flows_file)]

    def environ(self, word: str) -> dict[str, str]:
        inherited = {n: v for n, v in os.environ.items() if not n.startswith(("AIRFLOW", "CAUSEWAY"))}
        connections = {
            environment_variable(f"kafka_{name}"): cluster.connection_json()
            for name, cluster in (("sf", self.sf), ("nyc", self.nyc))
        }
        places = {"HOME": str(self.folder), "TMPDIR": str(self.folder / "tmp")}
        return {**inherited, **connections, **places, _WORD: word}

    def finish(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The same without being struck."""
        return subprocess.run(
            self.command(*arguments),
            env=self.environ("quiet"),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def strike(self, seconds: float, number: signal.Signals, *arguments: str, again: bool = False) -> Ended:
        """So long after it listens; `again`: a second time, a moment after the first."""
        word = f"{self.token}-{random.randrange(1 << 60):x}"
        before = self._files()
        out, err = self.folder / "out", self.folder / "err"
        with out.open("w") as to_out, err.open("w") as to_err:
            process = subprocess.Popen(
                self.command(*arguments),
                env=self.environ(word),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=to_out,
                stderr=to_err,
                start_new_session=True,
            )
            _wait_until_it_listens(process)
            was_struck = _outlasts(process, seconds)
            struck_at = time.monotonic()
            if was_struck:
                os.killpg(process.pid, number)  # as a terminal does
                if again and _outlasts(process, 0.15):
                    os.killpg(process.pid, number)
            code = _end_of(process)
        took, left = time.monotonic() - struck_at, _left_processes(word)
        files = tuple(sorted(self._files() - before))
        return Ended(arguments, code, out.read_text(), err.read_text(), took, was_struck, left, files)

    def _files(self) -> set[str]:
        """Of the project, and of its folder for what lives as long as a process."""
        return {str(path.relative_to(self.folder)) for path in self.folder.rglob("*")} - {"out", "err"}

    def scratch(self) -> set[str]:
        """Topics and groups that only live as long as their command."""
        found: set[str] = set()
        for cluster in (self.sf, self.nyc):
            admin = admin_client(cluster.endpoint())
            names = [*admin.list_topics(timeout=20).topics]
            names += [group.group_id for group in admin.list_consumer_groups().result(20).valid]
            found |= {f"{cluster.spec.name}: {name}" for name in names if name.startswith(_SCRATCH)}
        return found


def _wait_until_it_listens(process: subprocess.Popen[bytes]) -> None:
    """Until then Python itself answers. It hears SIGTERM by a handler of ours only."""
    deadline = time.monotonic() + _HEARD_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        status = Path(f"/proc/{process.pid}/status").read_text()
        mask = next(line for line in status.splitlines() if line.startswith(_MASK_LINE))
        if int(mask.split()[1], 16) >> (signal.SIGTERM - 1) & 1:
            return
        time.sleep(0.002)


def _outlasts(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return True
    return False


def _end_of(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return -99


def _left_processes(word: str) -> tuple[str, ...]:
    """Those that are there for longer than the kernel takes to end them."""
    deadline = time.monotonic() + _GONE_SECONDS
    while (left := _bearing(word)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return tuple(f"{pid}: {command[:120]}" for pid, command in left.items())


def _bearing(word: str) -> Mapping[int, str]:
    found: dict[int, str] = {}
    mark = f"{_WORD}={word}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if mark in (entry / "environ").read_bytes():
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
    return found
