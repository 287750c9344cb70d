"""Many groups on many topics, and a source that is killed with -9 in the middle of its traffic.

It is failed over through each door, to a moment and to `latest`, and taken back each time, while nobody can
ask the source; then the source comes back, and it is failed over for the last time. What each sheet said,
where each group stood and what its consumers then read is held against what readers of both clusters see.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, Message, Producer
from confluent_kafka.admin import NewTopic

from causeway.core.kernel.timestamps import rfc3339
from causeway.core.model.flow import Flow
from causeway.core.model.group_filter import FlowGroups
from causeway.lab.clients import admin_client, wait_for_leaders
from causeway.lab.cluster import LabCluster
from causeway.usecases.groups.sync import sync_groups
from tests.integration.failover.drivers import LATEST, CommandDoor, Door
from tests.integration.failover.reader import Place, read_all, read_on
from tests.integration.failover.trials.crowd_truth import Held, Stands, Trial, Truth
from tests.integration.groups.stage import commit_all
from tests.support.mirroring import end_offsets

_SECONDS = 60.0
_MIRRORED_SECONDS = 180.0
_TICK_SECONDS = 0.05
_RUSH_SECONDS = 1.0
FLOWS = """\
clusters:
  sf: {connection: kafka_sf}
  nyc: {connection: kafka_nyc}
flows:
  crowd: {source: sf, target: nyc, topics: ["crowd-.*"], groups: ["reader-.*"], lanes: 4, retries: 0,
    run_for: 30m, sync.group.offsets.enabled: true}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    topics: int = 20
    partitions: int = 5
    groups: int = 100
    traffic_seconds: float = 30.0
    """Before the kill, without what groups take to commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    size: Size
    failovers: int
    offsets: int
    """That the last one moved."""
    records: int
    lost: int
    rereads: int
    read_on: int
    """Records that the groups' consumers read after the last one."""
    wrong: tuple[str, ...]


@dataclass
class Crowd:
    flow: Flow
    source: LabCluster
    target: LabCluster
    size: Size
    dice: random.Random
    reads: dict[str, list[Place]] = field(init=False)
    """Each group reads all partitions of some topics."""
    synced: Stands = field(default_factory=dict)
    """Where the last group sync saw them."""
    stands: Stands = field(default_factory=dict)
    """Where they had come to when the source died."""
    acknowledged: set[bytes] = field(default_factory=set)
    rush: threading.Event = field(default_factory=threading.Event)
    """From now on as fast as it can be written: no mirror has the last of it when the source dies."""
    moment_ms: int = 0

    def __post_init__(self) -> None:
        partitions = range(self.size.partitions)
        self.topics = [f"crowd-{number}" for number in range(self.size.topics)]
        self.places = [(topic, p) for topic in self.topics for p in partitions]
        self.reads = {
            f"reader-{number}": [(topic, p) for topic in self._some_topics() for p in partitions]
            for number in range(self.size.groups)
        }

    def _some_topics(self) -> list[str]:
        return sorted(self.dice.sample(self.topics, self.dice.randint(1, len(self.topics))))

    def mirrored(self, place: Place) -> Place:
        return self.flow.naming.target_topic(place[0]), place[1]

    def make_topics(self) -> None:
        admin = admin_client(self.source.endpoint())
        for answer in admin.create_topics([NewTopic(t, self.size.partitions) for t in self.topics]).values():
            answer.result(_SECONDS)
        wait_for_leaders(admin, dict.fromkeys(self.topics, self.size.partitions))

    @contextmanager
    def traffic(self) -> Iterator[None]:
        """Goes on, in vain, after the kill: what isn't acknowledged may be there or not."""
        settings = {"linger.ms": 5, "message.timeout.ms": 3_000, "log_level": 0}
        producer = Producer({**self.source.endpoint().settings, **settings})

        def note(error: KafkaError | None, message: Message) -> None:
            if error is None:
                self.acknowledged.add(message.value())

        def write(over: threading.Event) -> None:
            number = 0
            while not over.is_set():
                for topic, partition in self.places:
                    with suppress(BufferError):
                        producer.produce(topic, b"%d" % number, partition=partition, on_delivery=note)
                    number += 1
                producer.poll(0)
                if not self.rush.is_set():
                    time.sleep(_TICK_SECONDS)
            producer.purge()
            producer.flush(5)

        with beside(write):
            yield

    def wait_until_mirrored(self) -> None:
        """Some of each partition."""
        deadline = time.monotonic() + _MIRRORED_SECONDS
        wanted = {self.mirrored(place) for place in self.places}
        while wanted - {at for at, (_, end) in end_offsets(self.target, of="sf.crowd-").items() if end}:
            assert time.monotonic() < deadline, "not all of it is mirrored"
            time.sleep(0.5)

    def groups_read(self) -> None:
        """All are synced; then half of them read on, and the target doesn't know how far."""
        here = {self.mirrored(place): place for place in self.places}
        logs = read_all(self.target, sorted({topic for topic, _ in here}), self.size.partitions)
        ends = {here[place]: len(log) for place, log in logs.items()}
        for group, places in self.reads.items():
            self.synced[group] = {place: self.dice.randint(0, ends[place]) for place in places}
        commit_all(self.source, self.synced)
        rules = FlowGroups(include=("reader-.*",), sync_offsets=True)
        endpoints = self.source.endpoint(), self.target.endpoint()
        sync_groups(self.flow, rules, *endpoints, lambda _: None, writes=True)
        written = {place: end for place, (_, end) in end_offsets(self.source, of="crowd-").items()}
        self.stands = dict(self.synced)
        for group in self.dice.sample(sorted(self.reads), len(self.reads) // 2):
            before = self.synced[group]
            self.stands[group] = {at: self.dice.randint(n, written[at]) for at, n in before.items()}
        commit_all(self.source, self.stands)

    def held(self) -> Held:
        """On the target, by another client than the product's."""
        admin = admin_client(self.target.endpoint())
        asked = {
            name: admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)])[name]
            for name in self.reads
        }
        return {
            name: {
                (tp.topic, tp.partition): tp.offset
                for tp in answer.result(_SECONDS).topic_partitions
                if tp.offset >= 0
            }
            for name, answer in asked.items()
        }

    def truth(self) -> Truth:
        source = read_all(self.source, self.topics, self.size.partitions)
        mirrors = [self.mirrored((topic, 0))[0] for topic in self.topics]
        target = read_all(self.target, mirrors, self.size.partitions)
        assert self.acknowledged <= {seen.value for log in source.values() for seen in log}
        here = {place: target[self.mirrored(place)] for place in self.places}
        return Truth(source, here, self.synced, self.stands, self.moment_ms, self.mirrored)


