"""A real MirrorMaker 2 between two real clusters, and the commands that take its place."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

from confluent_kafka.admin import NewTopic

from causeway.brokers.admin.record_reader import RecordReader
from causeway.cli.main import main
from causeway.config.flows_file.load import load_flows
from causeway.core.kernel.identity import TopicPartition
from causeway.core.model.flow import Flow
from causeway.core.verify.comparison import Content
from causeway.lab.clients import admin_client, wait_for_leaders
from causeway.lab.cluster import LabCluster
from causeway.lab.jars import ensure_jars
from tests.bench.peers.mirror_maker import JARS, LOG4J2, command_line, render
from tests.proofs.chaos.parts.processes import Started, start, wait_until
from tests.support.mirroring import Mirror, end_offsets
from tests.support.quick import quick_producer

_SECONDS = 300.0
HELD = 4


@dataclass
class TakeoverStage:
    """`sf` is the source; topics are the test's own."""

    source: LabCluster
    target: LabCluster
    folder: Path
    topics: tuple[str, ...]
    partitions: int = 2
    settings: Mapping[str, str] = field(default_factory=dict)
    lives: int = 0
    mirror_maker: Started | None = None

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        admin = admin_client(self.source.endpoint())
        for answer in admin.create_topics([NewTopic(t, self.partitions) for t in self.topics]).values():
            answer.result(_SECONDS)
        wait_for_leaders(admin, dict.fromkeys(self.topics, self.partitions))
        (self.folder / "log4j2.properties").write_text(LOG4J2)
        settings = {**mm2_settings(self.source, self.target, self.topics), **self.settings}
        if settings.get("emit.offset-syncs.enabled") == "false":  # else it refuses to show how they are
            del settings["offset-syncs.topic.replication.factor"]
        self.properties.write_text(render(settings))

    @property
    def properties(self) -> Path:
        return self.folder / "mm2.properties"

    @property
    def flows_file(self) -> Path:
        return self.folder / "flows.yaml"

    @property
    def pairs(self) -> list[tuple[TopicPartition, TopicPartition]]:
        return [
            (TopicPartition(topic, n), TopicPartition(f"sf.{topic}", n))
            for topic in self.topics
            for n in range(self.partitions)
        ]

    # MirrorMaker 2

    def start_mirror_maker(self) -> Started:
        self.lives += 1
        java, *rest = command_line(ensure_jars(JARS), self.folder / "log4j2.properties", self.properties)
        command = [java, "-XX:TieredStopAtLevel=1", *rest]  # it lives for seconds
        name = f"mirror-maker-{self.lives}"
        self.mirror_maker = start(name, command, self.folder / f"{name}.log")
        return self.mirror_maker

    def wait_until_copied(self, at_least: int) -> None:
        """So many records on the target, repeated ones included."""
        wait_until(lambda: self.arrived() >= at_least, f"{at_least} records", timeout_seconds=_SECONDS)

    def arrived(self) -> int:
        return sum(
            end
            for (topic, _), (_, end) in end_offsets(self.target, of="sf.").items()
            if topic[3:] in self.topics
        )

    def kill(self) -> None:
        assert self.mirror_maker is not None
        self.mirror_maker.kill_all()

    def end(self) -> None:
        assert self.mirror_maker is not None
        self.mirror_maker.send(signal.SIGTERM)
        wait_until(lambda: self.mirror_maker.exit_code is not None, "it ends", timeout_seconds=_SECONDS)  # type: ignore[union-attr]

    def close(self) -> None:
        if self.mirror_maker is not None:
            self.mirror_maker.kill_all()

    # the commands

    def command(self, *arguments: str) -> tuple[int, Any, str]:
        """Exit code, payload, and all that was printed."""
        out, said = StringIO(), StringIO()
        with self._environment(), redirect_stdout(out), redirect_stderr(said):
            code = main([*arguments, "--file", str(self.flows_file), "--json"])
        return code, json.loads(out.getvalue() or "null"), said.getvalue() + out.getvalue()

    def write_flows(self) -> None:
        code, _, said = self.command("import-mm2", str(self.properties))
        assert code == 0, said

    def adopt(self, *options: str, patient: bool = True) -> tuple[int, Any, str]:
        """As soon as the group has given MirrorMaker's worker up."""
        deadline = time.monotonic() + _SECONDS
        while True:
            code, told, said = self.command("import-mm2", str(self.properties), "--adopt", *options)
            if code != HELD or not patient or time.monotonic() > deadline:
                return code, told, said
            time.sleep(0.5)

    @contextmanager
    def _environment(self) -> Iterator[None]:
        ours = {
            f"AIRFLOW_CONN_KAFKA_{alias.upper()}": json.dumps(
                {"conn_type": "kafka", "extra": dict(cluster.endpoint().settings)}
            )
            for alias, cluster in (("sf", self.source), ("nyc", self.target))
        }
        before = dict(os.environ)
        os.environ.update(ours)
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)

    # Causeway, and the proof

    @property
    def flow(self) -> Flow:
        return load_flows(self.flows_file).flows["sf_to_nyc"]

    @contextmanager
    def mirror(self) -> Iterator[Mirror]:
        made = Mirror(self.flow, self.source, self.target)
        try:
            yield made
        finally:
            made.close()

    def read(self, cluster: LabCluster, tp: TopicPartition, **how: bool) -> list[tuple[int, Content]]:
        with RecordReader(cluster.endpoint(), **how) as reader:
            start_at, end = reader.bounds(tp)
            reader.open(tp, start_at, end)
            return list(reader.shown())

    def sources(self, tp: TopicPartition) -> list[tuple[int, Content]]:
        return self.read(self.source, tp, as_mirrored=True)

    def targets(self, tp: TopicPartition) -> list[tuple[int, Content]]:
        return self.read(self.target, tp)


def mm2_settings(source: LabCluster, target: LabCluster, topics: Sequence[str]) -> dict[str, str]:
    """Defaults, on clusters with one broker each."""
    return {
        "clusters": "sf, nyc",
        "sf.bootstrap.servers": source.bootstrap_servers,
        "nyc.bootstrap.servers": target.bootstrap_servers,
        "sf->nyc.enabled": "true",
        "sf->nyc.topics": ", ".join(topics),
        "nyc->sf.enabled": "false",
        "emit.heartbeats.enabled": "false",
        "replication.factor": "1",
        "nyc.scheduled.rebalance.max.delay.ms": "0",  # else a killed life's work isn't done for five minutes
        **{f"{name}.topic.replication.factor": "1" for name in ("checkpoints", "heartbeats", "offset-syncs")},
        **{f"{kind}.storage.replication.factor": "1" for kind in ("offset", "status", "config")},
    }


def write(
    cluster: LabCluster,
    topic: str,
    partition: int,
    numbers: range,
    dice: random.Random,
    *,
    is_told_apart: bool = False,
) -> None:
    """Keys, values and headers of all kinds; some records are equal, unless each is to be different."""
    client = quick_producer(cluster.endpoint())
    for n in numbers:
        headers = None if n % 3 and not is_told_apart else [("n", b"%d" % n), ("n", None), ("", b"")]
        value = None if n % 17 == 5 else b"%d " % n + dice.randbytes(dice.randrange(60))
        client.produce(topic, value, None if n % 5 == 1 else b"k%d" % n, partition=partition, headers=headers)
        if n % 500 == 0:
            client.poll(0)
    assert client.flush(_SECONDS) == 0
