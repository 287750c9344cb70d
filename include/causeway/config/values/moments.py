"""A moment that a person names, perhaps at four in the morning: one instant, or a refusal with its readings.

A zone is needed, as Z, as an offset or as a name of the time zone database; where a clock shows a time
twice, or never, both instants it could mean are shown. Nothing is rounded up: half a millisecond less
means one record read again, half a millisecond more could mean one that nobody reads.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import available_timezones

import pendulum
from pendulum.tz.exceptions import InvalidTimezone, NonExistingTime

from causeway.config.values.refusal import Refusal

_LONGEST = 80
_MOMENT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]"
    r"([0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?)"
    r"(?: *([Zz]|[+-][0-9]{2}:[0-9]{2})| *\[?([A-Za-z][A-Za-z0-9_+/-]*)\]?)?",
    re.ASCII,
)
_NUMBER = re.compile(r"[+-]?[0-9][0-9_]*(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?", re.ASCII)
_UNITS = (("seconds", 1), ("milliseconds", 1_000), ("microseconds", 1_000_000))
_YEAR_10000_SECONDS = 253_402_300_800
_RULE = "must be latest, or a timestamp with its zone (RFC 3339)"
_REMEDY = "write 2026-11-18T04:03:00Z, 2026-11-18T05:03:00+01:00 or 2026-11-18T05:03:00 Europe/Berlin"


class _Clock(NamedTuple):
    """What the text shows, before anybody knows in which zone."""

    wall: datetime
    milliseconds: int


def parse_moment_ms(text: str, *, now_ms: int, local_zone: str = "UTC") -> int:
    """Milliseconds since 1970-01-01T00:00:00Z, not later than now.

    :param local_zone: what a time without a zone may have meant to whoever wrote it here.
    :raises Refusal: no moment, or two; both readings are shown.
    """
    text = text.strip()
    if not text or len(text) > _LONGEST or not text.isascii() or not text.isprintable():
        raise Refusal(f"{_RULE} of at most {_LONGEST} plain characters", _REMEDY)
    if _NUMBER.fullmatch(text):
        raise Refusal("must be a timestamp with a zone; a bare number has no unit", _readings_of_number(text))
    parts = _MOMENT.fullmatch(text)
    if parts is None:
        raise Refusal(_RULE, _REMEDY)
    clock = _clock(parts[1], parts[2])
    if parts[3] is None and parts[4] is None:
        raise Refusal(
            "must name its zone: without one it is another moment on every machine",
            _readings_without_zone(clock, local_zone),
        )
    moment_ms = _with_offset(clock, parts[3].upper()) if parts[3] else _with_zone(clock, parts[4])
    if moment_ms < 0:
        raise Refusal("must not be before 1970, where Kafka's time begins", _REMEDY)
    if moment_ms >= _YEAR_10000_SECONDS * 1000:
        raise Refusal("is in the future, after the year 9999", "write a moment that is over, or latest")
    if moment_ms > now_ms:
        raise Refusal(
            f"is {_moment_text(moment_ms)}, in the future: here it is {_moment_text(now_ms)} now",
            "write a moment that is over, or latest",
        )
    return moment_ms


def _clock(day: str, time: str) -> _Clock:
    whole, _, fraction = time.partition(".")
    whole = whole if whole.count(":") == 2 else f"{whole}:00"
    if whole.endswith(":60"):
        raise Refusal(
            "is a leap second, and Kafka's time has none",
            f"write {day}T{whole[:-2]}59Z, or the second after it",
        )
    try:
        wall = datetime.fromisoformat(f"{day}T{whole}")
    except ValueError as reason:
        raise Refusal(f"is no moment of the calendar: {reason}", _REMEDY) from None
    return _Clock(wall, int((fraction + "000")[:3]))


def _with_offset(clock: _Clock, offset: str) -> int:
    hours, minutes = (0, 0) if offset == "Z" else (int(offset[1:3]), int(offset[4:]))
    if hours > 14 or minutes > 59:
        raise Refusal(f"has an offset that no zone has: {offset}", _REMEDY)
    ahead = timedelta(hours=hours, minutes=minutes) * (-1 if offset[0] == "-" else 1)
    return _milliseconds(clock, ahead)


def _with_zone(clock: _Clock, name: str) -> int:
    if "/" not in name and name != "UTC":
        raise Refusal(f"has the zone {name}: short names mean different zones in different places", _REMEDY)
    try:
        zone = pendulum.timezone(name)
    except (InvalidTimezone, ValueError, OSError):  # OSError: a folder of the database
        raise Refusal(
            f"has the zone {name}, which the time zone database doesn't know", _zones_below(name)
        ) from None
    try:
        earlier, later = (clock.wall.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1))
    except OverflowError:
        raise Refusal("must lie between the years 1 and 9999 in its zone and in UTC", _REMEDY) from None
    assert earlier is not None
    assert later is not None
    if earlier == later:
        return _milliseconds(clock, earlier)
    readings = sorted(_milliseconds(clock, ahead) for ahead in (earlier, later))
    both = " or ".join(map(_moment_text, readings))
    try:
        zone.convert(clock.wall, raise_on_unknown_times=True)
    except NonExistingTime:
        rule = f"never was in {name}: its clocks went forward over it"
    except ValueError:
        rule = f"was twice in {name}: its clocks went back over it"
    raise Refusal(rule, f"write {both}")


def _zones_below(folder: str) -> str:
    """A region's name is the beginning of a zone's."""
    below = sorted(zone for zone in available_timezones() if zone.startswith(f"{folder}/"))
    return f"write one of its zones, as in {below[0]}" if below else _REMEDY


def _milliseconds(clock: _Clock, ahead: timedelta) -> int:
    since = clock.wall - datetime(1970, 1, 1) - ahead  # noqa: DTZ001 - both without a zone, on purpose
    return (since // timedelta(seconds=1)) * 1000 + clock.milliseconds


def _readings_of_number(text: str) -> str:
    """The moments that a bare number may mean."""
    try:
        number = float(text.replace("_", ""))
    except ValueError:
        return _REMEDY
    readings = [
        f"{_moment_text(int(number / per_second) * 1000)} if these are {unit}"
        for unit, per_second in _UNITS
        if 0 <= number / per_second < _YEAR_10000_SECONDS
    ]
    return f"write {' or '.join(readings)}" if readings else _REMEDY


def _readings_without_zone(clock: _Clock, local_zone: str) -> str:
    as_utc = f"{_moment_text(_milliseconds(clock, timedelta(0)))} if it is UTC"
    ahead = clock.wall.replace(tzinfo=pendulum.timezone(local_zone)).utcoffset() or timedelta(0)
    if not ahead:
        return f"write {as_utc}, or add the zone that it was read in, as in +01:00 or Europe/Berlin"
    return f"write {as_utc}, or {_moment_text(_milliseconds(clock, ahead))} if it is {local_zone}"


def _moment_text(time_ms: int) -> str:
    moment = datetime.fromtimestamp(time_ms // 1000, UTC)
    rest = time_ms % 1000
    return f"{moment:%Y-%m-%dT%H:%M:%S}{f'.{rest:03}' if rest else ''}Z"
