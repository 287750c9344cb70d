"""What lies on a cluster, as files: a folder per cluster, a JSON file per internal topic, a record a line.

    FOLDER/cluster.json          its id
    FOLDER/topics.json           every topic: id, partitions
    FOLDER/groups.json           every group: committed offsets and metadata, as the coordinator gives them
    FOLDER/logs.json             the records of topics that aren't internal: what a mirror holds, as the truth
    FOLDER/internal/TOPIC.json   every record that a `read_committed` reader sees

The records are read by librdkafka, so that no code of the product stands between the log and the file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import Message

from causeway.brokers.transport.connection import Network, Wire
from causeway.brokers.transport.topic_metadata import TopicMetadata
from causeway.brokers.wire.consumer_groups import ConsumerGroups
from causeway.core.copy.ports import Refused
from causeway.core.model.naming import is_internal
from causeway.lab.cluster import LabCluster
from tests.golden.stored import as_text
from tests.integration.failback.stage import read

_PEERS_OWN = ("mm2-configs", "mm2-offsets", "mm2-status")
"""Kafka Connect's of the MirrorMaker 2 that is taken over from."""
_MOST_VALUE_BYTES = 100
"""Of a data record: what is longer is shown by its beginning."""


def dump_cluster(cluster: LabCluster, folder: Path) -> None:
    topics, groups = _ask(cluster)
    write_json(folder / "cluster.json", {"name": cluster.name, "id": cluster.cluster_id})
    described = {
        name: {"id": str(found.topic_id), "partitions": len(found.leaders)} for name, found in topics.items()
    }
    write_json(folder / "topics.json", described)
    write_json(folder / "groups.json", groups)
    logs: dict[str, object] = {}
    for name, found in topics.items():
        if name.startswith(("__", *_PEERS_OWN)):
            continue
        records = read(cluster, name, len(found.leaders))
        if is_internal(name) or name.endswith("heartbeats"):
            every = [as_row(m) for p in sorted(records) for m in records[p]]
            write_json(folder / "internal" / f"{name}.json", every)
        else:
            logs[name] = {str(p): [_short(m) for m in records[p]] for p in sorted(records)}
    write_json(folder / "logs.json", logs)


def as_row(message: Message) -> dict[str, object]:
    row: dict[str, object] = {
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp_ms": message.timestamp()[1],
        "key": as_text(message.key()),
        "value": as_text(message.value()),
    }
    if message.headers():
        row["headers"] = [[name, as_text(value)] for name, value in message.headers()]
    return row


def _short(message: Message) -> list[object]:
    """Offset, time and value."""
    value = message.value()
    return [message.offset(), message.timestamp()[1], as_text(value and value[:_MOST_VALUE_BYTES])]


def _ask(cluster: LabCluster) -> tuple[dict[str, TopicMetadata], dict[str, object]]:
    network = Network()
    wire = Wire(cluster.endpoint(), network)

    async def work() -> tuple[dict[str, TopicMetadata], dict[str, object]]:
        await wire.connect()
        groups = ConsumerGroups(wire)
        found = await groups.committed(sorted(await groups.listed()))
        told: dict[str, object] = {}
        for name, offsets in sorted(found.items()):
            assert not isinstance(offsets, Refused), (name, offsets)
            told[name] = {
                str(tp): {
                    "topic": tp.topic,
                    "partition": tp.partition,
                    "offset": c.offset,
                    "metadata": c.metadata,
                }
                for tp, c in sorted(offsets.items())
            }
        return dict(sorted((await wire.topics(None)).items())), told

    try:
        return network.run(work)
    finally:
        wire.disconnect()
        network.close()


def write_json(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_laid_out(content, 0) + "\n", encoding="utf-8")


def _laid_out(content: object, depth: int) -> str:
    """A line for each thing that is short enough to be read in one."""
    flat = json.dumps(content, ensure_ascii=False)
    if not content or not isinstance(content, Mapping | list) or (len(flat) <= 100 and depth > 0):
        return flat
    if isinstance(content, list) and not isinstance(content[0], Mapping | list):
        return flat
    inside = (
        [
            f"{json.dumps(str(key), ensure_ascii=False)}: {_laid_out(each, depth + 1)}"
            for key, each in content.items()
        ]
        if isinstance(content, Mapping)
        else [json.dumps(each, ensure_ascii=False) for each in content]
    )
    pad = " " * (depth + 1)
    opening, closing = "{}" if isinstance(content, Mapping) else "[]"
    return f"{opening}\n{pad}" + f",\n{pad}".join(inside) + f"\n{' ' * depth}{closing}"
