"""`lab` without brokers: what is written, what is refused, what a stale state does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from causeway.core.kernel.errors import BadInput
from causeway.lab import lab
from causeway.lab.asked import Asked, spec_of
from causeway.lab.cluster import LabCluster
from causeway.lab.errors import LabTrouble, StateUnreadable
from causeway.lab.places import HOME_VARIABLE, lab_directory, project_root
from causeway.lab.processes import ProcessIdentity
from causeway.lab.record import ClusterSpec, load_record, save_record


def pretend_up(root: Path, *names: str) -> None:
    """What `up` leaves, as it looks after a reboot: records of processes that are no more."""
    for name in names:
        home = lab_directory(root) / name
        LabCluster(ClusterSpec(name=name), home)
        record = load_record(home / "cluster.json")
        record.processes[1] = ProcessIdentity(pid=1, start_ticks=-1)  # a pid that now is somebody else's
        save_record(home / "cluster.json", record)
    (lab_directory(root) / "state.json").write_text(json.dumps({"format": 1, "clusters": list(names)}))


def test_a_lab_that_never_was_up_has_no_clusters(tmp_path: Path) -> None:
    assert lab.status(tmp_path).clusters == ()
    assert lab.down(tmp_path) == ()


def test_status_changes_nothing(tmp_path: Path) -> None:
    lab.status(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_stale_state_is_not_believed(tmp_path: Path) -> None:
    pretend_up(tmp_path, "sf", "nyc")
    assert [cluster.is_running for cluster in lab.status(tmp_path).clusters] == [False, False]


def test_down_touches_nobody_elses_process(tmp_path: Path) -> None:
    pretend_up(tmp_path, "sf")
    assert lab.down(tmp_path, say=lambda line: None) == (lab.Stopped(name="sf", pids={}),)
    assert lab.status(tmp_path).clusters == ()


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"format": 1}', '{"format": 2, "clusters": []}', "7"])
def test_a_damaged_state_is_named_with_the_remedy(tmp_path: Path, damage: str) -> None:
    state = lab_directory(tmp_path) / "state.json"
    state.parent.mkdir(parents=True)
    state.write_text(damage)
    with pytest.raises(StateUnreadable, match=r"state\.json.*delete"):
        lab.status(tmp_path)


@pytest.mark.parametrize("name", ["", "../sf", "s f", "1st", "sf'", "café", "a" * 50])
def test_a_name_that_is_no_variable_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput, match=r"lab cluster name.*; write"):
        lab.up(tmp_path, (name,))
    assert not (lab_directory(tmp_path) / "state.json").exists()


def test_what_a_cluster_was_made_with_holds_if_nothing_else_is_asked_for(tmp_path: Path) -> None:
    old = ClusterSpec(name="sf", kafka_version="3.9.2", security="SASL_SSL", nodes=3)
    LabCluster(old, tmp_path)
    record = load_record(tmp_path / "cluster.json")
    for is_up in (False, True):
        assert spec_of("sf", record, Asked(), is_up=is_up) == old
        assert spec_of("sf", record, Asked("3.9.2", "SASL_SSL", 3), is_up=is_up) == old
    assert spec_of("sf", record, Asked("4.3.1"), is_up=False).kafka_version == "4.3.1"


@pytest.mark.parametrize(
    ("asked", "is_up", "way_out"),
    [
        (Asked(kafka_version="4.3.1"), True, "`causeway lab down` (the data stays)"),
        (Asked(security="PLAINTEXT"), True, "--forget"),
        (Asked(security="PLAINTEXT"), False, "--forget"),
        (Asked(nodes=1), True, "--forget"),
        (Asked(nodes=1), False, "--forget"),
    ],
)
def test_a_wish_that_cannot_come_true_is_refused_with_the_remedy(
    tmp_path: Path, asked: Asked, is_up: bool, way_out: str
) -> None:
    LabCluster(ClusterSpec(name="sf", kafka_version="3.9.2", security="SASL_SSL", nodes=3), tmp_path)
    with pytest.raises(BadInput, match="stays as it is") as refused:
        spec_of("sf", load_record(tmp_path / "cluster.json"), asked, is_up=is_up)
    assert way_out in refused.value.remedy


def test_a_home_with_a_comma_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LabTrouble, match="comma"):
        LabCluster(ClusterSpec(name="sf"), tmp_path / "a,b")


def test_a_cluster_keeps_its_ports_and_its_id(tmp_path: Path) -> None:
    first = LabCluster(ClusterSpec(name="sf", nodes=3), tmp_path)
    second = LabCluster.open(tmp_path)
    assert second.bootstrap_servers == first.bootstrap_servers
    assert second.cluster_id == first.cluster_id


def test_the_root_is_as_given_or_as_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "named"))
    assert project_root() == tmp_path / "named"
    assert project_root(tmp_path / "given") == tmp_path / "given"
    monkeypatch.delenv(HOME_VARIABLE)
    assert (project_root() / "pyproject.toml").exists()
