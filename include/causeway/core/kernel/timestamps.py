"""Instants as people read them: RFC 3339 in UTC."""

from __future__ import annotations

from datetime import UTC, datetime


def rfc3339(time_ms: int) -> str:
    """To the second."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_ms(time_ms: int) -> str:
    """To the millisecond, where there is a part of a second: what was typed, not about when it was."""
    rest = time_ms % 1000
    second = rfc3339(time_ms)
    return f"{second[:-1]}.{rest:03}Z" if rest else second


def how_long_ago(then_ms: int, now_ms: int) -> str:
    """`5 h 2 min ago`: in the two largest units that count. A clock that is ahead is reported, not hidden."""
    seconds = (now_ms - then_ms) // 1000
    if seconds < 0:
        return f"{_spelled(-seconds)} ahead of this clock"
    return f"{_spelled(seconds)} ago"


def _spelled(seconds: int) -> str:
    for unit, length, smaller, part in (("d", 86_400, "h", 3_600), ("h", 3_600, "min", 60)):
        if seconds >= length:
            rest = seconds % length // part
            return f"{seconds // length} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{seconds // 60} min" if seconds >= 60 else f"{seconds} s"
