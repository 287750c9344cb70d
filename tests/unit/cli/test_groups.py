"""What `causeway groups` says below its table."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from causeway.cli.commands.groups import _about_syncs
from causeway.core.groups.report import GroupsReport
from causeway.core.groups.sync_rules import Outcome
from causeway.core.groups.task import GroupTaskResult

LOOKED = GroupsReport(
    flow="nyc_to_sf",
    began_at="2026-11-19T00:00:00Z",
    seconds=1.0,
    wrote=False,
    syncs_offsets=True,
    groups=(),
    excluded={},
    result=GroupTaskResult(),
)


DUE = replace(LOOKED, result=GroupTaskResult(due={"billing": Counter({Outcome.SYNCED: 2})}))


def test_what_only_looked_names_the_command_that_commits() -> None:
    last = _about_syncs(DUE)[-1]
    assert last == "`causeway groups nyc_to_sf --sync` commits; so does `causeway run` at its end"


def test_where_no_offset_would_be_committed_no_command_is_named() -> None:
    assert not any("--sync" in line for line in _about_syncs(LOOKED))


def test_of_a_fenced_flow_it_names_no_command_that_would_be_refused() -> None:
    last = _about_syncs(replace(DUE, fenced="by amy since 2026-11-19T00:00:00Z: stands by"))[-1]
    assert "--sync" not in last
    assert last.startswith("nyc_to_sf is fenced by amy since")
    assert "`causeway next nyc_to_sf`" in last
