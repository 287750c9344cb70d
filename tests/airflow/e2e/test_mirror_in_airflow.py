"""The mirror as an operator meets it: real Airflow, real Spark, real clusters with passwords."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka.admin import NewTopic

from causeway.airflow.rest import AirflowRefused
from causeway.brokers.admin.topics import ClusterAdmin
from causeway.lab.clients import admin_client, producer, wait_for_leaders
from causeway.lab.cluster import LabCluster
from causeway.lab.live import LiveProducer
from tests.integration.groups.stage import commit, committed
from tests.support.reading import values_of

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.integration]


def write(cluster: LabCluster, topic: str, values: list[bytes], *, partitions: int = 1) -> None:
    client = admin_client(cluster.endpoint())
    client.create_topics([NewTopic(topic, partitions)])[topic].result(30)
    wait_for_leaders(client, {topic: partitions})
    writer = producer(cluster.endpoint())
    for value in values:
        writer.produce(topic, value)
    assert writer.flush(30) == 0


def test_a_run_copies_and_its_secrets_are_nowhere(mirror: Any) -> None:
    """The canaries are the clusters' own passwords, so they are certainly in use."""
    values = [f"quiet {number}".encode() for number in range(500)]
    write(mirror.source, "quiet-words", values)
    commit(mirror.source, "quiet.reader", {("quiet-words", 0): 123})
    passwords = [cluster.endpoint().settings["sasl.password"] for cluster in (mirror.source, mirror.target)]
    commands: set[str] = set()
    mirror.trigger("quiet_words", "r1", until_caught_up=True)
    state = mirror.wait("quiet_words", "r1", meanwhile=lambda: commands.update(all_commands()))

    assert state == "success", mirror.log("quiet_words", "r1", "copy")
    assert values_of(mirror.target, "sf.quiet-words") == values
    assert any("copy_flow.py" in command for command in commands)
    assert [command for command in commands if any(word in command for word in passwords)] == []
    files = [path for path in mirror.home.directory.rglob("*") if path.is_file()]
    assert any(path.name == "airflow.db" for path in files)
    assert [path for path in files if holds(path, passwords)] == []


def test_the_report_is_in_xcom_and_on_the_asset(mirror: Any) -> None:
    short = mirror.rest.xcom("mirror__quiet_words", "r1", "report")
    wanted = {"flow": "quiet_words", "outcome": "caught up", "records": 500, "lag": 0, "parked_count": 0}
    assert {name: short[name] for name in wanted} == wanted
    assert json.loads(Path(short["report"]).read_text())["records"] == 500
    (event,) = mirror.rest.asset_events("causeway_quiet_words")
    assert event["extra"]["records"] == 500


def test_groups_are_synced_after_the_copy(mirror: Any) -> None:
    short = mirror.rest.xcom("mirror__quiet_words", "r1", "groups")
    assert (short["outcomes"], short["checkpoints"], short["commits"]) == ({"synced": 1}, 1, 1)
    assert committed(mirror.target, "quiet.reader") == {("sf.quiet-words", 0): 123}
    (row,) = json.loads(Path(short["report"]).read_text())["partitions"]
    assert (row["group"], row["outcome"], row["target_offset"]) == ("quiet.reader", "synced", 123)
    assert "1 groups, " in mirror.log("quiet_words", "r1", "groups")


def test_a_second_run_with_nothing_new_says_so(mirror: Any) -> None:
    mirror.trigger("quiet_words", "r2", until_caught_up=True)
    assert mirror.wait("quiet_words", "r2") == "success"
    assert "nothing new, nothing written" in mirror.log("quiet_words", "r2", "copy")
    assert mirror.rest.xcom("mirror__quiet_words", "r2", "report")["records"] == 0


def test_the_form_is_checked_before_there_is_a_run(mirror: Any) -> None:
    with pytest.raises(AirflowRefused, match=r"400.*run_for"):
        mirror.trigger("quiet_words", "r3", run_for="ten minutes")


