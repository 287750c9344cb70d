"""What people and machines read of drift and sync."""

from __future__ import annotations

import json
from dataclasses import replace

from causeway.core.kernel.errors import NotAuthorized
from causeway.core.state.acl import Acl
from causeway.core.state.flow_state import FlowState
from causeway.core.topics.acls import AclPlan
from causeway.core.topics.setting_drift import SettingDrift
from causeway.render.drift import (
    drift_lines,
    drift_payload,
    errors_of,
    exit_code,
    sync_lines,
    sync_payload,
)
from causeway.usecases.upkeep.acls import AclView
from causeway.usecases.upkeep.mirrors import Mirrors
from causeway.usecases.upkeep.settings import SettingsView
from causeway.usecases.upkeep.sync import Drift, Synced

ADDED = Acl("sf.orders", "literal", "User:amy", "*", "Read", "Allow")
LEFT = Acl("orders", "prefixed", "User:bob", "10.0.0.7", "Write", "Allow")
CHANGE = SettingDrift(
    topic="orders",
    mirror="sf.orders",
    setting="retention.ms",
    source_value="1",
    target_value="2",
    change="set",
    why="it was set on the source",
)
DENIED = NotAuthorized("cluster nyc, topic sf.orders", rule="no right", remedy="grant it")
THERE = {"orders": "sf.orders"}
MIRRORS = Mirrors(state=FlowState(), there=THERE, begun=THERE, held_back={})
PLAN = AclPlan(to_create=(ADDED,), to_remove=(), to_forget=(), in_place=3, left_behind=((LEFT, "because"),))


def drift(*, acls: AclView, unseen: tuple[NotAuthorized, ...] = ()) -> Drift:
    stays = replace(CHANGE, setting="segment.ms", change="leave", why="excluded")
    return Drift(mirrors=MIRRORS, settings=SettingsView(drifts=(CHANGE, stays), unseen=unseen), acls=acls)


def test_drift_is_a_table_with_reasons_and_one_last_line() -> None:
    lines = drift_lines("a", drift(acls=AclView(plan=PLAN)))
    assert "\n".join(lines) == (
        "MIRROR     SETTING       SOURCE  TARGET  CHANGE  WHY\n"
        "sf.orders  retention.ms  1       2       set     it was set on the source\n"
        "sf.orders  segment.ms    1       2       leave   excluded\n"
        "\n"
        "CHANGE  ACL                                            WHY\n"
        "add     Allow User:amy to Read sf.orders               the source has it\n"
        "leave   Allow User:bob from 10.0.0.7 to Write orders*  because\n"
        "\n"
        "a: 1 topic; 1 setting to change, 1 differ and stay; "
        "1 ACLs to add, 0 to remove, 3 as they should be; nothing was written"
    )


def test_what_is_not_looked_at_and_not_seen_is_reported() -> None:
    found = drift(acls=AclView(plan=None, note="sf has no authorizer: ACLs are skipped"), unseen=(DENIED,))
    lines = drift_lines("a", found)
    assert lines[-1].endswith(
        "ACLs not looked at: sf has no authorizer: ACLs are skipped; nothing was written"
    )
    assert "NOT SEEN cluster nyc, topic sf.orders: no right; grant it" in lines
    assert exit_code(errors_of(found), 1) == 3
    denied = drift(acls=AclView(plan=None, error=DENIED))
    assert drift_lines("a", denied)[-1].endswith(
        "ACLs not looked at: a right is missing; nothing was written"
    )
    assert errors_of(denied) == (DENIED,)


def test_a_dry_run_says_would_and_a_sync_what_it_did() -> None:
    before = drift(acls=AclView(plan=PLAN))
    done = Synced(
        drift=before, settings=(CHANGE,), created=(ADDED,), removed=(), refused=(DENIED,), is_dry_run=False
    )
    assert sync_lines("a", done)[-2:] == [
        "REFUSED cluster nyc, topic sf.orders: no right; grant it",
        "a: changed 1 settings, 1 ACLs added and 0 removed",
    ]
    dry = sync_lines("a", replace(done, is_dry_run=True, refused=()))
    assert dry[-1] == "a: would change 1 settings, 1 ACLs added and 0 removed; nothing was written"


def test_machines_get_the_same() -> None:
    before = drift(acls=AclView(plan=PLAN), unseen=(DENIED,))
    told = json.loads(json.dumps(drift_payload("a", before)))
    assert told["would_change"] is True
    assert [each["setting"] for each in told["settings"]] == ["retention.ms", "segment.ms"]
    assert told["acls"]["to_create"] == ["Allow User:amy to Read sf.orders"]
    assert told["errors"][0]["remedy"] == "grant it"
    done = Synced(drift=before, settings=(), created=(), removed=(), refused=(), is_dry_run=True)
    assert json.loads(json.dumps(sync_payload("a", done)))["dry_run"] is True
