"""Paths for --report, --html and --svg: only a regular file, or nothing yet, may be there."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

from tests.proofs.hostile.case import HERE, Case, make_device
from tests.proofs.hostile.player import FLOW

_VERBS: dict[str, tuple[str, ...]] = {
    "run-report": ("run", FLOW, "--until-caught-up", "--report"),
    "run-for-report": ("run", FLOW, "--run-for", "5s", "--report"),
    "groups-report": ("groups", FLOW, "--report"),
    "groups-sync-report": ("groups", FLOW, "--sync", "--report"),
    "failover-html": ("failover", FLOW, "--at", "latest", "--dry-run", "--html"),
    "failover-yes-html": ("failover", FLOW, "--at", "latest", "--yes", "--html"),
    "failover-planned-html": ("failover", FLOW, "--planned", "--yes", "--html"),
    "drill-svg": ("drill", FLOW, "--svg"),
    "drill-history-svg": ("drill", FLOW, "--history", "--svg"),
}
_WRONG: dict[str, tuple[str, str]] = {
    "a-folder": (HERE, "is a folder"),
    "a-folder-below": ("include", "is a folder"),
    "here": (".", "is a folder"),
    "above": ("..", "is a folder"),
    "with-slash": ("nothing/", "folder"),
    "a-fifo": ("fifo", "FIFO"),
    "a-socket": ("socket", "socket"),
    "a-device": ("device", "device|FIFO"),
    "a-device-by-its-path": (f"{HERE}/device", "device|FIFO"),
    "a-device-by-a-way-round": ("include/../device", "device|FIFO"),
    "a-link-by-its-path": (f"{HERE}/link", "link"),
    "a-link": ("link", "link"),
    "a-link-to-nothing": ("broken-link", "link"),
    "a-link-to-a-folder": ("folder-link", "link"),
    "below-a-file": ("/etc/passwd/x", "isn't a folder"),
    "below-our-file": ("include/flows.yaml/r.json", "isn't a folder"),
    "in-proc": ("/proc/x", "can't be written"),
    "below-proc": ("/proc/x/y/z.json", "can't be written"),
    "empty": ("", "name"),
    "blank": ("   ", "name"),
    "too-long": ("x" * 300, "too long"),
    "path-too-long": ("d/" * 3_000 + "x", "too long"),
    "newline": ("a\nb", "character"),
    "escape": ("\x1b[31m.html", "character"),
    "not-utf-8": ("\udcff\udcfe", "character"),
}


def _oddities(folder: Path) -> None:
    os.mkfifo(folder / "fifo")
    make_device(folder / "device")
    (folder / "link").symlink_to("target.json")
    (folder / "target.json").write_text("{}")
    (folder / "broken-link").symlink_to("nowhere")
    (folder / "folder-link").symlink_to("include")
    here = Path.cwd()
    os.chdir(folder)  # a socket's path may have 107 characters
    try:
        socket.socket(socket.AF_UNIX).bind("socket")
    finally:
        os.chdir(here)


def _cases() -> Iterator[Case]:
    for verb, argv in _VERBS.items():
        for what, (path, words) in _WRONG.items():
            yield Case(
                name=f"{verb}-{what}",
                argv=(*argv, path),
                says=(argv[-1], words),
                prepare=_oddities,
                seconds=15,
            )
        yield Case(name=f"{verb}-no-path", argv=argv, says=(argv[-1], "argument"))
    yield Case(
        name="report-of-a-dry-run", argv=("run", FLOW, "--dry-run", "--report", "include"), says=("folder",)
    )
    yield Case(name="json-report", argv=("run", FLOW, "--json", "--report", "include"), says=("folder",))


CASES: tuple[Case, ...] = tuple(_cases())
