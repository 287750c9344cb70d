"""What PyYAML says about a file that isn't YAML, in words that name the key and the fix.

PyYAML speaks of tokens, and quotes what it found there, which may be a secret: only what it says about the
language is repeated. Most often something begins with a character that has a meaning of its own in YAML.
"""

from __future__ import annotations

import re

import yaml

from causeway.config.flows_file.known_words import HIDDEN, shown_key
from causeway.core.kernel.errors import ConfigError

_KEY = re.compile(r"\s*(?:- )?(?P<key>[A-Za-z][A-Za-z0-9._-]*)\s*:(?:\s|$)")
_QUOTED = re.compile(r"(?P<quote>['\"])(?P<text>.*?)(?P=quote)")
_BEGINS = re.compile(r"(?P<first>[*@`%&!|>])")
_EXAMPLES = {
    "schedule": 'schedule: "@daily" or schedule: "*/5 * * * *"',
    "topics": 'topics: [".*\\.orders"]',
}
_GLOB = 'a pattern that begins with * too: a glob like *.orders is written ".*\\.orders"'


def not_yaml(reason: yaml.MarkedYAMLError, text: str, name: str) -> ConfigError:
    mark = reason.problem_mark or reason.context_mark
    problem = _QUOTED.sub(_token_shown, str(reason.problem or "parsing fails"))
    if mark is None:
        return ConfigError(name, rule=f"isn't YAML: {problem}", remedy="see the lines above it")
    lines = text.splitlines()
    line = lines[mark.line] if mark.line < len(lines) else ""
    key, place = _key_of(line), f"{name}:{mark.line + 1}"
    return ConfigError(
        f"{place}: {key}" if key else place,
        rule=f"isn't YAML: {problem} (column {mark.column + 1})",
        remedy=_remedy(problem, line, mark.column, key),
    )


def _token_shown(quoted: re.Match[str]) -> str:
    """A character, or a token of the language such as '<stream end>'."""
    text = quoted["text"]
    return quoted[0] if len(text) <= 1 or text.startswith("<") else HIDDEN


def _key_of(line: str) -> str:
    found = _KEY.match(line)
    key = shown_key(found["key"]) if found else ""
    return "" if key == HIDDEN else key


def _remedy(problem: str, line: str, column: int, key: str) -> str:
    around = line[max(column - 1, 0) : column + 1]
    if _BEGINS.search(around) and ("token" in problem or "expected" in problem):
        example = _EXAMPLES.get(key, f'{key}: "..."')
        return f"quote it: {example}" if key else f"quote it, {_GLOB}"
    if "%" in problem or "mapping values" in problem:
        return "quote the text"
    return "see the lines above it"
