"""Plain English in code: no message, docstring or name of a test has a short word in an uncommon sense."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator

import pytest

from tests.architecture.prose import BANNED, banned_words
from tests.architecture.tree import modules, named, parsed

STORED = {
    ("begun anew", "cli/commands/repair.py"): "what `restart-topic --json` says of `how`",
    ("begun anew", "usecases/repair/restart_topic.py"): "the same",
    ("behind", "core/verify/map_comparison.py"): "a count",
    ("behind", "render/verify.py"): "a key of `verify --json`",
    ("BEHIND", "render/verify.py"): "the column of that key",
    ("coming home", "core/episode/stage.py"): "a stage of `next --json`",
    ("COPIED ANEW", "render/failback_text.py"): "a column of a rebuild's price",
    ("GONE FOR GOOD", "render/failback_text.py"): "a column of it, and the line of the same number",
    ("cut from the source behind the mirror's back", "core/state/gaps.py"): "a kind of gap, kept in a record",
    (
        "the target's index pointed at the end of a transaction, and too much lies behind it to be read",
        "core/failover/start_offset.py",
    ): "a reason of a start offset, in JSON of a sheet",
    ("was made anew on the source", "usecases/failover/moment.py"): "the hash of a failover's plan has it",
}
"""What machines read, what clusters hold, and names of columns: these words stay as they are."""
MIRROR_MAKERS = "test_offset_translation_behind_replication_flow"
"""A scenario under MirrorMaker 2's own name of it."""
PACKAGE = "include/causeway/"
_BANNED = {name: re.compile(rf"\b{pattern}\b", re.IGNORECASE) for name, pattern in BANNED.items()}


def literals(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Texts, with those between the braces of an f-string; docstrings apart."""
    documents = {id(node.value) for node in ast.walk(module) if isinstance(node, ast.Expr)}
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents:
            yield node.lineno, node.value


def banned_in(text: str) -> list[str]:
    return [name for name, pattern in _BANNED.items() if pattern.search(text)]


def found_in(module: ast.Module, name: str = "") -> list[tuple[int, str]]:
    return [
        (line, word)
        for line, text in literals(module)
        if (text.strip(), name) not in STORED
        for word in banned_in(text)
    ]


def test_no_message_has_a_word_in_an_uncommon_sense() -> None:
    found = [
        f"{named(path)}:{line}: {word}"
        for path in modules(PACKAGE, "dags", "plugins", "spark_jobs")
        for line, word in found_in(parsed(path), named(path).removeprefix(PACKAGE))
    ]
    assert found == []


def test_what_is_stored_is_still_in_use() -> None:
    used = {
        (text.strip(), named(path).removeprefix(PACKAGE))
        for path in modules(PACKAGE)
        for _, text in literals(parsed(path))
    }
    assert set(STORED) - used == set()


def docstrings(module: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(module):
        match node:
            case ast.Expr(value=ast.Constant(value=str() as text)):
                yield node.lineno, text


def test_no_docstring_has_one() -> None:
    found = [
        f"{named(path)}:{line}: {word}"
        for path in modules(PACKAGE, "dags", "plugins", "spark_jobs")
        for line, text in docstrings(parsed(path))
        for word in banned_words(inspect.cleandoc(text))
    ]
    assert found == []


def banned_in_name(name: str) -> list[str]:
    return banned_in(name.replace("_", " "))


def test_no_name_of_a_test_has_one() -> None:
    names = {
        node.name
        for path in modules("tests")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }
    assert {name for name in names if banned_in_name(name)} == {MIRROR_MAKERS}


def test_one_would_be_found_there() -> None:
    (text,) = docstrings(ast.parse("'The offset behind the fence, `behind` apart.'"))
    assert banned_words(text[1]) == ["line 1: behind"]
    assert banned_in_name("test_a_topic_that_was_made_anew") == ["anew"]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("f'offset {at}, behind the fence'", ["behind"]),
        ("raise BadInput('topic', rule='was made '\n 'anew')", ["anew"]),
        ("say('groups went home')", ["go home"]),
        ("say(f'{flow} leads {target} back')", []),
        ("def said():\n    '''Behind the fence.'''", []),
        ("key = 'behind'", ["behind"]),
    ],
)
def test_a_banned_word_would_be_found(code: str, words: list[str]) -> None:
    assert [word for _, word in found_in(ast.parse(code))] == words
