"""How many records a consumer that fails over reads again: the same groups under Causeway and MirrorMaker 2.

    python -m tests.proofs.translation.lags [--records 600000] [--groups 20]

One partition is written while MirrorMaker follows it, which is its best case: its checkpoint task sees
every offset sync. Then groups stay at places that lag by ten to half a million records, and each
mirror says where they go on. Writes its part of docs/comparison.md and docs/offsets.svg.
"""

from __future__ import annotations

import argparse
import random
import struct
import sys
import tempfile
import time
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, NewTopic

from causeway.core.kernel.identity import SourceOffset, TopicPartition
from causeway.core.model.naming import PrefixNaming
from causeway.lab.clients import admin_client, producer, wait_for_leaders
from causeway.lab.cluster import LabCluster
from causeway.lab.jars import ensure_jars
from causeway.lab.record import ClusterSpec
from causeway.usecases.offsets.translate import load_flow_map
from tests.bench.peers.mirror_maker import JARS, LOG4J2, command_line, render
from tests.proofs.chaos.parts.processes import Started, start, wait_until
from tests.proofs.chaos.peer.compare import PAGE, SECTIONS
from tests.proofs.translation.plot import Curve, log_log
from tests.proofs.translation.truth import contents
from tests.support.mirroring import Mirror, make_flow
from tests.support.sections import write_section

LAGS = (10, 100, 1_000, 10_000, 100_000, 500_000)
TOPIC, CHECKPOINTS = "lagging", "sf.checkpoints.internal"
_SOURCE, _PEER, _OURS = (TopicPartition(name, 0) for name in (TOPIC, f"sf.{TOPIC}", f"cw.{TOPIC}"))
_QUIET_SECONDS = 30.0
_WRITTEN_PER_SECOND = 20_000


@dataclass(frozen=True, slots=True)
class LagRow:
    """Of the groups with about that lag: records read again, each; None: no answer."""

    lag: int
    ours: list[int | None]
    peer: list[int | None]


def compare(folder: Path, *, records: int, groups: int, seed: int) -> list[LagRow]:
    source, target = (LabCluster(ClusterSpec(name=n), folder / n, say=_say) for n in ("sf", "nyc"))
    peer: Started | None = None
    try:
        source.start()
        target.start()
        admin = admin_client(source.endpoint())
        admin.create_topics([NewTopic(TOPIC, 1)])[TOPIC].result(60)
        wait_for_leaders(admin, {TOPIC: 1})
        peer = _start_peer(folder, source, target)
        _write(source, records, target)
        wait_until(lambda: _end(target, _PEER) >= records, "MirrorMaker 2 has copied all")
        flow = make_flow("lags", TOPIC, source="lags", naming=PrefixNaming("cw"), lanes=1)
        mirror = Mirror(flow, source, target)
        assert mirror.run().lag == 0
        mirror.close()
        places = _commit(admin, records, groups, random.Random(seed))
        found = _checkpoints(target, places)
        index = load_flow_map(flow, target.endpoint())
        ours = {group: index.to_target(_SOURCE, SourceOffset(at)) for group, (_, at) in places.items()}
        return _rows(places, _truth(source, target, _OURS), ours, _truth(source, target, _PEER), found)
    finally:
        if peer is not None:
            peer.kill_all()
        source.stop()
        target.stop()


def _start_peer(folder: Path, source: LabCluster, target: LabCluster) -> Started:
    """Defaults, but for how often it looks: nobody should have to wait ten minutes for a group to be seen."""
    (folder / "log4j2.properties").write_text(LOG4J2)
    settings = {
        "clusters": "sf, nyc",
        "sf.bootstrap.servers": source.bootstrap_servers,
        "nyc.bootstrap.servers": target.bootstrap_servers,
        "sf->nyc.enabled": "true",
        "sf->nyc.topics": TOPIC,
        "nyc->sf.enabled": "false",
        "replication.factor": "1",
        "refresh.groups.interval.seconds": "5",
        "emit.checkpoints.interval.seconds": "5",
        **{f"{name}.topic.replication.factor": "1" for name in ("checkpoints", "heartbeats", "offset-syncs")},
        **{f"{kind}.storage.replication.factor": "1" for kind in ("offset", "status", "config")},
    }
    (folder / "mm2.properties").write_text(render(settings))
    command = command_line(ensure_jars(JARS), folder / "log4j2.properties", folder / "mm2.properties")
    started = start("mirror-maker", command, folder / "mirror-maker.log")
    admin = admin_client(target.endpoint())
    wait_until(lambda: _PEER.topic in admin.list_topics(timeout=10).topics, "MirrorMaker 2 has begun")
    return started


def _write(source: LabCluster, records: int, target: LabCluster) -> None:
    """At a pace, so that MirrorMaker follows: its syncs are then as dense as they get."""
    client = producer(source.endpoint())
    began = time.monotonic()
    for number in range(records):
        client.produce(TOPIC, b"%090d" % number, b"%d" % (number % 1_000), partition=0)
        if number % 1_000 == 0:
            client.poll(0)
            time.sleep(max(0.0, number / _WRITTEN_PER_SECOND - (time.monotonic() - began)))
            if number % 50_000 == 0 and number:
                wait_until(lambda at=number: _end(target, _PEER) >= at - 50_000, "MirrorMaker 2 follows")  # type: ignore[misc]
    assert client.flush(120) == 0


def _end(cluster: LabCluster, tp: TopicPartition) -> int:
    consumer = Consumer({**cluster.endpoint().settings, "group.id": "unused"})
    try:
        return int(consumer.get_watermark_offsets(Place(tp.topic, tp.partition), timeout=20)[1])
    finally:
        consumer.close()


