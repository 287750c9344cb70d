"""Whoever names groups means each of them: a name that is written wrong moves nobody in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from causeway.config.flows_file.load import load_flows
from causeway.core.failover.plan import GroupFacts
from causeway.core.failover.request import FailoverRequest
from causeway.core.kernel.errors import UnknownName
from causeway.core.model.flow import Flow
from causeway.core.model.group_filter import FlowGroups
from causeway.usecases.failover.group_offsets import refuse_unknown
from tests.support.flows_yaml import ONE_FLOW

FOUND = [GroupFacts(name=name, is_active=False, here={}, known={}) for name in ("billing", "a+b", "team 7")]


@pytest.fixture
def flow(tmp_path: Path) -> Flow:
    (tmp_path / "flows.yaml").write_text(ONE_FLOW)
    return load_flows(tmp_path / "flows.yaml").flow("sf_to_nyc")


def refused(flow: Flow, *groups: str, rules: FlowGroups | None = None) -> str:
    wish = FailoverRequest(flow=flow.name, at_ms=None, groups=groups)
    with pytest.raises(UnknownName) as told:
        refuse_unknown(flow, wish, rules or FlowGroups(), FOUND)
    return str(told.value)


def test_one_of_several_that_is_written_wrong_is_named(flow: Flow) -> None:
    assert refused(flow, "billing", "biling").startswith("groups = biling: none that has to do with")
    assert "groups = team [89]" in refused(flow, "team.*", "team [89]")


def test_names_with_any_characters_and_patterns_are_found(flow: Flow) -> None:
    for groups in ((), ("billing", "a+b", "team 7"), (".*",)):
        refuse_unknown(flow, FailoverRequest(flow=flow.name, at_ms=None, groups=groups), FlowGroups(), FOUND)


def test_whom_the_flow_leaves_out_is_reported_by_what(flow: Flow) -> None:
    assert "groups.exclude has connect-.*" in refused(flow, "connect-sink")
    assert "groups doesn't have it" in refused(flow, "audit", rules=FlowGroups(include=("billing",)))
    assert "Causeway's own" in refused(flow, "causeway.sf_to_nyc")
