"""When a flow runs: Airflow's presets, or the five fields of a cron line (checked without Airflow)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from causeway.config.values.refusal import Refusal, suggestion

CONTINUOUS = "@continuous"
PRESETS = frozenset({CONTINUOUS, "@hourly", "@daily", "@weekly", "@monthly", "@yearly"})
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_NO_WORDS: dict[str, int] = {}
_DAYS_OF_MONTH = dict(enumerate((31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31), start=1))
_FIELDS: tuple[tuple[str, int, int, dict[str, int]], ...] = (
    ("minute", 0, 59, _NO_WORDS),
    ("hour", 0, 23, _NO_WORDS),
    ("day of the month", 1, 31, _NO_WORDS),
    ("month", 1, 12, {name: number for number, name in enumerate(_MONTHS, start=1)}),
    ("day of the week", 0, 7, {name: number for number, name in enumerate(_DAYS)}),
)
_LONGEST_PART = 40
_PART = re.compile(
    r"(?P<from>\*|[0-9a-z]{1,3})(?:-(?P<to>[0-9a-z]{1,3}))?(?:/(?P<step>[0-9]{1,2}))?", re.ASCII
)


def check_schedule(text: str) -> str:
    if text.startswith("@"):
        if text not in PRESETS:
            raise Refusal("must be a preset or a cron line", suggestion(text, PRESETS))
        return text
    fields = text.lower().split()
    if len(fields) != len(_FIELDS):
        raise Refusal(
            f"a cron line has 5 fields (minute hour day month weekday), this has {len(fields)}",
            'write "*/5 * * * *" for every five minutes, or "@continuous"',
        )
    for field, (name, low, high, words) in zip(fields, _FIELDS, strict=True):
        for part in field.split(","):
            _check_part(part[:_LONGEST_PART], name, low, high, words)
    _check_day_comes(fields[2], fields[3], fields[4])
    return text


def _check_day_comes(days: str, months: str, weekdays: str) -> None:
    """Where weekdays are named too, cron takes either; only a lone * names none, and */2 does."""
    if "*" in weekdays.split(","):
        first = min(_numbers(days, _FIELDS[2]))
        if all(first > _DAYS_OF_MONTH[month] for month in _numbers(months, _FIELDS[3])):
            raise Refusal(
                f"never comes: none of these months has a day {first}",
                f"write {_DAYS_OF_MONTH[min(_numbers(months, _FIELDS[3]))]} or less as the day of the month",
            )


def _numbers(field: str, of: tuple[str, int, int, dict[str, int]]) -> Iterator[int]:
    """What a field that was checked stands for."""
    _, low, high, words = of
    for part in field.split(","):
        parts = _PART.fullmatch(part)
        assert parts is not None
        first = low if parts["from"] == "*" else _cron_number(parts["from"], words)
        last = _cron_number(parts["to"], words) if parts["to"] else first
        if parts["from"] == "*" or (parts["step"] and not parts["to"]):
            last = high
        assert first is not None
        assert last is not None
        yield from range(first, last + 1, int(parts["step"] or 1))


def _check_part(part: str, name: str, low: int, high: int, words: dict[str, int]) -> None:
    remedy = f"write *, */5 or {low}-{high}"
    parts = _PART.fullmatch(part)
    if parts is None:
        raise Refusal(f"the {name} can't be {part!r}", remedy)
    if parts["step"] is not None and not 1 <= int(parts["step"]) <= high:
        raise Refusal(f"the step of the {name} must be 1 to {high}, not {parts['step']}", remedy)
    if parts["from"] == "*":
        if parts["to"] is not None:
            raise Refusal(f"the {name} can't be {part!r}", remedy)
        return
    numbers = [_cron_number(text, words) for text in (parts["from"], parts["to"]) if text is not None]
    if any(number is None or not low <= number <= high for number in numbers):
        raise Refusal(f"the {name} must be {low} to {high}, not {part!r}", remedy)
    if numbers != sorted(numbers, key=lambda number: number or 0):
        raise Refusal(f"the {name} must not run backwards, as {part!r} does", remedy)


def _cron_number(text: str, words: dict[str, int]) -> int | None:
    return int(text) if text.isdigit() else words.get(text)
