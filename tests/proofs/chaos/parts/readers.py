"""Readers that follow a cluster all the while, each a process of its own, and what they saw."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.proofs.chaos.parts.processes import Started, start, wait_until

_SCRIPT = Path(__file__).with_name("reader.py")
_ROW = np.dtype([("offset", "<i8"), ("digest", "<u8")])

Digests = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Following:
    """A reader at work."""

    process: Started
    folder: Path

    @property
    def records(self) -> int:
        """How many it has seen so far."""
        return sum(file.stat().st_size for file in self.folder.iterdir()) // _ROW.itemsize

    def finish(self) -> dict[str, Digests]:
        """Let it read to the ends, and give what it saw: the digests in order, by `topic-partition`."""
        self.process.send(signal.SIGTERM)
        return self.seen()

    def seen(self) -> dict[str, Digests]:
        wait_until(
            lambda: self.process.exit_code is not None,
            f"{self.process.name} at the ends",
            timeout_seconds=900,
        )
        if self.process.exit_code != 0:
            raise AssertionError(f"{self.process.name} failed: {self.process.output()[-2000:]}")
        return self.seen_so_far()

    def seen_so_far(self) -> dict[str, Digests]:
        """Of a file that is being written, the whole rows."""
        return {
            file.stem: np.fromfile(file, dtype=_ROW, count=file.stat().st_size // _ROW.itemsize)["digest"]
            for file in sorted(self.folder.glob("*.seen"))
        }


def follow(name: str, bootstrap: str, isolation: str, folder: Path, topics: Mapping[str, int]) -> Following:
    return _start("follow", name, bootstrap, isolation, folder, topics)


def read_all(
    name: str, bootstrap: str, isolation: str, folder: Path, topics: Mapping[str, int]
) -> dict[str, Digests]:
    """Everything that is there now, seen by a reader that has just come."""
    return _start("once", name, bootstrap, isolation, folder, topics).seen()


def _start(
    mode: str, name: str, bootstrap: str, isolation: str, folder: Path, topics: Mapping[str, int]
) -> Following:
    seen = folder / name
    seen.mkdir(parents=True)
    command = [sys.executable, str(_SCRIPT), mode, bootstrap, isolation, str(seen), json.dumps(dict(topics))]
    return Following(start(name, command, folder / f"{name}.log"), seen)
