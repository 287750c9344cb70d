"""Scripts rest on verbs, options and keys of JSON: none goes, changes or comes without being recorded."""

from __future__ import annotations

from tests.golden.json_keys import TYPED
from tests.golden.surface import key_differences, options_of_all_verbs, recorded, verbs_with_json


def test_each_verb_has_the_options_that_are_recorded() -> None:
    assert options_of_all_verbs() == recorded(), "on purpose? python -m tests.golden.surface"


def test_each_verb_is_asked_for_its_json() -> None:
    assert set(TYPED) == verbs_with_json(), "tests/golden/json_keys.py types each verb that has --json"
    assert len(TYPED) > 25


def test_each_verb_prints_the_keys_that_are_recorded() -> None:
    different = key_differences()
    assert not different, "\n".join([*different, "on purpose? python -m tests.golden.surface"])
