"""docs/command-line.md: each verb of `causeway` from its parser and from cli/verb_texts.py."""

from __future__ import annotations

from argparse import Action, ArgumentParser, _SubParsersAction
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from causeway.cli.exit_codes import EXIT_CODES
from causeway.cli.parser import parser
from causeway.cli.verb_texts import VERB_TEXTS
from tests.golden.markdown import fenced, head, joined, link, table

GROUPS: Mapping[str, tuple[str, ...]] = {
    "Look": ("status", "next", "plan", "verify", "doctor", "flows"),
    "Run": ("run", "fence", "lift"),
    "Repair": ("accept-gap", "restart-topic", "reconcile", "adopt", "recover"),
    "Failover": ("failover", "failback", "drill"),
    "Offsets": ("translate", "groups"),
    "Upkeep": ("drift", "sync", "maintain", "heartbeat", "upstreams"),
    "MirrorMaker 2": ("import-mm2",),
    "Lab": ("lab up", "lab status", "lab down"),
}
"""The verbs, as an operator looks for them. Each verb is in one group."""

_ABOUT: Mapping[str, str] = {
    "Repair": "Run these commands as `status`, `doctor` or a run prints them. All of them may be repeated.",
    "Failover": "The [runbook](runbook.md) has the decision, and a page for each command, step by step.",
    "Offsets": "They use the [offset map](offset-map.md).",
    "MirrorMaker 2": "[Taking over from MirrorMaker 2](migrate-from-mirrormaker2.md) explains both steps.",
    "Lab": "`causeway lab` starts real Kafka clusters on this machine, for trials.",
}
_COMMON = frozenset({"--file", "--json", "--verbose", "--help"})


@dataclass(frozen=True, slots=True)
class Verb:
    name: str
    """The words that follow `causeway`."""
    summary: str
    parser: ArgumentParser


def page() -> str:
    verbs = all_verbs()
    parts = []
    for group, names in GROUPS.items():
        parts += [f"## {group}", _ABOUT.get(group, ""), *(_section(verbs[name]) for name in names)]
    return joined(
        head("Command line", "the parser of `causeway` (include/causeway/cli)"),
        "`causeway VERB --help` prints the same.",
        _contents(verbs),
        _common(),
        *parts,
    )


@cache
def all_verbs() -> dict[str, Verb]:
    """Those that do something: `lab` alone only leads to three others."""
    return {verb.name: verb for verb in _verbs_below(parser())}


def _verbs_below(above: ArgumentParser) -> Iterator[Verb]:
    for action in above._actions:
        if not isinstance(action, _SubParsersAction):
            continue
        for choice in action._choices_actions:
            found = action.choices[choice.dest]
            below = list(_verbs_below(found))
            yield from below or [Verb(found.prog.removeprefix("causeway "), choice.help or "", found)]


def _contents(verbs: Mapping[str, Verb]) -> str:
    rows = [
        (group if name == names[0] else "", link(f"`{name}`", f"causeway {name}"), verbs[name].summary)
        for group, names in GROUPS.items()
        for name in names
    ]
    return table(("", "verb", "what it does"), rows)


def _common() -> str:
    root = parser()
    rows = [_row(action) for action in root._actions if not isinstance(action, _SubParsersAction)]
    return joined(
        "## Every verb",
        "These options stand before or after any verb:",
        table(("option", "meaning"), rows),
        "The answer goes to standard output. Progress, notes and errors go to standard error. "
        "With `--json` an error is one JSON object on standard output.",
        "Ctrl-C and SIGTERM end a command at any moment. The last line says what was done, and which command "
        "continues.",
        table(("exit code", "meaning"), [(str(code), each.means) for code, each in EXIT_CODES.items()]),
        "[Exit codes](reference/exit-codes.md) says what to do then.",
        "[Configuration](configuration.md) explains flows.yaml, and how a command finds the clusters.",
    )


def _section(verb: Verb) -> str:
    text = VERB_TEXTS[verb.name]
    rows = [_row(action) for action in _own_actions(verb.parser)]
    codes = [f"- {code}: {means}" for code, means in text.exit_codes.items()]
    return joined(
        f"### causeway {verb.name}",
        f"**{text.danger}**" if text.danger else "",
        f"{verb.summary[0].upper()}{verb.summary[1:]}. {text.purpose}",
        text.notes,
        fenced(usage(verb.parser)),
        table(("argument", "meaning"), rows) if rows else "",
        "Exit codes of its own:\n\n" + "\n".join(codes) if codes else "",
        f"Example: `{text.example}`",
    )


def usage(verb: ArgumentParser) -> str:
    """Not argparse's own: that depends on the terminal and on the version of Python."""
    own = _own_actions(verb)
    words = [_place(action) for action in own if not action.option_strings]
    grouped: set[int] = set()
    for group in verb._mutually_exclusive_groups:
        grouped |= {id(action) for action in group._group_actions}
        either = " | ".join(_option(action) for action in group._group_actions)
        words.append(f"({either})" if group.required else f"[{either}]")
    words += [
        _option(action) if action.required else f"[{_option(action)}]"
        for action in own
        if action.option_strings and id(action) not in grouped
    ]
    return "\n".join(_wrapped(verb.prog, words))


def _wrapped(first: str, words: list[str]) -> Iterator[str]:
    line = first
    for word in words:
        if len(line) + len(word) >= 100:
            yield line
            line = " " * len(first)
        line += f" {word}"
    yield line


def _own_actions(verb: ArgumentParser) -> list[Action]:
    return [action for action in verb._actions if not _COMMON.intersection(action.option_strings)]


def _place(action: Action) -> str:
    name = str(action.metavar or action.dest)
    return {"?": f"[{name}]", "*": f"[{name} ...]"}.get(str(action.nargs), name)


def _option(action: Action) -> str:
    return f"{action.option_strings[-1]}{_value(action)}"


def _value(action: Action) -> str:
    if action.nargs == 0:
        return ""
    if action.metavar is None and action.choices:
        return f" {{{','.join(map(str, action.choices))}}}"
    name = str(action.metavar or action.dest.upper())
    return f" {name} [{name} ...]" if action.nargs == "+" else f" {name}"


def _row(action: Action) -> tuple[str, str]:
    words = action.option_strings or [_place(action)]
    return ", ".join(f"`{word}{_value(action) if action.option_strings else ''}`" for word in words), help_of(
        action
    )


def help_of(action: Action) -> str:
    """argparse's own words for its own options."""
    own = {"-h": "print the help of the verb", "--version": "print the version"}
    return own.get(action.option_strings[0] if action.option_strings else "", "") or action.help or ""
