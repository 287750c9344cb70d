"""A check's outcome in one line, with the remedy; and all of them together.

Invariants
    A. Whatever isn't PASSED has a remedy.
    B. Only FAILED makes the exit code; what couldn't be looked at is a WARN that says so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from causeway.core.kernel.errors import CausewayError, ClusterTrouble

PARKED_EXIT_CODE = 5
_GRAVEST_FIRST = (6, 3, 2, PARKED_EXIT_CODE)
_MOST_NAMES = 3


class Result(StrEnum):
    PASSED = "PASSED"
    WARN = "WARN"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    result: Result
    check: str
    where: str
    """A cluster's alias, or the flow's name."""
    finding: str
    remedy: str = ""
    exit_code: int = 0

    def as_dict(self) -> dict[str, object]:
        return {
            "result": str(self.result),
            "check": self.check,
            "where": self.where,
            "finding": self.finding,
            "remedy": self.remedy,
        }


def passed(check: str, where: str, finding: str) -> Finding:
    return Finding(result=Result.PASSED, check=check, where=where, finding=finding)


def warn(check: str, where: str, finding: str, remedy: str) -> Finding:
    return Finding(result=Result.WARN, check=check, where=where, finding=finding, remedy=remedy)


def failed(
    check: str, where: str, finding: str, remedy: str, kind: type[CausewayError] = ClusterTrouble
) -> Finding:
    return Finding(
        result=Result.FAILED,
        check=check,
        where=where,
        finding=finding,
        remedy=remedy,
        exit_code=kind.exit_code,
    )


def failed_by(check: str, where: str, error: CausewayError) -> Finding:
    """The same words that a run would end with."""
    head = error.what if error.value is None else f"{error.what} = {error.value}"
    finding = f"{head}: {error.rule}" if error.rule else head
    return failed(check, where, finding, error.remedy or "look at the brokers' logs", type(error))


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    flow: str
    findings: tuple[Finding, ...]

    @property
    def exit_code(self) -> int:
        """0: nothing FAILED. Otherwise the gravest: 6 over 3 over 2 (core/kernel/errors.py says what they
        mean), and 5 where nothing else is wrong than that partitions are parked."""
        codes = {each.exit_code for each in self.findings}
        return next((code for code in _GRAVEST_FIRST if code in codes), max(codes, default=0))

    def count(self, result: Result) -> int:
        return sum(each.result is result for each in self.findings)

    def as_dict(self) -> dict[str, object]:
        return {
            "flow": self.flow,
            "healthy": self.exit_code == 0,
            **{str(result).lower(): self.count(result) for result in Result},
            "checks": [each.as_dict() for each in self.findings],
        }


def some(names: Collection[str]) -> str:
    """A few of them, and how many more there are."""
    listed = ", ".join(sorted(names)[:_MOST_NAMES])
    return listed if len(names) <= _MOST_NAMES else f"{listed} and {len(names) - _MOST_NAMES} more"


def together(remedies: Iterable[str]) -> str:
    """Several commands on one line, each once."""
    return "; ".join(dict.fromkeys(remedies))
