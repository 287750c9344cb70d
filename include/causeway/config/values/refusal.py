"""Why a value is refused, before anybody knows which line of which file it came from."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


class Refusal(ValueError):
    """A rule and a fix. Whoever knows the place makes a ConfigError (or, of an option, BadInput)."""

    def __init__(self, rule: str, remedy: str = "") -> None:
        super().__init__(rule)
        self.rule, self.remedy = rule, remedy


MOST_NAMES = 20


def nearest(name: str, known: Iterable[str], *, at_least: float = 0.6) -> str | None:
    """The known name that `name` was probably meant to be."""
    spelled = {each.lower(): each for each in sorted(known)}
    matches = difflib.get_close_matches(name[:100].lower(), spelled, n=1, cutoff=at_least)
    return spelled[matches[0]] if matches else None


def suggestion(name: str, known: Iterable[str], *, most: int = MOST_NAMES) -> str:
    """`did you mean x? known: x, y`."""
    names = sorted(known)
    close = nearest(name, names)
    hint = f"did you mean {close}? " if close else ""
    return f"{hint}known: {listed(names, most)}" if names else f"{hint}none is known"


def listed(names: Sequence[str], most: int = MOST_NAMES) -> str:
    """With commas; of many the first, and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


class KeyRefusal(Refusal):
    """A refusal that knows which key of a connection it is about; `value` only if it may be shown."""

    def __init__(self, key: str, rule: str, remedy: str = "", *, value: str | None = None) -> None:
        super().__init__(rule, remedy)
        self.key, self.value = key, value
