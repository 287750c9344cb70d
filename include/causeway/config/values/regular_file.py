"""Reads a file that a person has named, if it is a regular one: a FIFO or a device may never end."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from causeway.core.kernel.errors import ConfigError


def read_regular(path: Path, largest: int, *, shown_as: str, remedy: str) -> bytes:
    """At most `largest` bytes and one more, so that the caller sees that there are more.

    :raises ConfigError: it isn't there, isn't a regular file, or can't be read.
    """
    try:
        # Without waiting: to open a FIFO that nobody writes would take forever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ConfigError(shown_as, rule="isn't a regular file", remedy=remedy)
            return file.read(largest + 1)
    except OSError as reason:
        rule = "isn't a regular file" if isinstance(reason, IsADirectoryError) else _why_unreadable(reason)
        raise ConfigError(shown_as, rule=rule, remedy=remedy) from reason
    except ValueError:  # a null character
        raise ConfigError(shown_as, rule="can't be read: is no path", remedy=remedy) from None


def _why_unreadable(reason: OSError) -> str:
    return f"can't be read: {reason.strerror}"
