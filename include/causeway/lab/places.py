"""Where the lab keeps its things, and how it writes them: whole or not at all.

    <project root>/.causeway/
        jars/kafka-4.3.1/     a set of jars: here the broker's
        ivy/                  what Ivy downloaded, shared by all sets
        lab/                  the clusters of `causeway lab up`, their state and connections

The only reader of the environment in the lab.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from causeway.lab.errors import LabTrouble

HOME_VARIABLE = "CAUSEWAY_HOME"
Say = Callable[[str], None]


def project_root(given: Path | None = None) -> Path:
    """What holds `.causeway`: as given, else CAUSEWAY_HOME, else the project that this package lives in."""
    if given is not None:
        return given.absolute()
    named = os.environ.get(HOME_VARIABLE)
    return Path(named).absolute() if named else Path(__file__).resolve().parents[3]


def jars_directory(root: Path, name: str) -> Path:
    """Where a set of jars is, by its name in `jars.MODULES`."""
    return root / ".causeway" / "jars" / name


def class_archive(jars: Path) -> Path:
    """Where Java's archive of a set's classes is, if one was made: beside the set, one for each Java."""
    java = Path(java_executable()).resolve()
    kind = hashlib.sha256(f"{java} {java.stat().st_mtime_ns}".encode()).hexdigest()[:12]
    return jars.with_name(f".{jars.name}.{kind}.jsa")


def lab_directory(root: Path) -> Path:
    return root / ".causeway" / "lab"


def java_executable() -> str:
    """JAVA_HOME's java, else the one on the PATH."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    if found is None:
        raise LabTrouble(
            "java",
            value=home and f"JAVA_HOME={home}",
            rule="the lab's brokers need Java 17 or newer",
            remedy="install a JRE, or point JAVA_HOME at one",
        )
    return found


def write_whole(path: Path, text: str, *, mode: int = 0o644) -> None:
    """Replace a file in one step: readers see the old text or the new one; nobody has more than `mode`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        os.fchmod(descriptor, mode)
        stream.write(text)
    draft.replace(path)


@contextmanager
def exclusive(lock_path: Path, *, waiting: Callable[[], None]) -> Iterator[None]:
    """One process at a time; `waiting` is called once if another is inside. It ends with its holder."""
    lock_path.parent.mkdir(parents=True, exist_ok=True)
    with lock_path.open("a") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield
