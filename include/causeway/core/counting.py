"""Numbers with their nouns."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 partition`, `2 partitions`, `1,200 records`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
