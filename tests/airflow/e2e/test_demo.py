"""`make demo`, small: it proves what it says, can be run again, and leaves nothing however it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import urlopen

import psutil
import pytest
from confluent_kafka.admin import NewTopic

from causeway.config.flows_file.load import load_flows
from causeway.demo.steps import Clusters, compare
from causeway.lab.clients import admin_client, producer, wait_for_leaders
from causeway.lab.cluster import LabCluster
from causeway.lab.jars import ensure_jars
from causeway.lab.places import HOME_VARIABLE
from tests.support.mirroring import Mirror, make_flow

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.integration]

PROJECT = Path(__file__).resolve().parents[3]
DEMO = [sys.executable, "-m", "causeway.demo.mirror"]
SMALL = ["up", "--records", "3000", "--follow-seconds", "6"]


class Demo:
    """The demo as a person starts it, with a folder of its own for what it makes."""

    def __init__(self, root: Path) -> None:
        self.root, self.output = root, root / "output.txt"
        (root / ".causeway").mkdir()
        (root / ".causeway" / "jars").symlink_to(ensure_jars("kafka-4.3.1").parent)

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        with self.output.open("wb") as output:
            return subprocess.Popen(
                [*DEMO, *arguments],
                env=os.environ | {HOME_VARIABLE: str(self.root)},
                cwd=self.root,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def run(self, *arguments: str) -> int:
        return self.start(*arguments).wait(560)

    @property
    def said(self) -> str:
        return self.output.read_text(encoding="utf-8")

    def processes(self) -> list[str]:
        """All that run because of it, in whatever session: they know its folder."""
        return [found for process in psutil.process_iter() if (found := self._if_ours(process))]

    def _if_ours(self, process: psutil.Process) -> str:
        try:
            command, environment = process.cmdline(), process.environ()
        except (psutil.Error, OSError):
            return ""
        is_ours = any(str(self.root) in text for text in (*command, *environment.values()))
        return f"{process.pid} {' '.join(command)}" if is_ours and process.pid != os.getpid() else ""


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    demo = Demo(tmp_path)
    yield demo
    demo.run("down")


@pytest.mark.timeout(1500)  # it is two demos, and the second act
def test_it_proves_the_mirror_fails_over_and_can_be_run_again(demo: Demo) -> None:
    assert demo.run(*SMALL) == 0, demo.said
    assert "=== the mirror is exact" in demo.said
    for topic in ("orders", "payments-live", "events-zstd", "ledger", "clicks"):
        assert re.search(rf"{topic} +\d+ +[1-9][0-9,]* +0 +yes", demo.said), demo.said
    url = re.findall(r"http://127\.0\.0\.1:\d+", demo.said)[-1]
    with urlopen(f"{url}/api/v2/monitor/health") as health:
        assert json.load(health)["scheduler"]["status"] == "healthy"

    assert demo.run("failover") == 0, demo.said
    assert "each record was read once, in order" in demo.said
    assert re.search(r"failover [0-9a-f]+ is rolled back, its fence: lifted", demo.said), demo.said

    assert demo.run(*SMALL, "--then-down") == 0, demo.said
    assert "an earlier demo's Airflow still runs" in demo.said
    assert demo.processes() == []


@pytest.mark.parametrize(
    ("when", "number"),
    [("=== Airflow", signal.SIGTERM), (" s left", signal.SIGINT), ("sf is up", signal.SIGHUP)],
)
def test_interrupted_it_leaves_nothing(demo: Demo, when: str, number: signal.Signals) -> None:
    running = demo.start(*SMALL)
    eventually(lambda: when in demo.said)
    running.send_signal(number)
    assert running.wait(120) == 130, demo.said
    assert "demo: interrupted" in demo.said
    assert demo.processes() == []


def test_down_cleans_up_after_a_demo_that_was_killed(demo: Demo) -> None:
    running = demo.start(*SMALL)
    eventually(lambda: "waiting for the DAG" in demo.said)
    running.kill()
    running.wait()
    assert demo.processes()
    assert demo.run("down") == 0, demo.said
    assert demo.processes() == []


def test_a_record_that_is_missing_is_no_exact_mirror(
    sf: LabCluster, nyc: LabCluster, topic_name: Callable[..., str]
) -> None:
    flow = load_flows(PROJECT / "include" / "flows.yaml").flow("sf_to_nyc")
    topic, said = topic_name("payments"), list[str]()
    now_ms = int(time.time() * 1000)  # of records from years ago a broker's retention leaves nothing
    for cluster, name, values in ((sf, topic, [b"one", b"two"]), (nyc, f"sf.{topic}", [b"one"])):
        client = admin_client(cluster.endpoint())
        client.create_topics([NewTopic(name, 1)])[name].result(30)
        wait_for_leaders(client, {name: 1})
        writer = producer(cluster.endpoint())
        for value in values:
            writer.produce(name, value, timestamp=now_ms)
        assert writer.flush(30) == 0
    assert not compare(flow, Clusters(sf, nyc), said.append)
    assert f"{topic}-0: source offset 1 is missing on the target" in said


def test_a_compacted_topic_is_compared_through_the_map_of_its_mirror(
    sf: LabCluster, nyc: LabCluster, topic_name: Callable[..., str]
) -> None:
    topic, said = topic_name("clicks"), list[str]()
    client = admin_client(sf.endpoint())
    client.create_topics([NewTopic(topic, 1, config={"cleanup.policy": "compact"})])[topic].result(30)
    wait_for_leaders(client, {topic: 1})
    _write(sf, topic, [b"one", b"two", b"three"])
    mirror = Mirror(make_flow(topic.replace("-", "_"), topic), sf, nyc)
    mirror.run()
    mirror.close()
    assert compare(mirror.flow, Clusters(sf, nyc), said.append), said
    assert "3 records are equal in key, value, headers, timestamp and order" in said
    _write(sf, topic, [b"not mirrored"])
    assert not compare(mirror.flow, Clusters(sf, nyc), said.append)
    assert f"{topic}-0: source offset 3 is missing on the target" in said


def _write(cluster: LabCluster, topic: str, values: list[bytes]) -> None:
    writer = producer(cluster.endpoint())
    for value in values:
        writer.produce(topic, value, b"key", timestamp=int(time.time() * 1000))
    assert writer.flush(30) == 0


def eventually(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 300
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.1)
