"""Instants as people read them: RFC 3339 in UTC, to the second."""

from __future__ import annotations

from datetime import UTC, datetime


def rfc3339(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
