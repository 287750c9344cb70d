"""Six ways in which records get lost without a mirror's knowledge, on topics of their own, for any mirror to
meet.

A seed decides the sizes. `prepare` writes what is mirrored first, `strike` does the damage while no mirror
works, and what the source shows then is what everybody is measured by. A log is cut while its broker is
stopped: the last batches of its segment go, as an unclean election takes them from a follower that becomes
leader. That the topic keeps its id and the broker elects itself in a new leader epoch is Kafka's own doing.
"""

from __future__ import annotations

import random
import shutil
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from causeway.core.records.batches import split_batches
from causeway.lab.cluster import LabCluster
from tests.support.inline_flow import create_topic, delete_records, delete_topic
from tests.support.quick import quick_producer
from tests.support.reading import values_of

_SECONDS = 60.0
_BATCH = 5


class Case(StrEnum):
    RETENTION = "retention passes the position"
    SHORTER = "source recreated, shorter"
    REGROWN = "source recreated, grown past the position"
    CUT = "source truncated"
    CUT_REGROWN = "source truncated, grown past the position"
    TARGET_DELETED = "target deleted"

    @property
    def word(self) -> str:
        return self.name.lower().replace("_", "-")


_CUT = (Case.CUT, Case.CUT_REGROWN)


@dataclass(slots=True)
class Victim:
    """One topic that something happens to."""

    case: Case
    topic: str
    mirrored: int
    """Records that the mirror has when it happens."""
    kept: int
    """Of those, what a cut leaves."""
    more: int
    """Records written since then, or of the topic that was made again."""
    lost: int
    """Of those, what retention takes before they are copied."""
    before: list[str] = field(default_factory=list, repr=False)
    """The source as it was mirrored."""

    @property
    def mirror(self) -> str:
        return f"sf.{self.topic}"


def victims_of(seed: int, repeats: int) -> list[Victim]:
    chance = random.Random(seed)
    found: list[Victim] = []
    for number in range(repeats):
        for case in Case:
            mirrored = chance.randint(20, 60)
            past = chance.randint(1, 40)
            more = past if case not in (Case.SHORTER, Case.REGROWN) else mirrored + past
            if case is Case.SHORTER:
                more = chance.randint(1, mirrored - 1)
            elif case is Case.RETENTION:
                more = past + 5
            kept = chance.randrange(_BATCH, mirrored - 1, _BATCH)
            if case is Case.CUT_REGROWN:
                more = mirrored - kept + past
            topic = f"gap-{case.word}-{number}-{uuid.uuid4().hex[:6]}"
            found.append(Victim(case, topic, mirrored, kept, more, chance.randint(1, past)))
    return found


class GapGround:
    """Two clusters of one node each, and the topics; `witness` is one that nothing happens to."""

    def __init__(self, source: LabCluster, target: LabCluster, seed: int, repeats: int) -> None:
        self.source, self.target = source, target
        self.victims = victims_of(seed, repeats)
        self.witness = f"gap-witness-{uuid.uuid4().hex[:6]}"

    @property
    def topics(self) -> list[str]:
        return [self.witness, *(victim.topic for victim in self.victims)]

    def prepare(self) -> None:
        for topic in self.topics:
            create_topic(self.source, topic)
        append(self.source, self.witness, "before", 30)
        for victim in self.victims:
            append(self.source, victim.topic, "before", victim.mirrored)
            victim.before = shown(self.source, victim.topic)

    def strike(self) -> None:
        """Everything at once, while no mirror works; the mirror's own turn comes after it."""
        self._cut()
        for victim in self.victims:
            match victim.case:
                case Case.RETENTION:
                    append(self.source, victim.topic, "since", victim.more)
                    delete_records(self.source, victim.topic, victim.mirrored + victim.lost)
                case Case.SHORTER | Case.REGROWN:
                    delete_topic(self.source, victim.topic)
                    create_topic(self.source, victim.topic)
                    append(self.source, victim.topic, "anew", victim.more)
                case Case.CUT_REGROWN:
                    append(self.source, victim.topic, "since", victim.more)
                case Case.TARGET_DELETED:
                    delete_topic(self.target, victim.mirror)
                    append(self.source, victim.topic, "since", victim.more)
        append(self.source, self.witness, "since", 30)

    def _cut(self) -> None:
        self.source.stop()
        for victim in self.victims:
            if victim.case in _CUT:
                cut_log(self.source, victim.topic, victim.kept)
        self.source.start()


def log_folder(cluster: LabCluster, topic: str) -> Path:
    """Of partition 0."""
    return cluster.home / "node-1" / "data" / f"{topic}-0"


def cut_log(cluster: LabCluster, topic: str, end: int) -> None:
    """Take the batches from `end` on out of a stopped broker's log; what is derived from it goes too."""
    folder = log_folder(cluster, topic)
    (segment,) = folder.glob("*.log")
    data, size = segment.read_bytes(), 0
    for head, batch in split_batches(data):
        if head.base_offset >= end:
            break
        size += len(batch)
    assert 0 < size < len(data), f"{topic} has no batch that begins at {end}"
    segment.write_bytes(data[:size])
    for derived in (*folder.glob("*.index"), *folder.glob("*.timeindex"), *folder.glob("*.snapshot")):
        derived.unlink()


def put_aside(cluster: LabCluster, topics: Iterable[str], folder: Path) -> None:
    for topic in topics:
        shutil.copytree(log_folder(cluster, topic), folder / topic)


def put_back(cluster: LabCluster, topics: Iterable[str], folder: Path) -> None:
    for topic in topics:
        shutil.rmtree(log_folder(cluster, topic))
        shutil.copytree(folder / topic, log_folder(cluster, topic))


def append(cluster: LabCluster, topic: str, what: str, count: int) -> None:
    """Values that no other record has; a batch of a few each, so that a log can be cut before one."""
    client = quick_producer(cluster.endpoint(), linger_ms=1_000)
    token = uuid.uuid4().hex[:6]
    for number in range(count):
        client.produce(topic, f"{what} {token} {number}".encode(), f"key {number % 7}".encode(), partition=0)
        if number % _BATCH == _BATCH - 1:
            assert client.flush(_SECONDS) == 0
    assert client.flush(_SECONDS) == 0


def shown(cluster: LabCluster, topic: str) -> list[str]:
    """The values that a `read_committed` reader sees; none if the topic isn't there."""
    return [value.decode() for value in values_of(cluster, topic)]
