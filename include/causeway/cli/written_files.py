"""Files that a verb writes because a person has named them: all of them or none, and never half of one.

What is already there must be a regular file. Each text is first written, whole and to the disk, to a draft
beside its file, and what is there gets a second name; only then do the drafts take their names. If one can't,
those that have taken theirs give them back. Ctrl-C waits for all of it.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from causeway import interruption
from causeway.core.kernel.errors import ConfigError


@dataclass(frozen=True, slots=True)
class NewFile:
    path: Path
    text: str
    mode: int
    """Nobody has more than that, not even for a moment."""


def check_places(files: Mapping[str, Path], *, may_replace: bool, inputs: Mapping[str, Path]) -> None:
    """Before anything is written. Both mappings go by what people call the file: an option.

    :raises ConfigError: two of them are one file, or something is there that mustn't be replaced.
    """
    taken = {Path(os.path.realpath(path)): word for word, path in inputs.items()}
    for word, path in files.items():
        place = f"{word} = {path}"
        found = _kind(path, place)
        other = taken.setdefault(Path(os.path.realpath(path)), word)
        if other != word:
            raise ConfigError(place, rule=f"is the file of {other} too", remedy="name another file")
        if found is not None and not stat.S_ISREG(found):
            raise ConfigError(place, rule="is there, and isn't a regular file", remedy="name another file")
        if found is not None and not may_replace:
            raise ConfigError(place, rule="is there already", remedy="add --overwrite, or name another file")


def write_all(files: Sequence[NewFile]) -> None:
    """:raises ConfigError: one can't be written; then none is, or it names what couldn't be put back."""
    staged = [_Staged.of(file) for file in files]
    with interruption.whole():
        try:
            for each in staged:
                each.write_draft()
            _take_names(staged)
        finally:  # no draft with secrets stays, whatever happened
            for each in staged:
                each.forget()


@dataclass(slots=True)
class _Staged:
    """A file on its way; `old` is a second name of what was there."""

    file: NewFile
    path: Path
    draft: Path
    old: Path
    was_there: bool = False
    has_its_name: bool = False
    is_stuck: bool = False
    """It can't be put back."""

    @classmethod
    def of(cls, file: NewFile) -> _Staged:
        path = file.path.resolve()  # through a link, which stays one
        draft, old = (path.with_name(f".{path.name}.{os.getpid()}.{end}") for end in ("new", "old"))
        return cls(file, path, draft, old)

    def write_draft(self) -> None:
        with _errors_named(self.file.path):
            self.draft.parent.mkdir(parents=True, exist_ok=True)
            self.draft.unlink(missing_ok=True)
            descriptor = os.open(self.draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, self.file.mode)
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                stream.write(self.file.text)
                stream.flush()
                os.fsync(descriptor)
            self._keep_old()

    def _keep_old(self) -> None:
        self.old.unlink(missing_ok=True)
        try:
            os.link(self.path, self.old)
        except FileNotFoundError:
            return
        except OSError:  # a file system without links
            shutil.copy2(self.path, self.old)
        self.was_there = True

    def take_name(self) -> None:
        with _errors_named(self.file.path):
            self.draft.replace(self.path)
        self.has_its_name = True

    def give_name_back(self) -> None:
        if not self.has_its_name:
            return
        try:
            if self.was_there:
                self.old.replace(self.path)
            else:
                self.path.unlink()
        except OSError:
            self.is_stuck = True

    def forget(self) -> None:
        for path in (self.draft,) if self.is_stuck else (self.draft, self.old):
            with suppress(OSError):
                path.unlink(missing_ok=True)

    @property
    def way_back(self) -> str:
        what_it_was = f"what it was is in {self.old}" if self.was_there else "delete it"
        return f"{self.file.path} is the new one; {what_it_was}"


def _take_names(staged: Sequence[_Staged]) -> None:
    try:
        for each in staged:
            each.take_name()
    except BaseException as trouble:  # Ctrl-C too, where nobody listens to it
        for each in staged:
            each.give_name_back()
        ways_back = [each.way_back for each in staged if each.is_stuck]
        if ways_back and isinstance(trouble, ConfigError):
            raise ConfigError(trouble.what, rule=trouble.rule, remedy="; ".join(ways_back)) from trouble
        raise


@contextmanager
def _errors_named(path: Path) -> Iterator[None]:
    """Errors of the file system, with the name that the person wrote."""
    try:
        yield
    except OSError as reason:
        rule = f"can't be written: {reason.strerror}"
        raise ConfigError(str(path), rule=rule, remedy="name another; nothing was written") from reason


def _kind(path: Path, place: str) -> int | None:
    """What is there, links followed; None: nothing."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as reason:
        rule = f"can't be written: {getattr(reason, 'strerror', None) or 'it is no path'}"
        raise ConfigError(place, rule=rule, remedy="name another file") from reason
