"""Which groups a flow carries over."""

from __future__ import annotations

import pytest

from causeway.core.model.group_filter import FlowGroups


@pytest.mark.parametrize(
    "name", ["console-consumer-77", "connect-sink", "__secret", "causeway.sf_to_nyc", "causeway."]
)
def test_the_defaults_leave_out_mirror_makers_and_our_own(name: str) -> None:
    assert not FlowGroups().selects(name)


@pytest.mark.parametrize("name", ["billing", "", "a.b", "my-connect-sink", "Causeway.x", "causeway"])
def test_the_defaults_take_all_others(name: str) -> None:
    assert FlowGroups().selects(name)


def test_exclude_wins_and_an_empty_list_selects_nothing() -> None:
    assert FlowGroups(include=("bill.*",), exclude=()).selects("billing")
    assert not FlowGroups(include=("bill.*",), exclude=("billing",)).selects("billing")
    assert not FlowGroups(include=("bill",), exclude=()).selects("billing")
    assert not FlowGroups(include=(), exclude=()).selects("billing")


@pytest.mark.parametrize("pattern", [".*", r"causeway\..*", "causeway.sf_to_nyc"])
def test_our_own_are_never_selected_whatever_the_lists_say(pattern: str) -> None:
    assert not FlowGroups(include=(pattern,), exclude=()).selects("causeway.sf_to_nyc")


def test_what_is_left_out_is_left_out_by_something() -> None:
    groups = FlowGroups(include=("bill.*", r"causeway\..*"), exclude=("x", "billing-.*"))
    said = {name: groups.why_excluded(name) for name in ("billing", "billing-1", "orders", "causeway.f")}
    assert said == {
        "billing": "",
        "billing-1": "groups.exclude has billing-.*",
        "orders": "groups doesn't have it",
        "causeway.f": "Causeway's own",
    }


def test_nothing_to_do_is_known() -> None:
    assert not FlowGroups().is_off
    assert FlowGroups(emit_checkpoints=False, emit_offset_syncs=False).is_off
    assert not FlowGroups(emit_checkpoints=False, emit_offset_syncs=False, sync_offsets=True).is_off
