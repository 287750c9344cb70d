"""A number of the failover sheet: exact, a bound, or unknown, and then always with the reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Bound(StrEnum):
    EXACT = "exact"
    AT_LEAST = "at least"
    AT_MOST = "at most"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Figure:
    number: int | None
    bound: Bound = Bound.EXACT
    because: str = ""

    def as_dict(self) -> dict[str, object]:
        return {"number": self.number, "bound": str(self.bound), "because": self.because}

    def __str__(self) -> str:
        if self.number is None:
            return "unknown"
        return f"{self.number:,}" if self.bound is Bound.EXACT else f"{self.bound} {self.number:,}"


def exact(number: int) -> Figure:
    return Figure(number)


def at_least(number: int, because: str) -> Figure:
    return Figure(number, Bound.AT_LEAST, because)


def at_most(number: int, because: str) -> Figure:
    """At most nothing is nothing."""
    return Figure(number, Bound.AT_MOST, because) if number else exact(0)


def unknown(because: str) -> Figure:
    return Figure(None, Bound.UNKNOWN, because)


def total(figures: Iterable[Figure]) -> Figure:
    """A sum is as sure as its least sure part; what is unknown makes it a lower bound, or unknown."""
    parts = list(figures)
    known = sum(part.number for part in parts if part.number is not None)
    becauses = {part.bound: part.because for part in reversed(parts) if part.because}
    bounds = {part.bound for part in parts}
    unsure = bounds - {Bound.EXACT}
    if not unsure:
        return exact(known)
    if bounds == {Bound.UNKNOWN}:
        return unknown(becauses[Bound.UNKNOWN])
    if unsure == {Bound.AT_MOST}:
        return at_most(known, becauses[Bound.AT_MOST])
    if Bound.AT_MOST in unsure:
        return unknown("some of it is only known to be at most, some to be at least, a number")
    return at_least(known, becauses.get(Bound.UNKNOWN) or becauses[Bound.AT_LEAST])
