"""Durations, sizes and moments as people write them, as numbers with the unit in the name.

Strict on purpose: `10mb` could be megabytes, mebibytes or megabits, `5` could be seconds or minutes,
a time without a zone is two moments. Each refusal says what to write instead.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta

from causeway.config.values.refusal import Refusal

_DURATION_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SIZE_BYTES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_NUMBER_AND_UNIT = re.compile(r"([0-9]{1,12})([A-Za-z]+)", re.ASCII)
_YEAR_10000_SECONDS = 253_402_300_800
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_LARGEST_ZONE_HOURS = 14
_AHEAD_SECONDS = 86_400.0
"""A clock may be wrong, and a file written the day before."""
_RFC_3339 = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]"
    r"([0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?)"
    r"([Zz]|[+-][0-9]{2}:[0-9]{2})?",
    re.ASCII,
)


def parse_duration_seconds(text: object) -> float:
    return _quantity(
        text, _DURATION_SECONDS, "a duration: a whole number and ms, s, m, h or d", "write 30s or 10m"
    )


def parse_size_bytes(text: object) -> int:
    return int(_quantity(text, _SIZE_BYTES, "a size: a whole number and B, KiB, MiB or GiB", "write 16MiB"))


def _quantity(text: object, units: dict[str, float] | dict[str, int], rule: str, remedy: str) -> float:
    parts = _NUMBER_AND_UNIT.fullmatch(text) if isinstance(text, str) else None
    if parts is None:
        raise Refusal(f"must be {rule}", remedy)
    number, unit = int(parts[1]), parts[2]
    if unit not in units:
        nearest = [known for known in units if known.lower()[0] == unit.lower()[0]]
        raise Refusal(
            f"must be {rule}; {unit!r} isn't one of these units",
            f"write {number}{nearest[0]}" if nearest else remedy,
        )
    return number * units[unit]


def parse_instant_ms(text: str) -> int:
    """An RFC 3339 timestamp with its zone, as milliseconds since 1970-01-01T00:00:00Z."""
    if text.isascii() and text.isdigit():
        raise Refusal("must be a timestamp with a zone; bare digits are ambiguous", _readings_of_digits(text))
    parts = _RFC_3339.fullmatch(text)
    if parts is None:
        raise Refusal(
            "must be earliest, latest or a timestamp with a zone (RFC 3339)", "write 2026-01-31T12:00:00Z"
        )
    day, clock, zone = parts[1], parts[2], parts[3]
    if zone is None:
        raise Refusal(
            "must name its zone: without one it is another moment on every machine",
            f"write {day}T{clock}Z if it is UTC, or {day}T{clock}+02:00 if its clock is two hours ahead",
        )
    return _milliseconds(day, clock, zone.upper())


def _milliseconds(day: str, clock: str, zone: str) -> int:
    whole, _, fraction = clock.partition(".")
    if zone != "Z" and (int(zone[1:3]) > _LARGEST_ZONE_HOURS or int(zone[4:]) > 59):
        raise Refusal(f"has an offset that no zone has: {zone}", "write 2026-01-31T12:00:00Z")
    try:
        moment = datetime.fromisoformat(f"{day}T{whole}{zone}")
    except ValueError as reason:
        raise Refusal(f"is no moment of the calendar: {reason}", "write 2026-01-31T12:00:00Z") from None
    milliseconds = (moment - _EPOCH) // _MILLISECOND + int((fraction + "000")[:3])
    if milliseconds < 0:
        raise Refusal("must not be before 1970, where Kafka's time begins", "write earliest")
    if milliseconds > (time.time() + _AHEAD_SECONDS) * 1000:
        raise Refusal(
            "is in the future, and no record is of that time yet",
            "write latest (what is written from the first run on), or a moment that is over",
        )
    return milliseconds


def _readings_of_digits(digits: str) -> str:
    """The moments that a bare number may mean: seconds, milliseconds, microseconds."""
    readings = []
    for unit, per_second in (("seconds", 1), ("milliseconds", 1_000), ("microseconds", 1_000_000)):
        seconds = int(digits[:20]) // per_second
        if seconds < _YEAR_10000_SECONDS:
            moment = datetime.fromtimestamp(seconds, tz=UTC)
            readings.append(f"{moment:%Y-%m-%dT%H:%M:%SZ} if these are {unit}")
    return "write " + " or ".join(readings) if readings else "write 2026-01-31T12:00:00Z"
