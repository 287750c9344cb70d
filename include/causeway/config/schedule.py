"""When a flow runs: Airflow's presets, or the five fields of a cron line (checked without Airflow)."""

from __future__ import annotations

import re

from causeway.config.refusal import Refusal, suggestion

CONTINUOUS = "@continuous"
PRESETS = frozenset({CONTINUOUS, "@hourly", "@daily", "@weekly", "@monthly", "@yearly"})
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_NO_WORDS: dict[str, int] = {}
_FIELDS = (
    ("minute", 0, 59, _NO_WORDS),
    ("hour", 0, 23, _NO_WORDS),
    ("day of the month", 1, 31, _NO_WORDS),
    ("month", 1, 12, {name: number for number, name in enumerate(_MONTHS, start=1)}),
    ("day of the week", 0, 7, {name: number for number, name in enumerate(_DAYS)}),
)
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
            _check_part(part, name, low, high, words)
    return text


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
    numbers = [_number(text, words) for text in (parts["from"], parts["to"]) if text is not None]
    if any(number is None or not low <= number <= high for number in numbers):
        raise Refusal(f"the {name} must be {low} to {high}, not {part!r}", remedy)
    if numbers != sorted(numbers, key=lambda number: number or 0):
        raise Refusal(f"the {name} must not run backwards, as {part!r} does", remedy)


def _number(text: str, words: dict[str, int]) -> int | None:
    return int(text) if text.isdigit() else words.get(text)
