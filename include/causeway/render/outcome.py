"""What a command shows: a payload for machines, text for people, and the exit code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass


PARKED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`payload` is what --json prints, `text` what people read."""

    payload: Mapping[str, object]
    text: str
    exit_code: int = 0
