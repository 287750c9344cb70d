"""What an install of the wheel has, with some of its extras, and which modules it can import.

    python -m tests.architecture.install [EXTRA ...]

Prints as JSON each module that can't be imported, with the reason. Libraries that pip would not have brought
are refused, however many are installed here.
"""

from __future__ import annotations

import importlib
import json
import sys
import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.metadata import packages_distributions, requires
from pathlib import Path
from types import ModuleType
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "include" / "causeway"
NEEDS_AN_EXTRA = {
    "causeway.airflow.rest": "lab",
    "causeway.airflow.": "airflow",
    "causeway.demo": "lab",
    "causeway.lab": "lab",
    "causeway.spark.copy_job": "spark",
    "causeway.spark.groups_job": "spark",
    "causeway.spark.jvm": "spark",
    "causeway.spark.session": "spark",
}
"""By the beginning of a module's name; the first that fits counts. All other modules need none."""


@cache
def project() -> dict[str, Any]:
    described: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    return described


def requirements(extra: str | None = None) -> list[Requirement]:
    """Of the package itself, or of one of its extras, as they are written: `causeway[...]` is one, too."""
    listed = project()["dependencies"] if extra is None else project()["optional-dependencies"][extra]
    return [Requirement(line) for line in listed]


def brought(asked: Iterable[Requirement]) -> set[str]:
    """The distributions that pip installs for these, with all that they ask for in turn."""
    found: set[tuple[str, str]] = set()
    waiting = [(each, "") for each in asked]
    while waiting:
        requirement, for_extra = waiting.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": for_extra}):
            continue
        name = canonicalize_name(requirement.name)
        for extra in ("", *requirement.extras):
            if (name, extra) in found:
                continue
            found.add((name, extra))
            waiting += [(each, extra) for each in _asked_by(name, extra)]
    return {name for name, _ in found} - {"causeway"}


def _asked_by(name: str, extra: str) -> list[Requirement]:
    if name == "causeway":
        return requirements(extra or None)
    return [Requirement(line) for line in requires(name) or []]


def extra_of(module: str) -> str | None:
    return next((extra for start, extra in NEEDS_AN_EXTRA.items() if module.startswith(start)), None)


def modules() -> list[str]:
    paths = sorted(PACKAGE.rglob("*.py"))
    parts = (path.relative_to(PACKAGE.parent).with_suffix("").parts for path in paths)
    return [".".join(part).removesuffix(".__init__") for part in parts]


class Refusal:
    """A finder that says of each library outside the install that it isn't there."""

    def __init__(self, distributions: set[str]) -> None:
        self.refused = {
            top
            for top, owners in packages_distributions().items()
            if top != "causeway" and not {canonicalize_name(owner) for owner in owners} & distributions
        }

    def find_spec(
        self, name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        top = name.partition(".")[0]
        if top in self.refused:
            raise ModuleNotFoundError(f"No module named {top!r}", name=top)
        return None


def main(extras: Sequence[str]) -> None:
    asked = [*requirements(), *(each for extra in extras for each in requirements(extra))]
    sys.meta_path.insert(0, Refusal(brought(asked)))
    broken: dict[str, str] = {}
    for module in modules():
        if extra_of(module) in (None, *extras):
            try:
                importlib.import_module(module)
            except ImportError as reason:
                broken[module] = str(reason)
    print(json.dumps(broken))


if __name__ == "__main__":
    main(sys.argv[1:])
