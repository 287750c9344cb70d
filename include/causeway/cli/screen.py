"""The boundary to the screen: what is printed, and what becomes of a stream that nobody can read.

Names come from brokers, groups and arguments, and may hold anything: a character that isn't printable is
shown as Python writes it, so that no name colours a terminal, rings its bell or turns its text around.
Progress that can't be written is no reason to stop a copy. An answer that can't be written is.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import TextIO

from causeway.core.kernel.errors import BadInput
from causeway.render.tables import one_line

_STANDARD_STREAMS = 3


def hold_closed_streams() -> None:
    """A closed stream's number goes to nobody, or the next connection would get it, and our words with it."""
    while (number := os.open(os.devnull, os.O_RDWR)) < _STANDARD_STREAMS:
        pass
    os.close(number)


def answer(text: str) -> str:
    """To standard output. :returns: why it couldn't be written; empty: it was, or its reader has gone."""
    try:
        _write_text(sys.stdout, _printable(text))
    except BrokenPipeError:
        # `causeway flows | head -1`: the reader has what it wanted.
        _let_go(sys.stdout)
    except OSError as reason:
        _let_go(sys.stdout)
        return reason.strerror or str(reason)
    return ""


def answer_in_json(payload: Mapping[str, object]) -> str:
    """As `answer`. What isn't printable, or not in the stream's character set, JSON escapes."""
    text = json.dumps(payload, indent=2, ensure_ascii=False)
    fits = _printable(text) == text and _encodable(sys.stdout, text) == text
    return answer(text if fits else json.dumps(payload, indent=2))


def note(text: str) -> None:
    """To standard error. If nobody can read it any more, the work goes on without."""
    try:
        _write_text(sys.stderr, _printable(text))
    except OSError:
        _let_go(sys.stderr)


class Unwritten(BadInput):
    """Nobody can read the answer, nor, in JSON, that it is missing."""


def unwritten(why: str, what_stands: str) -> Unwritten:
    return Unwritten(
        "standard output",
        rule=f"the answer can't be written there: {why}",
        remedy=f"{what_stands}; make room, or let it write elsewhere, and ask again",
    )


def _printable(text: str) -> str:
    return "\n".join(map(one_line, text.split("\n")))


def _write_text(stream: TextIO | None, text: str) -> None:
    if stream is not None:  # None: it was closed when Python began
        print(_encodable(stream, text), file=stream, flush=True)


def _encodable(stream: TextIO | None, text: str) -> str:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _let_go(stream: TextIO) -> None:
    """Python writes what is left in the stream again when it ends, and would complain: to nobody."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
