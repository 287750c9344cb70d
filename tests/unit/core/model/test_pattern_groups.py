"""Groups hold what Python's `re` says they hold, and finding out can't hang."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from causeway.core.model.pattern_groups import Capturer
from causeway.core.model.pattern_syntax import PatternError

PARTS = st.sampled_from(
    [
        *("a", "b", "-", ".", "(.*)", "(.*?)", "(a+)", "(a+?)", "(a|ab)", "(ab|a)(b?)"),
        *("([ab])", "(?:a|b)*", "(a){2}", "(a|b){0,2}", "((a)(b))?", "(-?)"),
    ]
)
PATTERNS = st.lists(PARTS, min_size=1, max_size=5).map("".join)


@given(PATTERNS, st.text("ab-", max_size=9))
@example("(.*)-(.*)", "a-b-a")
@example("(.*?)-(.*)", "a-b-a")
@example("(a|ab)(b?)", "ab")
def test_groups_hold_what_re_says(pattern: str, name: str) -> None:
    found = re.fullmatch(pattern, name)
    expected = None if found is None else (name, *((group or "") for group in found.groups()))
    assert Capturer(pattern).groups_of(name) == expected


@pytest.mark.parametrize("pattern", ["(a+)+x", "(a*)*x", "(a|a)*x", "((a|aa)+)+x", "(.*)(.*)(.*)(.*)(.*)x"])
def test_no_expression_hangs(pattern: str) -> None:
    """A backtracking matcher would need longer than there is."""
    assert Capturer(pattern).groups_of("a" * 249) is None
    assert Capturer(pattern).groups_of("a" * 248 + "x") is not None


@pytest.mark.parametrize(
    "pattern", ["(a){2000}", "((?:){9999}){9999}", "(?:(?:){9999}){9999}", "(", "a(?=b)"]
)
def test_what_is_too_big_or_not_accepted_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        Capturer(pattern)