def test_killing_the_task_on_the_page_kills_the_driver(mirror: Any) -> None:
    with LiveProducer(mirror.source.endpoint(), topic="interrupted", partitions=1):
        mirror.trigger("interrupted", "marked", run_for="10m")
        mirror.eventually(lambda: is_copying(mirror, "marked"))
        assert mirror.drivers()
        mirror.rest.mark_failed("mirror__interrupted", "marked", "copy")
        mirror.eventually(lambda: not mirror.drivers())
    assert mirror.wait("interrupted", "marked") == "failed"


def test_a_driver_dies_with_its_task_and_the_next_try_goes_on(mirror: Any) -> None:
    """As the kernel does when memory is short: the task's process gets a SIGKILL, the driver gets nothing."""
    with LiveProducer(mirror.source.endpoint(), topic="interrupted", partitions=1) as live:
        mirror.trigger("interrupted", "killed", run_for="10m")
        mirror.eventually(lambda: is_copying(mirror, "killed"))
        first = mirror.drivers()
        java = next(process for process in first if process.name() == "java")
        java.parent().kill()
        mirror.eventually(lambda: not any(process.is_running() for process in first))
        mirror.eventually(lambda: mirror.attempts("interrupted", "killed", "copy") == 2)
        mirror.eventually(lambda: is_copying(mirror, "killed", attempt=2))
        mirror.rest.mark_failed("mirror__interrupted", "killed", "copy")
        mirror.eventually(lambda: not mirror.drivers())
    mirror.wait("interrupted", "killed")
    mirror.trigger("interrupted", "rest", until_caught_up=True)
    assert mirror.wait("interrupted", "rest") == "success"
    written = values_of(mirror.source, "interrupted")
    assert len(written) >= live.delivered > 0
    assert values_of(mirror.target, "sf.interrupted") == written


def test_what_is_left_out_turns_the_run_red_but_not_the_copy(mirror: Any) -> None:
    write(mirror.source, "fit", [b"one", b"two"])
    write(mirror.source, "unfit", [b"three"], partitions=2)
    write(mirror.target, "sf.unfit", [b"of somebody else"])
    write(mirror.target, "sf.fit", [])
    assert ClusterAdmin(mirror.source.endpoint()).alter_settings({"fit": {"retention.ms": "7654321"}}) == {}
    mirror.trigger("half_fit", "r1", until_caught_up=True)
    assert mirror.wait("half_fit", "r1") == "failed"
    states = mirror.states("half_fit", "r1")
    assert states.pop("parked") == "failed"
    done = ("topics", "copy", "report", "drift", "sync", "heartbeat", "groups")
    assert states == dict.fromkeys(done, "success")
    assert mirror.rest.xcom("mirror__half_fit", "r1", "drift")["settings_to_change"] == 1
    assert "changed 1 settings" in mirror.log("half_fit", "r1", "sync")
    assert [len(value) for value in values_of(mirror.source, "heartbeats")] == [10]
    assert values_of(mirror.target, "sf.fit") == [b"one", b"two"]
    assert values_of(mirror.target, "sf.unfit") == [b"of somebody else"]
    said = mirror.log("half_fit", "r1", "parked")
    assert "LEFT ALONE unfit: sf.unfit on nyc has 1 partitions, unfit has 2" in said
    assert mirror.rest.asset_events("causeway_half_fit")


def test_a_connection_that_nobody_has_fails_at_once_with_the_remedy(mirror: Any) -> None:
    mirror.trigger("no_way", "r1")
    assert mirror.wait("no_way", "r1") == "failed"
    assert mirror.attempts("no_way", "r1", "topics") == 1
    said = mirror.log("no_way", "r1", "topics")
    assert "connection kafka_gone: cluster gone names it, and nobody has it" in said
    assert "AIRFLOW_CONN_KAFKA_GONE" in said


def is_copying(mirror: Any, run_id: str, attempt: int = 1) -> bool:
    return "s left" in mirror.log("interrupted", run_id, "copy", attempt)


def all_commands() -> set[str]:
    return {command for process in psutil.process_iter() if (command := attempt(process.cmdline))}


def attempt(cmdline: Callable[[], list[str]]) -> str:
    try:
        return " ".join(cmdline())
    except psutil.Error:
        return ""


def holds(path: Path, words: list[str]) -> bool:
    content = path.read_bytes()
    return any(word.encode() in content for word in words)
