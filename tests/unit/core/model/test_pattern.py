"""Patterns mean what they mean to Python's `re`, and can't hang."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from causeway.core.model.pattern import Pattern, compiled
from causeway.core.model.pattern_syntax import PatternError

LETTERS = "ab.-_1"


def _joined(parts: list[str]) -> str:
    return "".join(parts)


ATOMS = st.sampled_from(
    ["a", "b", r"\.", ".", "[ab]", "[^a]", r"[a-b\-_.]", r"\d", r"\W", "-", "1", r"[\w-]", r"[^\d]"]
)
QUANTIFIERS = st.sampled_from(["", "", "*", "+", "?", "{2}", "{1,}", "{0,2}", "{2,3}", "*?", "+?", "??"])


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    group = st.builds(
        lambda kind, body, count: f"{kind}{body}){count}", st.sampled_from(["(", "(?:"]), inner, QUANTIFIERS
    )
    sequence = st.lists(inner, min_size=1, max_size=3).map(_joined)
    choice = st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"({'|'.join(parts)})")
    return group | sequence | choice


PATTERNS = st.recursive(st.builds(str.__add__, ATOMS, QUANTIFIERS), _larger, max_leaves=6)


@given(PATTERNS, st.text(LETTERS, max_size=8))
@example("(a|ab)(c|bcd)*", "ab")
@example("(|a)+b", "aab")
@example("((a*)*)*", "aaa")
@example("(a?){0,2}(ab)?", "aab")
def test_a_pattern_matches_what_re_matches(pattern: str, name: str) -> None:
    assert Pattern(pattern).matches(name) == bool(re.fullmatch(pattern, name, re.ASCII))


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("orders", ["orders"], ["order", "orders2", "my-orders", ""]),
        ("payments-.*", ["payments-", "payments-eu"], ["payments", "xpayments-eu"]),
        (r".*[\-\.]internal", ["a.internal", "-internal"], ["internal", "a.internals"]),
        ("__.*", ["__consumer_offsets"], ["_x", "a__b"]),
        ("^orders$", ["orders"], ["^orders$"]),
        (r"\$x\^", ["$x^"], ["x"]),
        ("[a-z]+(\\.[a-z]+){2}", ["a.b.c"], ["a.b", "a.b.c.d"]),
        ("(a)" * 25, ["a" * 25], ["a" * 24]),
        ("sf|nyc", ["sf", "nyc"], ["sfnyc", "sf|nyc"]),
        ("a||b", ["a", "", "b"], ["ab"]),
        ("[-a]", ["-", "a"], ["b"]),
        ("[a-]", ["-", "a"], ["b"]),
        ("[a^]", ["^", "a"], ["b"]),
        (r"[\]x]", ["]", "x"], ["y"]),
        ("x{0}", [""], ["x"]),
        ("é.", ["éé"], ["e"]),
    ],
)
def test_the_whole_name_must_match(pattern: str, matching: list[str], others: list[str]) -> None:
    assert [name for name in matching + others if compiled(pattern).matches(name)] == matching


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+x",
        "(a*)*x",
        "(a|a)*x",
        "(a|aa)+x",
        "(.*a){20}x",
        ".*.*.*.*.*.*.*.*x",
        "(a?){200}a{200}x",
        "(([a-z])+.)+x",
    ],
)
def test_no_pattern_hangs_on_a_hostile_name(pattern: str) -> None:
    """Each keeps `re` busy for longer than anybody waits; here it is work for milliseconds."""
    code = f"from causeway.core.model.pattern import Pattern; print(Pattern({pattern!r}).matches('a' * 249))"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert answer.stdout.strip() == "False"


def test_what_is_remembered_stays_bounded() -> None:
    pattern = Pattern("(a|b|c)*abc")
    for number in range(30_000):
        pattern.matches(chr(0x4E00 + number) + str(number))
        assert len(pattern._moves) <= 20_000 + 249
    assert pattern.matches("ccabc")


@pytest.mark.parametrize("pattern", ["a{1000}{1000}", "(a{999}){999}", "((){9999}){9999}", "(a{0}){9999}"])
def test_counts_can_not_eat_the_memory(pattern: str) -> None:
    with pytest.raises(PatternError):
        Pattern(pattern)


@given(st.text("ab.*+?()[]{}|\\^$-,0123dw", max_size=12))
def test_any_text_is_refused_as_a_pattern_or_is_one(text: str) -> None:
    """And what we accept means the same to `re`: a pattern can be carried over from elsewhere and back."""
    try:
        pattern = Pattern(text)
    except PatternError:
        return
    for name in ("", "a", "ab", "b1", text):
        assert pattern.matches(name) == bool(re.fullmatch(text, name, re.ASCII)), name
