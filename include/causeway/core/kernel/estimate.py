"""A number of the failover sheet: exact, a bound, or unknown, and then always with the reason.

Nobody else reads `number`: an unknown has none, and the 0 of "at least 0" isn't nothing. Who decides asks
`is_nothing`, who keeps a number asks `exactly`, who sorts asks `dearness`.
"""

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
class Estimate:
    number: int | None
    bound: Bound = Bound.EXACT
    because: str = ""

    @property
    def is_nothing(self) -> bool:
        """Exactly 0. A bound of 0, or what isn't known, may be anything."""
        return self.exactly == 0

    @property
    def exactly(self) -> int | None:
        """None: it isn't known so well."""
        return self.number if self.bound is Bound.EXACT else None

    @property
    def dearness(self) -> tuple[int, int]:
        """Sorts the dearest first: what isn't known, then what has no upper limit, then by number."""
        limits = {Bound.UNKNOWN: 0, Bound.AT_LEAST: 1}
        return limits.get(self.bound, 2), -(self.number or 0)

    def or_more(self, because: str) -> Estimate:
        return self if self.number is None else at_least(self.number, because)

    def or_less(self, because: str) -> Estimate:
        """Of a number that is itself too small nobody can say what it is at most."""
        if self.number is None or self.bound is Bound.AT_LEAST:
            return unknown(self.because)
        return at_most(self.number, because)

    def as_dict(self) -> dict[str, object]:
        return {"number": self.number, "bound": str(self.bound), "because": self.because}

    def __str__(self) -> str:
        """At least nothing is no more than unknown, and mustn't be read as nothing."""
        if self.number is None or (self.bound is Bound.AT_LEAST and not self.number):
            return "unknown"
        return f"{self.number:,}" if self.bound is Bound.EXACT else f"{self.bound} {self.number:,}"


def exact(number: int) -> Estimate:
    return Estimate(number)


def at_least(number: int, because: str) -> Estimate:
    return Estimate(number, Bound.AT_LEAST, because)


def at_most(number: int, because: str) -> Estimate:
    """At most nothing is nothing."""
    return Estimate(number, Bound.AT_MOST, because) if number else exact(0)


def unknown(because: str) -> Estimate:
    return Estimate(None, Bound.UNKNOWN, because)


def total(figures: Iterable[Estimate]) -> Estimate:
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


def largest(figures: Iterable[Estimate]) -> Estimate:
    """One that isn't known, or has no upper limit, could be the largest of them."""
    parts = sorted(figures, key=lambda part: part.dearness)
    if not parts:
        return exact(0)
    first = parts[0]
    if first.bound is not Bound.AT_LEAST:
        return first
    known = [part.number or 0 for part in parts if part.bound is not Bound.AT_MOST]
    return at_least(max(known), first.because)
