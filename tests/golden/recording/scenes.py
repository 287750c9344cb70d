"""What is recorded of one flow at a time: runs, people's commands, groups, upkeep.

Each scene has flows and topics of its own, named for it. Values are written once per partition, so a record
of a mirror can be found again on the source by its value.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import multiprocessing
import os
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from causeway.brokers.admin.acls import AclChanges
from causeway.brokers.wire.lane_transaction import LaneTransaction
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.ports import Appended
from causeway.core.copy.report import RunReport
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.identity import TopicPartition
from causeway.core.model.flow import CopyLimits, Flow, RefusedPolicy, Start, Upkeep
from causeway.core.model.group_filter import FlowGroups
from causeway.core.records.compression import Codec
from causeway.core.records.records import Record, encode_batch
from causeway.core.state.acl import Acl
from causeway.lab.clients import producer
from causeway.lab.cluster import LabCluster
from causeway.usecases.copy.blocking_driver import copy_flow
from causeway.usecases.copy.run import RunOptions
from causeway.usecases.copy.worker import LaneWorker
from causeway.usecases.groups.sync import sync_groups
from causeway.usecases.offsets.maintain_map import maintain_map
from causeway.usecases.repair import adopt as adopting
from causeway.usecases.repair import set_positions
from causeway.usecases.repair.accept_gap import accept_gap
from causeway.usecases.repair.adopt import adopt_partition
from causeway.usecases.repair.reconcile import reconcile_partition
from causeway.usecases.repair.restart_topic import restart_topic
from causeway.usecases.repair.set_positions import Reason
from causeway.usecases.run_lock.fence import fence_flow, lift_fence
from causeway.usecases.run_lock.ownership import RunOwner
from causeway.usecases.upkeep.heartbeats import write_heartbeat
from causeway.usecases.upkeep.sync import sync_flow
from tests.integration.fidelity.cases import NOBODY, noise
from tests.integration.fidelity.raw_log import RawLog, create
from tests.integration.groups.stage import commit, make_topic, write_in_transactions
from tests.proofs.gaps.loss_cases import cut_log
from tests.support.inline_flow import delete_records, delete_topic, grow_topic
from tests.support.killing import killed_in_front_of
from tests.support.mirroring import Mirror, make_flow

AMY = Reason(by="amy", because="a golden record")
_SECONDS = 60.0
_KILLED = 9
A_BATCH_EACH = CopyLimits(transaction_bytes=1, fetch_bytes=256 << 10)
"""A transaction for every batch of the source."""


@dataclass
class Ground:
    """Two clusters, and the flows that were run on them."""

    sf: LabCluster
    nyc: LabCluster
    home: Path
    definitions: dict[str, object] = field(default_factory=dict)

    def define(self, flow: Flow) -> Flow:
        told = dataclasses.asdict(flow) | {"naming": repr(flow.naming)}
        self.definitions[flow.name] = told
        return flow

    def mirror(self, name: str, *topics: str, **changes: Any) -> Mirror:
        return Mirror(self.define(make_flow(name, *topics, **changes)), self.sf, self.nyc)

    @property
    def ends(self) -> tuple[ClusterEndpoint, ClusterEndpoint]:
        return self.sf.endpoint(), self.nyc.endpoint()


def write(
    cluster: LabCluster, topic: str, numbers: Iterable[int], partition: int = 0, **settings: Any
) -> None:
    """In batches of ten."""
    client = producer(cluster.endpoint(), batch_num_messages=10, **settings)
    for n in numbers:
        client.produce(topic, f"{n}".encode(), f"key {n % 7}".encode(), partition=partition)
    assert client.flush(_SECONDS) == 0


def caught_up(report: RunReport) -> None:
    assert (report.outcome, report.lag, report.parked) == ("caught up", 0, []), report


def parked(report: RunReport) -> list[str]:
    return sorted(p.source for p in report.parked)


# Runs


def plain(ground: Ground) -> None:
    """Many transactions, an empty partition, a compacted source, aborted transactions, records without a
    time, heartbeats."""
    make_topic(ground.sf, "plain-orders", 3)
    make_topic(ground.sf, "plain-payments", 1)
    _compacted(ground.sf, "plain-ledger")
    _timeless(ground.sf, "plain-timeless")
    mirror = ground.mirror(
        "plain",
        "plain-.*",
        limits=A_BATCH_EACH,
        upkeep=Upkeep(emit_heartbeats=True, mirror_heartbeats=True),
    )
    for first in (0, 40, 80):
        write(ground.sf, "plain-orders", range(first, first + 40))
        write(ground.sf, "plain-orders", range(first, first + 2), 1)
        write_in_transactions(
            ground.sf, "plain-payments", range(first, first + 40), 1, random.Random(first + 2)
        )
        write_heartbeat(mirror.flow, ground.sf.endpoint())
        caught_up(mirror.run())
    mirror.close()


def _compacted(cluster: LabCluster, topic: str) -> None:
    """With holes that its cleaner made, before anything is mirrored."""
    settings = {
        "cleanup_policy": "compact",
        "segment_ms": "500",
        "min_cleanable_dirty_ratio": "0.01",
        "delete_retention_ms": "100",
    }
    make_topic(cluster, topic, 1, **settings)
    client = producer(cluster.endpoint(), batch_num_messages=10)
    dice, wanted, late = random.Random(3), 150, 150
    for n in range(wanted):
        client.produce(topic, f"{n}".encode(), f"key {dice.randrange(40)}".encode(), partition=0)
    assert client.flush(_SECONDS) == 0
    deadline = time.monotonic() + 120
    with RawLog(cluster) as log:
        while not any(head.has_holes for head, _ in log.batches(TopicPartition(topic, 0))):
            assert time.monotonic() < deadline, "the cleaner doesn't come"
            time.sleep(0.7)
            write(cluster, topic, [late])  # a late record rolls the segment
            late += 1


def _timeless(cluster: LabCluster, topic: str) -> None:
    create(cluster, topic, 1)
    batch = encode_batch([Record(n, -1, b"k", b"%d" % n) for n in range(4)], codec=Codec.NONE, **NOBODY)
    with RawLog(cluster) as log:
        (answer,) = log.append({TopicPartition(topic, 0): batch}).values()
    assert isinstance(answer, Appended), answer


def beginnings(ground: Ground) -> None:
    """`start: latest` with a partition that has no record yet, and `start: <timestamp>`."""
    make_topic(ground.sf, "latest-clicks", 2)
    write(ground.sf, "latest-clicks", range(7))
    latest = ground.mirror("latest", "latest-clicks", start=Start("latest"))
    caught_up(latest.run())
    write(ground.sf, "latest-clicks", range(7, 12))
    caught_up(latest.run())
    latest.close()
    make_topic(ground.sf, "since-logs")
    client = producer(ground.sf.endpoint())
    now_ms = int(time.time() * 1_000)
    for n in range(20):
        client.produce("since-logs", f"{n}".encode(), partition=0, timestamp=now_ms - 20_000 + n * 1_000)
    assert client.flush(_SECONDS) == 0
    since = ground.mirror("since", "since-logs", start=Start("timestamp", now_ms - 8_000))
    caught_up(since.run())
    since.close()


def varied(ground: Ground) -> None:
    """Four lanes, then two."""
    make_topic(ground.sf, "varied-a", 4)
    for lanes, first in ((4, 0), (2, 10)):
        for partition in range(4):
            write(ground.sf, "varied-a", range(first, first + 5), partition)
        mirror = ground.mirror("varied", "varied-a", lanes=lanes)
        caught_up(mirror.run())
        mirror.close()


def settled(ground: Ground) -> None:
    """Workers die before their third commit. The next one keeps what was left open, twice; that of another
    flow copies it again."""
    for name, is_settled in (("settled", True), ("repeated", False)):
        topic = f"{name}-a"
        make_topic(ground.sf, topic, 2)
        for partition in (0, 1):
            write(ground.sf, topic, range(60), partition)
        mirror = ground.mirror(name, topic, lanes=1, settle=is_settled, limits=A_BATCH_EACH)
        for _ in range(2 if is_settled else 1):
            _die(_dies_at_its_third_commit, mirror.flow, ground)
        caught_up(mirror.run(take_over=True))
        mirror.close()


def held(ground: Ground) -> None:
    """A run that gave signs of life, died, and was followed by none."""
    make_topic(ground.sf, "held-a")
    write(ground.sf, "held-a", range(10))
    mirror = ground.mirror("held", "held-a")
    _die(_dies_while_it_follows, mirror.flow, ground)
    mirror.close()


def _die(how: Callable[..., None], flow: Flow, ground: Ground) -> None:
    """In a process of its own, that nobody cleans up after."""
    dying = multiprocessing.get_context("spawn").Process(target=how, args=(flow, *ground.ends))
    dying.start()
    dying.join(_SECONDS)
    assert dying.exitcode == _KILLED, dying.exitcode


def _dies_at_its_third_commit(flow: Flow, source: ClusterEndpoint, target: ClusterEndpoint) -> None:
    ends, end = itertools.count(1), LaneTransaction.end

    async def die(self: LaneTransaction, *, commit: bool) -> None:
        if next(ends) == 3:
            os._exit(_KILLED)
        await end(self, commit=commit)

    LaneTransaction.end = die  # type: ignore[method-assign]
    _copy(flow, source, target, None)


def _dies_while_it_follows(flow: Flow, source: ClusterEndpoint, target: ClusterEndpoint) -> None:
    append = WireTarget.append_plain

    async def die(self: WireTarget, topic: str, key: bytes, value: bytes | None) -> int:
        offset = await append(self, topic, key, value)
        if key.startswith(b"1/alive/"):
            os._exit(_KILLED)
        return offset

    WireTarget.append_plain = die  # type: ignore[method-assign]
    _copy(flow, source, target, _SECONDS)


def _copy(
    flow: Flow, source: ClusterEndpoint, target: ClusterEndpoint, run_for_seconds: float | None
) -> None:
    worker = LaneWorker(source, target)
    options = RunOptions(holder=RunOwner(name="who dies", run_id="1"), run_for_seconds=run_for_seconds)
    copy_flow(flow, source, target, lambda tasks: [worker.run(t) for t in tasks], options, print)


def quarantined(ground: Ground) -> None:
    make_topic(ground.sf, "quarantined-a")
    make_topic(ground.nyc, "sf.quarantined-a", 1, max_message_bytes="1000")
    client = producer(ground.sf.endpoint())
    for n in range(12):
        value = noise(1_500) if n in (3, 4, 9) else f"{n}".encode()
        client.produce("quarantined-a", value, b"k%d" % n, partition=0, headers=[("h", b"%d" % n)])
    assert client.flush(_SECONDS) == 0
    mirror = ground.mirror("quarantined", "quarantined-a", on_refused=RefusedPolicy.QUARANTINE)
    caught_up(mirror.run())
    mirror.close()


def maintained(ground: Ground) -> None:
    """Fifty transactions; the oldest runs are merged, and the flow goes on."""
    make_topic(ground.sf, "maintained-a")
    mirror = ground.mirror("maintained", "maintained-a", lanes=1, limits=A_BATCH_EACH)
    write(ground.sf, "maintained-a", range(500))
    caught_up(mirror.run())
    assert maintain_map(mirror.flow, ground.nyc.endpoint(), print).transactions == 1
    write(ground.sf, "maintained-a", range(500, 520))
    caught_up(mirror.run())
    mirror.close()


# People


def adopted(ground: Ground) -> None:
    """One partition of two, which goes on ten records later; then the topic grows."""
    make_topic(ground.sf, "adopted-a", 2)
    mirror = ground.mirror("adopted", "adopted-a")
    for partition in (0, 1):
        write(ground.sf, "adopted-a", range(20), partition)
    caught_up(mirror.run())
    write(ground.sf, "adopted-a", range(20, 40))
    _adopt(ground, mirror.flow, "adopted-a", 30)
    caught_up(mirror.run())
    grow_topic(ground.sf, "adopted-a", 3)
    write(ground.sf, "adopted-a", range(4), 2)
    caught_up(mirror.run())
    mirror.close()


def _adopt(ground: Ground, flow: Flow, topic: str, offset: int) -> None:
    at = TopicPartition(topic, 0)
    adopt_partition(flow, *ground.ends, at, offset, AMY, even_though_healthy=True)


def fences(ground: Ground) -> None:
    """One that stands; one that an adoption stood above; one that was lifted; one that a killed adoption has
    left; and one of those above the operator's own."""
    made: dict[str, Flow] = {}
    for name in ("shut", "shut_above", "lifted", "cut_short", "shut_twice"):
        topic = name.replace("_", "-")
        make_topic(ground.sf, topic)
        write(ground.sf, topic, range(10))
        mirror = ground.mirror(name, topic)
        caught_up(mirror.run())
        made[name] = mirror.flow
        if name != "cut_short":
            fence_flow(mirror.flow, ground.nyc.endpoint(), by="ops", because=f"maintenance of {name}")
        if name == "lifted":
            lift_fence(mirror.flow, ground.nyc.endpoint(), by="ops", because="it is over")
            write(ground.sf, topic, range(10, 15))
            caught_up(mirror.run())
        mirror.close()
    _adopt(ground, made["shut_above"], "shut-above", 5)
    for name in ("cut_short", "shut_twice"):
        with pytest.MonkeyPatch.context() as patch, killed_in_front_of(adopting, "remember_pair"):
            patch.setattr(set_positions, "_lower", lambda *_: None)  # killed with -9: nobody cleans up
            _adopt(ground, made[name], name.replace("_", "-"), 5)


