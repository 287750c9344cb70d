"""What scripts and habits rest on: each verb of the command line with its options, and the keys of its JSON.

    python -m tests.golden.surface        writes tests/golden/surface/*.json from this tree

A renovation changes nothing there. Who adds an option or a key on purpose writes them again.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, _SubParsersAction
from pathlib import Path

from causeway.cli.parser import parser
from tests.golden.json_keys import Keys, keys_of_all_verbs

_FOLDER = Path(__file__).parent / "surface"
OPTIONS, KEYS = _FOLDER / "options.json", _FOLDER / "json.json"

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


def verbs_with_json() -> set[str]:
    return {
        name.removeprefix("causeway ")
        for name, options in options_of_all_verbs().items()
        if "--json" in options
    } - {"causeway"}


def recorded_keys() -> dict[str, Keys]:
    found: dict[str, Keys] = json.loads(KEYS.read_text(encoding="utf-8"))
    return found


def key_differences() -> list[str]:
    """A line for each key that is gone, new or another one."""
    before, now = (_flat(keys) for keys in (recorded_keys(), keys_of_all_verbs()))
    return [
        f"{path}: recorded is {before.get(path)}, now it is {now.get(path)}"
        for path in sorted({*before, *now})
        if before.get(path) != now.get(path)
    ]


def _flat(keys: dict[str, Keys]) -> dict[str, str]:
    return {f"{typed}: {path}": kinds for typed, of_verb in keys.items() for path, kinds in of_verb.items()}


def main() -> None:
    _FOLDER.mkdir(exist_ok=True)
    for place, content in ((OPTIONS, options_of_all_verbs()), (KEYS, keys_of_all_verbs())):
        place.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        print(f"written: {place}")


if __name__ == "__main__":
    main()
