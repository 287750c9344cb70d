"""What an earlier commit makes of records: its own readers, taken out of this repository's history.

A format may only change so that the earlier version either reads it rightly or refuses it, because both may
work on one cluster for a while. `EarlierReader("dfef452", folder)` asks dfef452 itself, in its own process.
"""

from __future__ import annotations

import base64
import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
Row = tuple[int, bytes | None, bytes | None]
"""Offset, key and value."""

_SCRIPT = """
import base64, json, sys
from causeway.core.errors import CausewayError
from causeway.core.failover import journal
from causeway.core.flow_log import LogRecord
from causeway.core.flow_state import fold
from causeway.core.map_format import decode_runs
from causeway.core.position import Position, parse_position

def flows(rows):
    states = {}
    for offset, key, value in rows:
        states = fold(states, LogRecord(offset, 0, key or b"", value))
    return {name: s.fence and [s.fence.by, s.fence.because] for name, s in states.items()}

def maps(rows):
    return [len(decode_runs(key, value)) for _, key, value in rows if value is not None]

def failovers(rows):
    told = journal.Journal()
    for offset, key, value in rows:
        told = journal.fold(told, offset, key, value)
    return {name: str(run.status) for name, run in told.runs.items()}

def positions(rows):
    found = [parse_position(offset, (value or b"").decode()) for offset, _, value in rows]
    return [True if isinstance(each, Position) else each.why for each in found]

def raw(told):
    return None if told is None else base64.b64decode(told)

what, rows = json.load(sys.stdin)
try:
    read = globals()[what]([(offset, raw(key), raw(value)) for offset, key, value in rows])
    print(json.dumps({"read": read}))
except CausewayError as refusal:
    print(json.dumps({"refused": str(refusal)}))
"""


@dataclass(frozen=True, slots=True)
class Reading:
    read: Any = None
    refused: str = ""
    """Why it wasn't read; empty: it was."""


@dataclass
class EarlierReader:
    commit: str
    folder: Path
    """For the commit's code."""
    include: Path = field(init=False)

    def __post_init__(self) -> None:
        """:raises LookupError: this copy of the repository doesn't go back so far."""
        asked = ["git", "-C", str(ROOT), "archive", self.commit, "include/causeway"]
        done = subprocess.run(asked, capture_output=True, check=False)
        if done.returncode:
            raise LookupError(done.stderr.decode().strip())
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
            archive.extractall(self.folder, filter="data")
        self.include = self.folder / "include"

    def flows(self, rows: Iterable[Row]) -> Reading:
        """Of the flows topic: each flow's fence, or None."""
        return self._ask("flows", rows)

    def maps(self, rows: Iterable[Row]) -> Reading:
        """Of an offset map: how many runs each record holds."""
        return self._ask("maps", rows)

    def failovers(self, rows: Iterable[Row]) -> Reading:
        """Of the journal: the status of each run."""
        return self._ask("failovers", rows)

    def positions(self, commits: Iterable[tuple[int, str]]) -> Reading:
        """Of committed offsets with their metadata: True, or why each isn't a position."""
        return self._ask("positions", [(offset, None, metadata.encode()) for offset, metadata in commits])

    def _ask(self, what: str, rows: Iterable[Row]) -> Reading:
        asked = [what, [[offset, _packed(key), _packed(value)] for offset, key, value in rows]]
        done = subprocess.run(
            [sys.executable, "-c", _SCRIPT],
            input=json.dumps(asked),
            env={**os.environ, "PYTHONPATH": str(self.include)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return Reading(**json.loads(done.stdout))


def _packed(raw: bytes | None) -> str | None:
    return None if raw is None else base64.b64encode(raw).decode()