def gaps(ground: Ground) -> None:
    """Records that retention took before they were copied, and a source's log that was cut."""
    for topic in ("gaps-taken", "gaps-cut"):
        make_topic(ground.sf, topic)
    mirror = ground.mirror("gaps", "gaps-.*")
    write(ground.sf, "gaps-taken", range(10))
    for first in range(0, 20, 5):
        write(ground.sf, "gaps-cut", range(first, first + 5))
    caught_up(mirror.run())
    write(ground.sf, "gaps-taken", range(10, 20))
    delete_records(ground.sf, "gaps-taken", 15)
    ground.sf.stop()
    cut_log(ground.sf, "gaps-cut", 10)
    ground.sf.start()
    write(ground.sf, "gaps-cut", range(100, 103))
    assert parked(mirror.run()) == ["gaps-cut-0", "gaps-taken-0"]
    for topic, first, end in (("gaps-taken", 10, 15), ("gaps-cut", 10, 20)):
        accept_gap(mirror.flow, *ground.ends, TopicPartition(topic, 0), first, end, AMY)
    caught_up(mirror.run())
    mirror.close()


def restarted(ground: Ground) -> None:
    """A source that was made again, and a mirror that was deleted."""
    for topic in ("restarted-source", "restarted-mirror"):
        make_topic(ground.sf, topic, 2)
        write(ground.sf, topic, range(10))
    mirror = ground.mirror("restarted", "restarted-.*")
    caught_up(mirror.run())
    delete_topic(ground.sf, "restarted-source")
    make_topic(ground.sf, "restarted-source", 2)
    write(ground.sf, "restarted-source", range(50, 56))
    delete_topic(ground.nyc, "sf.restarted-mirror")
    assert mirror.run().parked
    for topic in ("restarted-source", "restarted-mirror"):
        restart_topic(mirror.flow, *ground.ends, topic, AMY)
    caught_up(mirror.run())
    mirror.close()


