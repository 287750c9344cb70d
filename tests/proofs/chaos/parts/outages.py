"""What happens to brokers and to the network: the same to every mirror, decided by the fault's fate alone.

After each, the cluster heals: one fault at a time is what three replicas promise to survive.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient

from causeway.lab.clients import admin_client
from causeway.lab.cluster import LabCluster
from tests.proofs.chaos.parts.processes import wait_until
from tests.proofs.chaos.schedule import Fault

if TYPE_CHECKING:
    from tests.proofs.chaos.parts.testbed import Ground

_PREFERRED = 0
_HEALED_SECONDS = 180.0
logging.getLogger("kafka").setLevel(logging.CRITICAL + 1)


def kill_target(ground: Ground) -> None:
    _kill_cluster(ground, ground.target)
    wait_until_in_sync(ground.target)


def kill_source(ground: Ground) -> None:
    _kill_cluster(ground, ground.source)


def kill_node(ground: Ground) -> None:
    node, seconds = _node(ground), ground.fate.uniform(0, 8)
    ground.target.kill(node)
    ground.note(f"node {node} of {ground.target.name} is killed, back after {seconds:.1f} s")
    time.sleep(seconds)
    ground.target.start_node(node)
    wait_until_in_sync(ground.target)


def freeze_node(ground: Ground) -> None:
    """Mostly longer than its session: others lead then, and it wakes believing itself a leader."""
    node, seconds = _node(ground), ground.fate.uniform(1, 12)
    ground.target.pause(node)
    try:
        ground.note(f"node {node} of {ground.target.name} is frozen for {seconds:.1f} s")
        time.sleep(seconds)
    finally:
        ground.target.resume(node)
    wait_until_in_sync(ground.target)


def restart_node(ground: Ground) -> None:
    node = _node(ground)
    ground.note(f"node {node} of {ground.target.name} is restarted")
    ground.target.stop_node(node)
    ground.target.start_node(node)
    wait_until_in_sync(ground.target)


def move_leaders(ground: Ground) -> None:
    """Of all partitions, those that hold transactions and positions too: by another order of the replicas."""
    before = _replicas(ground.target)
    admin = KafkaAdminClient(bootstrap_servers=ground.target.bootstrap_servers)
    try:
        wished = {
            place: ground.fate.sample(nodes, len(nodes)) for place, (_, nodes) in sorted(before.items())
        }
        refused = {place: why for place, why in admin.alter_partition_reassignments(wished).items() if why}
        assert not refused, f"leaders can't be moved: {refused}"
        wait_until(lambda: _elected(ground.target, admin, wished), "preferred leaders", timeout_seconds=60)
    finally:
        admin.close()
    moved = sum(wished[place][0] != leader for place, (leader, _) in before.items())
    ground.note(f"{moved} of {len(before)} partitions of {ground.target.name} have another leader")
    wait_until_in_sync(ground.target)


def silence_link(ground: Ground) -> None:
    assert ground.links is not None
    name = ground.fate.choice(ground.links.names)
    seconds = ground.fate.uniform(1, ground.size.longest_silence_seconds)
    ground.note(f"no byte between the mirror and {name} for {seconds:.1f} s")
    ground.links.silence(name, seconds)


def cut_link(ground: Ground) -> None:
    assert ground.links is not None
    name, seconds = ground.fate.choice(ground.links.names), ground.fate.uniform(0, 8)
    ground.note(f"the mirror can't connect to {name} for {seconds:.1f} s, its connections are reset")
    ground.links.cut(name, seconds)


INFLICT: dict[Fault, Callable[[Ground], None]] = {
    Fault.TARGET_KILL: kill_target,
    Fault.SOURCE_KILL: kill_source,
    Fault.NODE_KILL: kill_node,
    Fault.NODE_FREEZE: freeze_node,
    Fault.NODE_RESTART: restart_node,
    Fault.LEADERS_MOVED: move_leaders,
    Fault.LINK_SILENT: silence_link,
    Fault.LINK_CUT: cut_link,
}


def wait_until_in_sync(cluster: LabCluster) -> None:
    """Every replica of every partition is in sync again."""
    if len(cluster.node_numbers) == 1:
        return
    client = admin_client(cluster.endpoint())
    wait_until(
        lambda: _is_in_sync(client, len(cluster.node_numbers)),
        f"all replicas of {cluster.name} in sync",
        timeout_seconds=_HEALED_SECONDS,
    )


def _is_in_sync(client: AdminClient, nodes: int) -> bool:
    time.sleep(0.1)
    try:
        found = client.list_topics(timeout=5)
    except KafkaException:
        return False
    return len(found.brokers) == nodes and all(
        part.leader >= 0 and len(part.isrs) == len(part.replicas)
        for topic in found.topics.values()
        for part in topic.partitions.values()
    )


def _replicas(cluster: LabCluster) -> dict[TopicPartition, tuple[int, list[int]]]:
    """Leader and replicas of each partition."""
    found = admin_client(cluster.endpoint()).list_topics(timeout=30)
    return {
        TopicPartition(name, number): (part.leader, list(part.replicas))
        for name, topic in found.topics.items()
        for number, part in topic.partitions.items()
    }


def _elected(cluster: LabCluster, admin: KafkaAdminClient, wished: dict[TopicPartition, list[int]]) -> bool:
    """The new order of the replicas has to arrive before an election goes by it."""
    admin.elect_leaders(_PREFERRED, raise_errors=False)
    time.sleep(0.1)
    found = _replicas(cluster)
    return all(found[place][0] == nodes[0] for place, nodes in wished.items())


def _node(ground: Ground) -> int:
    return ground.fate.choice(ground.target.node_numbers)


def _kill_cluster(ground: Ground, cluster: LabCluster) -> None:
    cluster.kill()
    seconds = ground.fate.uniform(0, 5)
    ground.note(f"{cluster.name} is killed, back after {seconds:.1f} s")
    time.sleep(seconds)
    cluster.start()
