"""How long each folder of tests took: a run over several folders ends with a table of it.

The seconds are those of all workers together: with two of them a run is over in about half the time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

_OF_MANY_SUITES = {"airflow", "integration", "proofs"}


class Timed(Protocol):
    """A part of a test, as pytest reports it: its setup, its call or its teardown."""

    @property
    def nodeid(self) -> str: ...

    @property
    def when(self) -> str | None: ...

    @property
    def duration(self) -> float: ...


@dataclass(slots=True)
class Folder:
    name: str
    tests: int = 0
    seconds: float = 0.0


def folders(reports: Iterable[Timed]) -> list[Folder]:
    """The slowest first. What a fixture of the session takes counts where it is asked for first."""
    found: dict[str, Folder] = {}
    for report in reports:
        name = _folder(report.nodeid)
        folder = found.setdefault(name, Folder(name))
        folder.tests += report.when == "setup"
        folder.seconds += report.duration
    return sorted(found.values(), key=lambda folder: (-folder.seconds, folder.name))


def lines(found: list[Folder]) -> list[str]:
    """Nothing for a run of one folder."""
    if len(found) < 2:
        return []
    whole = Folder("all", sum(each.tests for each in found), sum(each.seconds for each in found))
    return [f"{each.seconds:8,.0f} s {each.tests:7,} tests  {each.name}" for each in (*found, whole)]


def _folder(nodeid: str) -> str:
    """`tests/integration/failover` of `tests/integration/failover/deep/test_x.py::test_y`."""
    path = nodeid.partition("::")[0].split("/")[:-1]
    return "/".join(path[: 3 if path[1:2] and path[1] in _OF_MANY_SUITES else 2])
