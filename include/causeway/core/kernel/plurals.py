"""Numbers in words.

Imports next to nothing: DAG files are parsed with it.
"""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 partition`, `2 partitions`, `1,200 records`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def some(names: Sequence[str], most: int = 5) -> str:
    """The first ones of many, and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def outcome_in_words(outcome: str, parked: int) -> str:
    """A run that leaves partitions standing isn't simply caught up."""
    return f"{outcome} but for {counted(parked, 'parked partition')}" if parked else outcome
