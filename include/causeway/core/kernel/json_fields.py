"""Fields of records that Causeway keeps as JSON, read strictly."""

from __future__ import annotations


def whole_number(value: object) -> int:
    """:raises ValueError: it is none; a bool is an int to Python, not to us."""
    if type(value) is not int:
        raise ValueError(f"{value!r} isn't a number")
    return value


def list_of(value: object, length: int | None = None) -> list[object]:
    """:raises ValueError: it is none, or not of this length; None: of any."""
    if type(value) is not list or (length is not None and len(value) != length):
        raise ValueError(f"{value!r} isn't a list of {length or 'places'}")
    return value
