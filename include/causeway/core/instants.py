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
