"""Plays hostile cases: each in a folder of its own, with the connections of two clusters.

Without clusters the connections lead to a port where nobody listens: what has to be refused before any
broker is asked is refused there too. With them, both are compared before and after.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import NoReturn

from causeway.cli.main import main
from causeway.config.values.environment import environment_variable
from causeway.lab.cluster import LabCluster
from tests.proofs.hostile.case import HERE, Case, Played, complaints
from tests.support.inline_flow import everything

FLOW = "sf_to_nyc"
FLOWS = """\
clusters:
  sf: {connection: kafka_sf}
  nyc: {connection: kafka_nyc}
flows:
  sf_to_nyc: {source: sf, target: nyc, topics: [orders, "payments-.*", quiet], lanes: 2, settle: true}
"""
_NOBODY = json.dumps({"conn_type": "kafka", "extra": {"bootstrap.servers": "127.0.0.1:9"}})
_AT_ONCE = 40
"""Cases between two looks at the clusters."""
_SHELL = 'causeway() { "$PYTHON" -m causeway.cli.main "$@"; }\n'


class Hang(BaseException):
    """The case's time is over; not an Exception, which the command line would catch."""


@dataclass(frozen=True, slots=True)
class Wrong:
    case: str
    why: str

    def __str__(self) -> str:
        return f"{self.case}: {self.why}"


@dataclass(slots=True)
class Tally:
    cases: int = 0
    seconds: float = 0.0
    wrong: list[Wrong] = field(default_factory=list)
    slowest: tuple[float, str] = (0.0, "")


@dataclass(frozen=True, slots=True)
class Player:
    """`clusters`: none, or sf and nyc under these names."""

    folder: Path
    clusters: Mapping[str, LabCluster] = field(default_factory=dict)
    has_mirror: bool = False

    def play_all(self, cases: Sequence[Case]) -> Tally:
        """All that can be played here; what is refused in one go, between two looks at the clusters."""
        tally, began = Tally(), time.monotonic()
        playable = [case for case in cases if self._can_play(case)]
        for chunk in _chunks([case for case in playable if not case.writes]):
            before = self._state()
            for case in chunk:
                self._tell(case, tally)
            if self._state() != before:
                names = ", ".join(case.name for case in chunk)
                tally.wrong.append(Wrong("one of these", f"wrote on a cluster: {names}"))
        for case in playable:
            if case.writes:
                self._tell(case, tally)
        tally.seconds = time.monotonic() - began
        return tally

    def _can_play(self, case: Case) -> bool:
        return self.has_mirror or not case.needs_mirror if self.clusters else not _asks_brokers(case)

    def play(self, case: Case) -> list[str]:
        """:returns: what is wrong with it."""
        folder = self.folder / "case"
        shutil.rmtree(folder, ignore_errors=True)
        _write(folder, case)
        before = _listing(folder)
        played = self._alone(case, folder) if case.runs_alone else self._here(case, folder)
        changed = tuple(
            name
            for name in sorted(_changed(before, _listing(folder)))
            if not any(fnmatch(name, pattern) for pattern in case.leaves)
        )
        return complaints(case, Played(played.code, played.out, played.err, changed), folder)

    def _tell(self, case: Case, tally: Tally) -> None:
        began = time.monotonic()
        tally.wrong += [Wrong(case.name, why) for why in self.play(case)]
        tally.cases += 1
        tally.slowest = max(tally.slowest, (time.monotonic() - began, case.name))

    def _state(self) -> list[object]:
        return everything(*self.clusters.values())

    def _environment(self, case: Case, folder: Path) -> dict[str, str]:
        kept = {n: v for n, v in os.environ.items() if not n.startswith(("AIRFLOW", "CAUSEWAY"))}
        kept |= {"HOME": str(folder.parent / "home"), "PYTHON": sys.executable}
        for alias in ("sf", "nyc"):
            cluster = self.clusters.get(alias)
            text = _NOBODY if cluster is None else cluster.connection_json()
            kept[environment_variable(f"kafka_{alias}")] = text
        for name, value in case.environment.items():
            kept.pop(name, None)
            if value is not None:
                kept[name] = value.replace(HERE, str(folder))
        return kept

    def _alone(self, case: Case, folder: Path) -> Played:
        command = [sys.executable, "-m", "causeway.cli.main", *_placed(case.argv, folder)]
        if case.shell is not None:
            command = ["/bin/bash", "-c", _SHELL + case.shell.replace(HERE, str(folder))]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=self._environment(case, folder),
            start_new_session=True,
        )
        try:
            out, err = process.communicate(case.stdin, timeout=case.seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            return Played(None, _text(out), _text(err))
        return Played(process.returncode, _text(out), _text(err))

    def _here(self, case: Case, folder: Path) -> Played:
        out, err = io.BytesIO(), io.BytesIO()
        code: int | None = None
        with (
            _surroundings(self._environment(case, folder), folder, case.stdin),
            redirect_stdout(io.TextIOWrapper(out, "utf-8", write_through=True)),
            redirect_stderr(io.TextIOWrapper(err, "utf-8", "backslashreplace", write_through=True)),
        ):
            try:
                with _time_limit(case.seconds):
                    code = main(_placed(case.argv, folder))
            except SystemExit as end:
                code = int(end.code or 0)
            except Hang:
                code = None
            sys.stdout.flush()
            sys.stderr.flush()
            for ours in (sys.stdout, sys.stderr):
                assert isinstance(ours, io.TextIOWrapper)
                ours.detach()  # what closes with it is still to be read
        return Played(code, _text(out.getvalue()), _text(err.getvalue()))


def _asks_brokers(case: Case) -> bool:
    return case.needs_clusters or case.needs_mirror


def _placed(argv: Iterable[str], folder: Path) -> list[str]:
    return [word.replace(HERE, str(folder)) for word in argv]


def _text(printed: bytes) -> str:
    return printed.decode("utf-8", "surrogateescape")


def _chunks(cases: Sequence[Case]) -> Iterator[Sequence[Case]]:
    for first in range(0, len(cases), _AT_ONCE):
        yield cases[first : first + _AT_ONCE]


@contextmanager
def _surroundings(environment: Mapping[str, str], folder: Path, stdin: bytes) -> Iterator[None]:
    kept, kept_stdin, kept_folder = dict(os.environ), sys.stdin, Path.cwd()
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin), "utf-8")
    try:
        yield
    finally:
        sys.stdin = kept_stdin
        os.chdir(kept_folder)
        os.environ.clear()
        os.environ.update(kept)


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    def over(_number: int, _frame: object) -> NoReturn:
        raise Hang

    previous = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def _write(folder: Path, case: Case) -> None:
    (folder / "include").mkdir(parents=True)
    for name, content in {"include/flows.yaml": FLOWS, **case.files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    if case.prepare is not None:
        case.prepare(folder)


def _listing(folder: Path) -> dict[str, str]:
    """Each path below it, with its kind and what it holds; a FIFO isn't opened."""
    found = {}
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"link {path.readlink()}"
        elif path.is_file():
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            found[name] = f"{path.lstat().st_mode:o}"
    return found


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> set[str]:
    return {name for name in {*before, *after} if before.get(name) != after.get(name)}
