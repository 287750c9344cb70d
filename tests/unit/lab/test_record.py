from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from causeway.lab.errors import LabTrouble, StateUnreadable
from causeway.lab.processes import ProcessIdentity
from causeway.lab.record import ClusterRecord, ClusterSpec, NodePorts, load_record, save_record

RECORD = ClusterRecord(
    spec=ClusterSpec(name="sf", security="SASL_SSL", users=("mirror",), broker_settings={"a.b": "c"}),
    cluster_id="TdRtZ3RtRWqpTMeiMEHjzQ",
    ports={1: NodePorts(20001, 20002)},
    passwords={"admin": "hush-hush", "mirror": "pst"},
    processes={1: ProcessIdentity(4711, 99)},
)


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    save_record(tmp_path / "cluster.json", RECORD)
    assert load_record(tmp_path / "cluster.json") == RECORD


def test_a_record_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    save_record(path, RECORD)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_record_shows_no_password_when_printed() -> None:
    assert "hush-hush" not in repr(RECORD)


@pytest.mark.parametrize(
    "damage",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"format": 2}',
        '{"format": 1, "spec": {"name": "sf"}}',
    ],
)
def test_a_damaged_record_is_named(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(damage)
    with pytest.raises(StateUnreadable, match=r"cluster\.json = .*not a record of a lab cluster; delete"):
        load_record(path)


def test_a_record_with_an_unknown_field_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    save_record(path, RECORD)
    content = json.loads(path.read_text())
    content["spec"]["colour"] = "red"
    path.write_text(json.dumps(content))
    with pytest.raises(StateUnreadable, match="colour"):
        load_record(path)


def test_settings_and_version_may_change_over_a_restart() -> None:
    newer = replace(RECORD.spec, kafka_version="3.9.2", broker_settings={})
    assert RECORD.with_spec(newer).ports == RECORD.ports


@pytest.mark.parametrize("wish", [{"nodes": 3}, {"security": "PLAINTEXT"}, {"name": "nyc"}])
def test_what_the_data_was_made_with_may_not_change(wish: dict[str, Any]) -> None:
    with pytest.raises(LabTrouble, match="its data was made with"):
        RECORD.with_spec(replace(RECORD.spec, **wish))
