"""Verbs and options are what scripts rest on: none goes, changes or comes without being recorded."""

from __future__ import annotations

from tests.golden.surface import options_of_all_verbs, recorded


def test_each_verb_has_the_options_that_are_recorded() -> None:
    assert options_of_all_verbs() == recorded(), "on purpose? python -m tests.golden.surface"
