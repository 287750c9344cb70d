"""What scripts and habits rest on: each verb of the command line with its options.

    python -m tests.golden.surface        writes tests/golden/surface/options.json from this tree

A renovation changes nothing there. Who adds an option on purpose writes it again, and the diff says which.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, _SubParsersAction
from pathlib import Path

from causeway.entrypoints.cli import parser

OPTIONS = Path(__file__).parent / "surface" / "options.json"

Options = dict[str, dict[str, list[str] | str]]
"""By verb; each option with its choices, or with how many values it takes."""


def options_of_all_verbs() -> Options:
    found: Options = {}
    _collect("causeway", parser(), found)
    return found


def _collect(name: str, verb: ArgumentParser, found: Options) -> None:
    found[name] = {}
    for action in verb._actions:
        if isinstance(action, _SubParsersAction):
            for word, below in action.choices.items():
                _collect(f"{name} {word}", below, found)
            continue
        words = ", ".join(action.option_strings) or action.dest
        takes = "one value" if action.nargs is None else f"values: {action.nargs}"
        found[name][words] = sorted(map(str, action.choices)) if action.choices else takes


def recorded() -> Options:
    found: Options = json.loads(OPTIONS.read_text(encoding="utf-8"))
    return found


def main() -> None:
    OPTIONS.parent.mkdir(exist_ok=True)
    OPTIONS.write_text(json.dumps(options_of_all_verbs(), indent=1) + "\n", encoding="utf-8")
    print(f"written: {OPTIONS}")


if __name__ == "__main__":
    main()
