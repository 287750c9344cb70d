from __future__ import annotations

import pytest

from causeway.core.model.topic_filter import TopicFilter


def test_exclude_wins_over_include() -> None:
    topics = TopicFilter(("orders", "pay.*"), (r".*\.replica", "payroll"))
    asked = ["orders", "payments", "payroll", "pay.replica", "clicks"]
    assert [name for name in asked if topics.matches(name)] == ["orders", "payments"]


def test_an_empty_list_includes_nothing() -> None:
    assert not TopicFilter(()).matches("orders")


@pytest.mark.parametrize("name", ["a.internal", "a-internal", "a.replica", "__x"])
def test_mirror_makers_excludes_are_the_default(name: str) -> None:
    assert not TopicFilter((".*",)).matches(name)
    assert TopicFilter((".*",), ()).matches(name)


def test_filters_that_say_the_same_are_equal_and_remember_together() -> None:
    assert TopicFilter(("a",)) == TopicFilter(("a",))
    assert hash(TopicFilter(("a",))) == hash(TopicFilter(("a",)))
    assert TopicFilter(("a",)).matches("a") is not TopicFilter(("b",)).matches("a")


@pytest.mark.parametrize(
    "export", ["orders.diverged.20261118T040300Z", "sf.orders.diverged.20261118T040300Z"]
)
def test_no_pattern_matches_the_exports_of_a_failback(export: str) -> None:
    """Not even without excludes: nobody has to know that there are such topics."""
    assert not TopicFilter((".*", "orders.*", export), ()).matches(export)


@pytest.mark.parametrize("name", ["orders.diverged", "orders.diverged.2026", ".diverged.20261118T040300Z"])
def test_what_only_sounds_like_an_export_crosses(name: str) -> None:
    assert TopicFilter((".*",), ()).matches(name)
