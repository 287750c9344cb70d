"""A list of patterns answers as its patterns do one by one, and in time for ten thousands of names."""

from __future__ import annotations

import random
import time

import pytest

from causeway.core.model.pattern import compiled
from causeway.core.model.pattern_list import PatternList, is_name
from causeway.core.model.topic_filter import TopicFilter

NAMES = ("a", "a.b", "a-b", "a_b", "axb", "a..b", "ab", "a.b.c", "axb.c", "aab", "", "a\nb", "é", "a" * 300)
PATTERNS = ("a", "a.b", r"a\.b", "a.b.c", r"a\.b.c", "..", ".", "a+b", ".*", "(a|b)", r"\.\.", "a" * 300, "é")


@pytest.mark.parametrize("seed", range(40))
def test_it_matches_what_one_of_them_matches(seed: int) -> None:
    dice = random.Random(seed)
    patterns = tuple(dice.sample(PATTERNS, dice.randint(0, 4)))
    for name in NAMES:
        expected = any(compiled(pattern).matches(name) for pattern in patterns)
        assert PatternList(patterns).matches(name) == expected, (patterns, name)


@pytest.mark.parametrize("text", ["a", "a.b", r"a\.b", "A-_9"])
def test_a_name_is_a_pattern_that_needs_no_look(text: str) -> None:
    assert is_name(text)
    compiled(text)


@pytest.mark.parametrize("text", ["", "a*", "[a]", "a\\", r"\d", "é", "a b", "a" * 250, r"a\\.b"])
def test_an_expression_is_no_name(text: str) -> None:
    assert not is_name(text)


@pytest.mark.parametrize("separator", [".", "-", r"\."])
def test_ten_thousands_of_names_are_asked_for_quickly(separator: str) -> None:
    topics = TopicFilter(tuple(f"eu{separator}orders{separator}{n}" for n in range(20_000)))
    began = time.process_time()
    name = separator.removeprefix("\\")
    assert all(topics.matches(f"eu{name}orders{name}{n}") for n in range(0, 20_000, 10))
    assert not topics.matches(f"eu{name}orders{name}20000")
    assert time.process_time() - began < 5


def test_equal_filters_are_one_key() -> None:
    one, other = (TopicFilter(("a", "b", "c")) for _ in range(2))
    assert {one: 1}[other] == 1
    assert one != TopicFilter(("a", "x", "c"))
