"""All cases: those of each module of this folder that has a `CASES`."""

from __future__ import annotations

import importlib
import pkgutil
import random
from collections import Counter

import tests.proofs.hostile
from tests.proofs.hostile.case import Case

_ALONE_OF_A_SAMPLE = 10
"""A process of its own costs half a second."""


def families() -> dict[str, tuple[Case, ...]]:
    """:raises ValueError: two cases of one name."""
    found = {}
    for module in sorted(each.name for each in pkgutil.iter_modules(tests.proofs.hostile.__path__)):
        if module.startswith("test_") or module in ("tables", "prove", "stage"):
            continue
        cases = getattr(importlib.import_module(f"tests.proofs.hostile.{module}"), "CASES", None)
        if cases is not None:
            found[module] = tuple(cases)
    names = Counter(case.name for cases in found.values() for case in cases)
    if twice := [name for name, times in names.items() if times > 1]:
        raise ValueError(f"two cases of one name: {twice}")
    return found


def sample(size: int, seed: int) -> list[Case]:
    """Some cases of all families: few that start a process of their own, none that starts Spark."""
    dice = random.Random(seed)
    cases = [
        case for family in families().values() for case in family if not (case.is_slow or case.needs_mirror)
    ]
    alone = [case for case in cases if case.runs_alone]
    others = [case for case in cases if not case.runs_alone]
    chosen = dice.sample(alone, min(len(alone), _ALONE_OF_A_SAMPLE))
    return chosen + dice.sample(others, min(len(others), size - len(chosen)))
