"""One hostile case: what somebody types, with which files and surroundings, and what has to come of it.

A refusal is one line that names the thing, its value, the rule and the fix, with the exit code of its
kind. Nothing else happens: no traceback, no control character on the screen, no file made or changed.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

HERE = "%HERE%"
"""The folder that the case is played in: in arguments, environment, a shell's line and `says`."""

LONGEST_LINE = 1_000
"""Characters that somebody may have to read at once; of longer names the messages show the beginning."""

_REFUSALS = (2, 3, 4, 6)
_HEAD = "causeway: error: "
_DEFECTS = ("Traceback (most recent call last)", "a defect of Causeway")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Played by `main(argv)` in this process or, with `shell` or `own_process`, in one of its own."""

    name: str
    argv: tuple[str, ...] = ()
    shell: str | None = None
    """A line for bash, which knows `causeway`: for redirections and the like."""
    codes: tuple[int, ...] = (2,)
    says: tuple[str, ...] = ()
    """Regular expressions; each is found in the error line or, if nothing is refused, in what is printed."""
    hides: tuple[str, ...] = ()
    """Regular expressions that nothing printed may match: secrets."""
    environment: Mapping[str, str | None] = field(default_factory=dict)
    """On top of both clusters' connections; None takes a variable away."""
    stdin: bytes = b""
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    """Beside include/flows.yaml, or instead of it."""
    prepare: Callable[[Path], None] | None = None
    """For what isn't a file: a FIFO, a link, a folder without rights."""
    leaves: tuple[str, ...] = ()
    """Files that the case may make or change, as patterns below its folder."""
    own_process: bool = False
    needs_clusters: bool = False
    """It asks the brokers; the others end before that."""
    needs_mirror: bool = False
    """It needs the flow's topics on both clusters, and groups."""
    writes: bool = False
    """It may write on a cluster: it isn't refused."""
    is_silent: bool = False
    """Where standard error goes to nobody, there is no line to judge."""
    is_slow: bool = False
    """It starts Spark: not for every test run."""
    seconds: float = 30.0

    @property
    def runs_alone(self) -> bool:
        return self.own_process or self.shell is not None


@dataclass(frozen=True, slots=True)
class Played:
    """What came of it; `code` None: it hadn't ended in time."""

    code: int | None
    out: str
    err: str
    changed_files: tuple[str, ...] = ()


def complaints(case: Case, played: Played, folder: Path) -> list[str]:
    """What is wrong with it, in words; none: it is right."""
    if played.code is None:
        return [f"hangs: not over after {case.seconds:g} s"]
    wrong = [] if played.code in case.codes else [f"exit {played.code}, wanted {case.codes}"]
    everything = f"{played.out}\n{played.err}"
    wrong += [f"prints {defect!r}" for defect in _DEFECTS if defect in everything]
    wrong += [f"shows /{pattern}/" for pattern in case.hides if re.search(pattern, everything)]
    if strange := [c for c in everything if not c.isprintable() and c != "\n"]:
        wrong.append(f"prints the character {strange[0]!r} raw")
    is_refused = played.code in _REFUSALS
    line = everything
    if is_refused and not case.is_silent:
        line, bad = _the_line(case, played)
        wrong += bad
    for pattern in case.says:
        if not re.search(pattern.replace(HERE, re.escape(str(folder))), line):
            wrong.append(f"doesn't say /{pattern}/")
    if played.changed_files:
        wrong.append(f"wrote {', '.join(played.changed_files)}")
    return wrong


def _the_line(case: Case, played: Played) -> tuple[str, list[str]]:
    """The error's one line, and what is wrong with its form."""
    if "--json" in case.argv:
        return _of_json(played)
    lines = [line for line in played.err.splitlines() if line.startswith(_HEAD)]
    if len(lines) != 1:
        return "", [f"{len(lines)} error lines"]
    return lines[0], [
        *_badly_formed(lines[0]),
        *(["answers, though it refuses"] if played.out.strip() else []),
    ]


def _of_json(played: Played) -> tuple[str, list[str]]:
    try:
        told = json.loads(played.out)
        line = told["message"]
    except (ValueError, KeyError, TypeError) as reason:
        return "", [f"--json isn't an error's object: {reason!r}"]
    wrong = _badly_formed(f"{_HEAD}{line}")
    return line, wrong if told["exit_code"] == played.code else [*wrong, f"exit_code {told['exit_code']}"]


def _badly_formed(line: str) -> list[str]:
    body = line.removeprefix(_HEAD)
    wrong = [] if ": " in body else ["the line has no rule (no ': ')"]
    if "; " not in body:
        wrong.append("the line has no way out (no '; ')")
    if len(line) > LONGEST_LINE:
        wrong.append(f"the line has {len(line)} characters")
    return wrong


def make_device(path: Path) -> None:
    """Like /dev/full, which a defect would replace for all; a FIFO, where none can be made."""
    try:
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 7))
    except OSError:
        os.mkfifo(path)
