"""MirrorMaker 2 in dedicated mode: as it comes, and as a user who knows it would tune it.

The JVM's options are those of Kafka's own start script. In both variants the internal topics have one
replica, because there is one broker. In dedicated mode the data's producer belongs to the Connect worker,
so it listens to `<target>.producer.*`, the data's consumer to `<source>.consumer.*`; that the tuning took
effect is read from MirrorMaker's own log after each turn.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from causeway.lab.jars import ensure_jars
from causeway.lab.places import java_executable
from causeway.lab.record import NEWEST_KAFKA
from tests.bench.peers.contender import Launch, Scene
from tests.bench.workloads import Workload

JARS = f"mirror-maker-{NEWEST_KAFKA}"
_TARGET = "nyc"
_JVM = (
    *("-Xms256M", "-Xmx2G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"),
    *("-XX:MaxInlineLevel=15", "-Djava.awt.headless=true"),
)
LOG4J2 = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = INFO
rootLogger.appenderRef.console.ref = console
"""
_MOST_TASKS = 8
_DATA_PRODUCER = re.compile(
    r"ProducerConfig values:(?s:.*)client\.id = connector-producer-MirrorSourceConnector-"
)
_DATA_CONSUMER = re.compile(r"ConsumerConfig values:(?s:.*)client\.id = .*\|replication-consumer")


@dataclass(frozen=True, slots=True)
class MirrorMaker:
    is_tuned: bool

    @property
    def name(self) -> str:
        return "MirrorMaker 2, tuned" if self.is_tuned else "MirrorMaker 2, defaults"

    def prepare(self, scene: Scene) -> Launch:
        jars = ensure_jars(JARS)
        logging = scene.folder / "log4j2.properties"
        logging.write_text(LOG4J2, encoding="utf-8")
        producer = producer_tuning(scene.workload) if self.is_tuned else {}
        consumer = consumer_tuning() if self.is_tuned else {}
        settings = _settings(scene)
        if self.is_tuned:
            settings |= _placed(scene)
        properties = scene.folder / "mm2.properties"
        properties.write_text(render(settings), encoding="utf-8")
        return Launch(
            command=command_line(jars, logging, properties),
            ends_by_itself=False,
            kind_of=lambda _: "JVM",
            check_log=lambda log: check_effect(log, producer, consumer),
        )


def tasks(workload: Workload) -> int:
    """At least one a partition, as long as that makes sense on a machine: each has two clients of its own."""
    return min(workload.partitions, _MOST_TASKS)


def producer_tuning(workload: Workload) -> dict[str, str]:
    return {
        "compression.type": workload.codec,
        "batch.size": str(512 << 10),
        "linger.ms": "50",
        "buffer.memory": str(128 << 20),
        "enable.idempotence": "true",
        "max.in.flight.requests.per.connection": "5",
    }


def consumer_tuning() -> dict[str, str]:
    return {
        "max.poll.records": "10000",
        "max.partition.fetch.bytes": str(8 << 20),
        "fetch.max.bytes": str(64 << 20),
        "receive.buffer.bytes": str(1 << 20),
    }


def render(settings: dict[str, str]) -> str:
    return "".join(f"{key} = {value}\n" for key, value in settings.items())


def check_effect(log: str, producer: dict[str, str], consumer: dict[str, str]) -> None:
    """The clients that the data goes through print their settings: each tuned one has to be among them."""
    for name, wanted in ((_DATA_PRODUCER, producer), (_DATA_CONSUMER, consumer)):
        printed = [block for block in re.split(r"\n(?=\[)", log) if name.search(block)]
        assert printed, f"MirrorMaker 2 never made a client for the data like {name.pattern}"
        for key, value in wanted.items():
            told = {found for block in printed for found in _printed(key, block)}
            assert told == {value}, f"MirrorMaker 2 runs with {key} = {told or 'nothing'}, not {value}"


def _printed(key: str, block: str) -> list[str]:
    return re.findall(rf"^\s+{re.escape(key)} = (.*)$", block, re.MULTILINE)


def _settings(scene: Scene) -> dict[str, str]:
    source = scene.alias
    settings = {
        "clusters": f"{source}, {_TARGET}",
        f"{source}.bootstrap.servers": scene.source.bootstrap_servers,
        f"{_TARGET}.bootstrap.servers": scene.target.bootstrap_servers,
        f"{source}->{_TARGET}.enabled": "true",
        f"{source}->{_TARGET}.topics": ", ".join(scene.workload.topic_names),
        f"{_TARGET}->{source}.enabled": "false",
        "replication.factor": "1",
    }
    for topic in ("checkpoints", "heartbeats", "offset-syncs"):
        settings[f"{topic}.topic.replication.factor"] = "1"
    for kind in ("offset", "status", "config"):
        settings[f"{kind}.storage.replication.factor"] = "1"
    return settings


def _placed(scene: Scene) -> dict[str, str]:
    """The tuning under the names by which dedicated mode finds it."""
    producer = {f"{_TARGET}.producer.{key}": value for key, value in producer_tuning(scene.workload).items()}
    consumer = {f"{scene.alias}.consumer.{key}": value for key, value in consumer_tuning().items()}
    return {"tasks.max": str(tasks(scene.workload)), **producer, **consumer}


def command_line(jars: Path, logging: Path, properties: Path) -> list[str]:
    return [
        *(java_executable(), *_JVM),
        *(f"-Dlog4j2.configurationFile={logging}", "-cp", f"{jars}/*"),
        *("org.apache.kafka.connect.mirror.MirrorMaker", str(properties)),
    ]