def reconciled(ground: Ground) -> None:
    """Past a foreign writer, and under a flow's new name."""
    make_topic(ground.sf, "reconciled-a")
    make_topic(ground.sf, "renamed-a")
    for topic in ("reconciled-a", "renamed-a"):
        write(ground.sf, topic, range(20))
    mirror = ground.mirror("reconciled", "reconciled-a")
    caught_up(mirror.run())
    write(ground.nyc, "sf.reconciled-a", range(900, 903))
    write(ground.sf, "reconciled-a", range(20, 30))
    assert parked(mirror.run()) == ["reconciled-a-0"]
    reconcile_partition(mirror.flow, *ground.ends, TopicPartition("reconciled-a", 0), AMY)
    caught_up(mirror.run())
    mirror.close()
    old, new = ground.mirror("renamed_old", "renamed-a"), ground.mirror("renamed_new", "renamed-a")
    caught_up(old.run())
    write(ground.sf, "renamed-a", range(20, 25))
    assert parked(new.run()) == ["renamed-a-0"]
    reconcile_partition(new.flow, *ground.ends, TopicPartition("renamed-a", 0), AMY)
    caught_up(new.run())
    old.close()
    new.close()


def standing_still(ground: Ground) -> None:
    """A run's last word: one partition of two is parked."""
    for topic in ("still-healthy", "still-foreign"):
        make_topic(ground.sf, topic)
        write(ground.sf, topic, range(10))
    mirror = ground.mirror("still", "still-.*")
    caught_up(mirror.run())
    write(ground.nyc, "sf.still-foreign", range(900, 901))
    for topic in ("still-healthy", "still-foreign"):
        write(ground.sf, topic, range(10, 15))
    assert parked(mirror.run()) == ["still-foreign-0"]
    mirror.close()