def _commit(
    admin: AdminClient, records: int, groups: int, chance: random.Random
) -> dict[str, tuple[int, int]]:
    """Groups by name: their lag's row, and their position."""
    places = {
        f"lag-{lag}-{number}": (lag, records - chance.randint(lag * 4 // 5, lag * 6 // 5))
        for lag in LAGS
        if lag * 6 // 5 < records
        for number in range(groups)
    }
    for group, (_, at) in places.items():
        wish = ConsumerGroupTopicPartitions(group, [Place(TOPIC, 0, at)])
        admin.alter_consumer_group_offsets([wish])[group].result(30)
    return places


def _checkpoints(target: LabCluster, groups: Mapping[str, object]) -> dict[str, int]:
    """What MirrorMaker's checkpoints topic says, once it has it of all, or nothing for a while."""
    consumer = Consumer({**target.endpoint().settings, "group.id": "unused", "auto.offset.reset": "earliest"})
    consumer.assign([Place(CHECKPOINTS, 0, 0)])
    found: dict[str, int] = {}
    since = time.monotonic()
    while len(found) < len(groups) and time.monotonic() - since < _QUIET_SECONDS:
        message = consumer.poll(1.0)
        if message is None or message.error():
            continue
        group, downstream = parse_checkpoint(message.key(), message.value())
        if group in groups:
            found[group], since = downstream, time.monotonic()
    consumer.close()
    return found


def parse_checkpoint(key: bytes, value: bytes) -> tuple[str, int]:
    """The group, and the offset on the target."""
    (length,) = struct.unpack_from(">h", key)
    version, _, downstream = struct.unpack_from(">hqq", value)
    assert version == 0
    return key[2 : 2 + length].decode(), downstream


def _truth(source: LabCluster, target: LabCluster, there: TopicPartition) -> list[int]:
    """By source offset: where its record lies on the target."""
    (here_at, here), (there_at, arrived) = contents(source, _SOURCE), contents(target, there)
    assert here == arrived, f"{there} isn't a mirror without repeats"
    assert here_at == list(range(len(here)))
    return there_at


def _rows(
    places: Mapping[str, tuple[int, int]],
    our_truth: Sequence[int],
    ours: Mapping[str, object],
    peer_truth: Sequence[int],
    peer: Mapping[str, int],
) -> list[LagRow]:
    def again(truth: Sequence[int], at: int, answer: object) -> int | None:
        """Records between where it goes on and where it should; a skip would be negative."""
        if not isinstance(answer, int):
            return None
        return at - bisect_left(truth, answer)

    rows: dict[int, LagRow] = {}
    for group, (lag, at) in places.items():
        row = rows.setdefault(lag, LagRow(lag, [], []))
        row.ours.append(again(our_truth, at, ours[group]))
        row.peer.append(again(peer_truth, at, peer.get(group)))
    return list(rows.values())


def part(rows: Sequence[LagRow], *, records: int, day: str) -> str:
    def cells(values: Sequence[int | None]) -> str:
        told = sorted(value for value in values if value is not None)
        if not told:
            return f"- | - | {len(values)}"
        mean, p95 = sum(told) / len(told), told[min(int(len(told) * 0.95), len(told) - 1)]
        return f"{mean:,.0f} | {p95:,} | {len(values) - len(told)}"

    lines = "\n".join(
        f"| about {r.lag:,} | {len(r.ours)} | {cells(r.ours)} | {cells(r.peer)} |" for r in rows
    )
    return f"""\
# What a consumer reads again after a failover

The same groups under both, on the same source: one partition of {records:,} plain records. MirrorMaker 2
followed the source while it was written, with its defaults but for intervals of five seconds. That is its
best case: its checkpoint task has seen every sync.

Each group rests with about the lag named. Where it would continue is what MirrorMaker 2's checkpoint says,
and what `causeway translate` says. A number below 0 would be a skip. Played on {day} by
`python -m tests.proofs.translation.lags`.

| lag | groups | Causeway: read again, mean | 95 % | no answer | MirrorMaker 2: mean | 95 % | no answer |
|---|---|---|---|---|---|---|---|
{lines}

![records read again by lag](offsets.svg)
"""


def plot(rows: Sequence[LagRow]) -> str:
    def means(values: Sequence[Sequence[int | None]]) -> list[tuple[float, float]]:
        told = [[v for v in each if v is not None] for each in values]
        return [(r.lag, sum(t) / len(t)) for r, t in zip(rows, told, strict=True) if t]

    return log_log(
        "Records read again after a failover",
        "the group's lag, records",
        [
            Curve("MirrorMaker 2", "#c44e52", means([row.peer for row in rows])),
            Curve("Causeway", "#2a7f62", means([row.ours for row in rows])),
        ],
    )


def _say(line: str) -> None:
    print(line, flush=True)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="lags", description="Records read again after a failover, by lag.")
    parser.add_argument("--records", type=int, default=650_000)
    parser.add_argument("--groups", type=int, default=20, help="for each lag")
    parser.add_argument("--seed", type=int, default=20261119)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="causeway-lags-") as folder:
        rows = compare(Path(folder), records=options.records, groups=options.groups, seed=options.seed)
    for row in rows:
        _say(str(row))
    if any(value is None or value for row in rows for value in row.ours):
        _say("Causeway read records again, skipped some, or had no answer")
        return 1
    text = part(rows, records=options.records, day=time.strftime("%Y-%m-%d", time.gmtime()))
    write_section(PAGE, "offsets", text, SECTIONS)
    PAGE.with_name("offsets.svg").write_text(plot(rows), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