def play(
    crowd: Crowd, doors: Sequence[Door], by_hand: CommandDoor, mirroring: AbstractContextManager[None]
) -> Played:
    """`mirroring` follows the source; it lives until after the first fence, and is over then."""
    crowd.make_topics()
    with crowd.traffic(), mirroring:
        crowd.wait_until_mirrored()
        time.sleep(crowd.size.traffic_seconds / 2)
        crowd.groups_read()
        crowd.moment_ms = time.time_ns() // 1_000_000_000 * 1_000
        time.sleep(crowd.size.traffic_seconds / 2)
        before = crowd.held()
        crowd.rush.set()
        time.sleep(_RUSH_SECONDS)
        crowd.source.kill()
        trials = [_through(crowd, doors[0], rfc3339(crowd.moment_ms))]
    wrong = _back(crowd, by_hand, trials[-1], before)
    for door, at in _others(doors, rfc3339(crowd.moment_ms)):
        trials.append(_through(crowd, door, at))
        wrong += _back(crowd, by_hand, trials[-1], before)
    crowd.source.start()
    last = _through(crowd, by_hand, LATEST)
    truth = crowd.truth()
    wrong += truth.wrong_logs()
    if not truth.lost:
        wrong.append("nothing was under way when the source died, so nothing is proved")
    wrong += [line for trial in (*trials, last) for line in truth.wrong_with(trial)]
    rest = {group: read_on(crowd.target, group, last.held[group]) for group in crowd.reads}
    wrong += truth.wrong_behind(last, rest)
    return Played(
        size=crowd.size,
        failovers=len(trials) + 1,
        offsets=sum(map(len, last.held.values())),
        records=sum(map(len, truth.source.values())),
        lost=last.sheet["lost_records"]["number"] or 0,
        rereads=sum(move["rereads"]["number"] for move in last.sheet["moves"]),
        read_on=sum(len(log) for logs in rest.values() for log in logs.values()),
        wrong=tuple(wrong),
    )


def _others(doors: Sequence[Door], moment: str) -> list[tuple[Door, str]]:
    return [(door, at) for door in doors for at in (moment, LATEST)][1:]


def _through(crowd: Crowd, door: Door, at: str) -> Trial:
    done = door.fail_over(at)
    asked = "is" if crowd.source.is_running() else "isn't"
    name = f"to {at} by {door.name}, the source {asked} there"
    return Trial(name=name, run=done.run, is_latest=at == LATEST, sheet=done.sheet, held=crowd.held())


def _back(crowd: Crowd, by_hand: CommandDoor, trial: Trial, before: Mapping[str, object]) -> list[str]:
    by_hand.roll_back(trial.run)
    return [] if crowd.held() == before else [f"{trial.name}: taken back, and offsets aren't as before"]


@contextmanager
def beside(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """In a thread, until the block is over."""
    over = threading.Event()
    thread = threading.Thread(target=work, args=(over,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(180)
        assert not thread.is_alive()
