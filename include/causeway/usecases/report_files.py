"""Files that somebody asked for by name: reports, pages, plots. Whole or not at all: others wait for them.

A path is asked about before anything runs: only a regular file, or nothing yet, may be there. What is
written takes a device's or a link's place otherwise, and a copy of an hour has no report.
"""

from __future__ import annotations

import json
import os
import stat
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from causeway.core.kernel.errors import BadInput

_PROBE_BYTES = 4096
_ACCESS, _USUAL, _OWNERS = 0o777, 0o666, 0o600
"""Bits of a file's mode: all, a new file's before the umask, its owner's."""
_OTHER_KINDS = (
    (stat.S_ISDIR, "is a folder"),
    (stat.S_ISLNK, "is a link, and what it leads to is another file"),
    (stat.S_ISFIFO, "is a FIFO, and no file"),
    (stat.S_ISSOCK, "is a socket, and no file"),
    (stat.S_ISCHR, "is a device, and no file"),
    (stat.S_ISBLK, "is a device, and no file"),
)


def asked_path(option: str, given: str | None) -> Path | None:
    """The path that an option names, if it can be written now; nothing of it is there afterwards.

    :raises BadInput: something else than a file is there, or it can't be written.
    """
    if given is None:
        return None
    if not given.strip():
        raise BadInput(option, value=given, rule="names no file", remedy="name one, or leave it out")
    if not given.isprintable():
        raise BadInput(
            option, value=given, rule="has a character that can't be printed", remedy="name another file"
        )
    path = Path(given)
    try:
        _refuse_other_kinds(option, given, path)
        _try_out(path)
    except OSError as reason:
        raise _unwritten(option, given, reason, "") from None
    return path


def write_report_file(document: Mapping[str, object], path: Path, option: str = "--report") -> None:
    """:raises BadInput: as `write_file`."""
    write_file(json.dumps(document, indent=1) + "\n", path, option)


def write_file(text: str, path: Path, option: str) -> None:
    """:raises BadInput: it can't be written, or isn't a file any more."""
    try:
        _refuse_other_kinds(option, str(path), path)
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = _draft_in(path.parent)
        try:
            _write_draft(draft, text, path)
            draft.replace(path)
        finally:
            _forget(draft)
        _sync_folder(path.parent)
    except OSError as reason:
        raise _unwritten(option, str(path), reason, "what was done stays done; ") from None


def _write_draft(draft: Path, text: str, path: Path) -> None:
    """To the disk, with the mode of the file whose place it takes: not for a moment may others read more."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode) & _ACCESS
    except FileNotFoundError:
        mode = None
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _USUAL if mode is None else _OWNERS)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        if mode is not None:
            os.fchmod(descriptor, mode)
        os.fsync(descriptor)


def _sync_folder(folder: Path) -> None:
    """So that the name is on the disk, too. Some file systems can't; the file is there all the same."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _refuse_other_kinds(option: str, given: str, path: Path) -> None:
    with suppress(FileNotFoundError):
        mode = path.lstat().st_mode
        rule = next((rule for is_kind, rule in _OTHER_KINDS if is_kind(mode)), None)
        if rule is None and given.endswith("/"):
            rule = "ends as a folder does"
        if rule is not None:
            raise BadInput(option, value=given, rule=rule, remedy="name a file, or one that isn't there yet")
    if given.endswith("/"):
        raise BadInput(option, value=given, rule="ends as a folder does", remedy="name a file in it")


def _try_out(path: Path) -> None:
    """A few bytes, where it or its folders would be made; a folder that isn't there yet isn't made."""
    folder = path.parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    _refuse_long_names(path, folder)
    draft = _draft_in(folder)
    try:
        draft.write_bytes(bytes(_PROBE_BYTES))
    finally:
        _forget(draft)


def _refuse_long_names(path: Path, folder: Path) -> None:
    longest = os.pathconf(folder, "PC_NAME_MAX")
    for name in path.parts:
        if len(os.fsencode(name)) > longest:
            raise OSError(0, f"File name too long: {len(name)} characters")


def _draft_in(folder: Path) -> Path:
    return folder / f".causeway-draft-{os.getpid()}-{uuid.uuid4().hex[:8]}"


def _forget(draft: Path) -> None:
    with suppress(OSError):
        draft.unlink()


def _unwritten(option: str, given: str, reason: OSError, what_stands: str) -> BadInput:
    below_a_file = isinstance(reason, NotADirectoryError)
    why = (
        "part of its path isn't a folder"
        if below_a_file
        else f"can't be written: {reason.strerror or reason}"
    )
    return BadInput(option, value=given, rule=why, remedy=f"{what_stands}name another file")