# Groups and upkeep


def groups(ground: Ground) -> None:
    """Checkpoints, offset syncs, and commits with stamps, once and once more."""
    make_topic(ground.sf, "groups-a", 2)
    mirror = ground.mirror("groups", "groups-a", limits=A_BATCH_EACH)
    rules = FlowGroups(include=("groups-a\\..*",), sync_offsets=True)
    for first in (0, 30):
        for partition in (0, 1):
            write(ground.sf, "groups-a", range(first, first + 30), partition)
        caught_up(mirror.run())
        commit(ground.sf, "groups-a.reader", {("groups-a", 0): first + 5, ("groups-a", 1): first + 29}, "own")
        commit(ground.sf, "groups-a.at-the-end", {("groups-a", 0): first + 30})
        sync_groups(mirror.flow, rules, *ground.ends, print, writes=True)
    commit(ground.nyc, "groups-a.own-way", {("sf.groups-a", 0): 3}, "read on by itself")
    mirror.close()


def ruled(ground: Ground) -> None:
    """ACLs of a mirror: two that were created, one that was taken away again."""
    make_topic(ground.sf, "ruled-a", 1, retention_ms="7200000")
    write(ground.sf, "ruled-a", range(5))
    mirror = ground.mirror("ruled", "ruled-a", upkeep=Upkeep(sync_settings=True, sync_acls=True))
    caught_up(mirror.run())
    rules = [
        Acl("ruled-a", "literal", f"User:{who}", "*", operation, permission)  # type: ignore[arg-type]
        for who, operation, permission in (
            ("bob", "Read", "Allow"),
            ("carol", "Describe", "Allow"),
            ("dave", "Read", "Deny"),
        )
    ]
    changes = AclChanges(ground.sf.endpoint())
    assert asyncio.run(changes.create(rules)) == {}
    assert sync_flow(mirror.flow, *ground.ends, dry_run=False).refused == ()
    assert asyncio.run(changes.remove(rules[1:2])) == {}
    assert len(sync_flow(mirror.flow, *ground.ends, dry_run=False).removed) == 1
    mirror.close()


SCENES: tuple[Callable[[Ground], None], ...] = (
    plain,
    beginnings,
    varied,
    settled,
    held,
    quarantined,
    maintained,
    adopted,
    fences,
    gaps,
    restarted,
    reconciled,
    standing_still,
    groups,
    ruled,
)
