"""Figures: what is nothing, what is dearest, and that a sum is never surer than its parts."""

from __future__ import annotations

import itertools
import random

import pytest

from causeway.core.kernel.estimate import Bound, Estimate, at_least, at_most, exact, largest, total, unknown

NOT_NOTHING = (
    exact(1),
    at_least(0, "it may have read on"),
    at_most(1, "not all was read"),
    unknown("silent"),
)
EACH = (exact(0), exact(7), *NOT_NOTHING, at_least(5, "x"), at_most(9, "x"))


def test_only_exactly_nothing_is_nothing() -> None:
    assert exact(0).is_nothing
    assert at_most(0, "not all was read").is_nothing, "at most nothing is nothing"
    assert [figure for figure in NOT_NOTHING if figure.is_nothing] == []
    assert [figure.exactly for figure in (exact(0), *NOT_NOTHING)] == [0, 1, None, None, None]


@pytest.mark.parametrize("figure", NOT_NOTHING)
def test_beside_nothing_it_doesnt_become_nothing(figure: Estimate) -> None:
    for others in itertools.chain.from_iterable(
        itertools.permutations([figure, exact(0), exact(0)], n) for n in (1, 2, 3)
    ):
        if figure in others:
            assert not total(others).is_nothing, others


def holds(figure: Estimate, true: int) -> bool:
    number = figure.number or 0
    return {
        Bound.EXACT: true == number,
        Bound.AT_LEAST: true >= number,
        Bound.AT_MOST: true <= number,
        Bound.UNKNOWN: True,
    }[figure.bound]


def truths(figure: Estimate) -> list[int]:
    return [true for true in range(12) if holds(figure, true)]


@pytest.mark.parametrize(("one", "other"), list(itertools.product(EACH, EACH)))
def test_what_is_known_of_two_holds_for_whatever_they_are(one: Estimate, other: Estimate) -> None:
    for a, b in itertools.product(truths(one), truths(other)):
        assert holds(total([one, other]), a + b)
        assert holds(largest([one, other]), max(a, b))


def test_the_largest_of_what_isnt_known_isnt_known() -> None:
    assert largest([]) == exact(0)
    assert largest([exact(3), exact(5)]) == exact(5)
    assert largest([exact(5), at_most(3, "x"), exact(4)]) == exact(5)
    assert largest([exact(5), at_least(0, "times don't rise")]) == at_least(5, "times don't rise")
    assert largest([exact(5), unknown("silent"), at_least(9, "x")]) == unknown("silent")


def test_what_is_read_as_nothing_is_nothing() -> None:
    assert str(exact(0)) == "0"
    assert [str(figure) for figure in NOT_NOTHING] == ["1", "unknown", "at most 1", "unknown"]
    assert str(total([unknown("silent"), exact(0)])) == "unknown"
    assert str(at_least(2, "x")) == "at least 2"


def test_the_dearest_comes_first() -> None:
    dear = [unknown("silent"), at_least(9, "x"), at_least(0, "x"), exact(40), at_most(30, "x"), exact(0)]
    assert sorted(random.Random(1).sample(dear, 6), key=lambda figure: figure.dearness) == dear


def test_less_and_more_of_what_is_no_better_known() -> None:
    assert exact(3).or_more("why") == at_least(3, "why")
    assert exact(3).or_less("why") == at_most(3, "why")
    assert at_least(3, "map").or_less("why") == unknown("map")
    assert unknown("map").or_more("why") == unknown("map").or_less("why") == unknown("map")
