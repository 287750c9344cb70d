"""The ground on which a mirror is tried: two clusters, links, a writer, readers, and the schedule of faults.

What strikes brokers and network, and when, is decided here, by the seed: the same for every mirror. What runs
the mirror, and how its own processes are struck, is a subclass's.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import KafkaException

from causeway.core.kernel.errors import CausewayError, ClusterTrouble
from causeway.core.kernel.identity import TopicPartition
from causeway.lab.cluster import LabCluster
from tests.proofs.chaos.parts import outages
from tests.proofs.chaos.parts.links import Links
from tests.proofs.chaos.parts.open_transactions import OpenTransactions
from tests.proofs.chaos.parts.processes import TookTooLong, wait_until
from tests.proofs.chaos.parts.readers import Digests, Following, follow, read_all
from tests.proofs.chaos.parts.writers import TOPICS, Writer
from tests.proofs.chaos.proof import Proof
from tests.proofs.chaos.schedule import Fault, Size, endless_faults, fate_of, plan_faults

_LONGEST_WAIT_SECONDS = 2.0
Say = Callable[[str], None]
TARGETS = {f"sf.{name}": count for name, count in TOPICS.items()}


class CampaignFailed(AssertionError):
    """With the seed and everything that happened, so that it can be played again."""


@dataclass(slots=True)
class Ground(ABC):
    source: LabCluster
    target: LabCluster
    folder: Path
    seed: int
    size: Size
    say: Say
    is_over: Callable[[], bool] | None = None
    """Asked before each fault: the schedule is played again and again until it says so."""
    events: list[str] = field(default_factory=list)
    counts: dict[Fault, int] = field(default_factory=dict)
    hits: int = 0
    """Faults that found a transaction of the flow open."""
    is_hit: bool = False
    """Whether the one at work did."""
    links: Links | None = None
    chance: random.Random = field(init=False)
    """The mirror's own: how its runs are started."""
    fate: random.Random = field(init=False)
    """The fault's own."""
    writer: Writer = field(init=False)
    committed: Following = field(init=False)
    uncommitted: Following = field(init=False)
    open_transactions: OpenTransactions = field(init=False)
    began: float = field(default_factory=time.monotonic)

    def play(self) -> Proof:
        """Everything from the first record to the proof; whatever was started is stopped again."""
        self.chance = random.Random(self.seed)
        try:
            self._begin()
            for number, fault in enumerate(self._faults(), 1):
                self.fate = fate_of(self.seed, number)
                self._suffer(number, fault)
            return self._end()
        except (AssertionError, TookTooLong, OSError, CausewayError, KafkaException) as failure:
            raise CampaignFailed(self._story(failure)) from failure
        finally:
            self._stop()

    # what faults do with a ground

    def note(self, event: str) -> None:
        self.events.append(f"{time.monotonic() - self.began:7.1f} s  {event}")
        self.say(self.events[-1])
        with (self.folder / "events.log").open("a") as log:
            log.write(f"{self.events[-1]}\n")

    def wait(self, is_so: Callable[[], object], what: str) -> None:
        wait_until(is_so, what)

    def connections(self) -> tuple[str, str]:
        """How the mirror reaches source and target."""
        reach = self.links.connection_json if self.links else LabCluster.connection_json
        return reach(self.source), reach(self.target)

    @abstractmethod
    def wait_until_copied(self) -> None:
        """What is on the source by now is on the target."""

    # a mirror's own

    @abstractmethod
    def _make_ready(self, fault: Fault) -> None:
        """The mirror runs, in the way in which this fault can strike it."""

    @abstractmethod
    def _strike(self, fault: Fault) -> None:
        """One that is the mirror's own; back when it is overcome, or will be."""

    @abstractmethod
    def _wait_for_progress(self, is_so: Callable[[], bool]) -> None: ...

    @abstractmethod
    def _prove(self) -> Proof:
        """The mirror catches up and ends; compare."""

    @abstractmethod
    def _stop_mirror(self) -> None: ...

    # the parts

    def _faults(self) -> Iterator[Fault]:
        order = random.Random(self.seed)
        if self.is_over is None:
            yield from plan_faults(self.size, order)
            return
        for fault in endless_faults(self.size, order):
            if self.is_over():
                return
            yield fault

    def _begin(self) -> None:
        if self.size.has_links:
            self.links = Links((self.source, self.target), self.folder)
            self.links.start()
        self.writer = Writer(self.source.endpoint(), self.seed, live_per_second=self.size.live_per_second)
        self.writer.burst(self.size.records_in_front)
        self.writer.start_live()
        self.note(f"seed {self.seed}; {self.writer.committed:,} records on the source in front")
        servers = self.target.bootstrap_servers
        self.committed = follow("committed", servers, "read_committed", self.folder, TARGETS)
        self.uncommitted = follow("uncommitted", servers, "read_uncommitted", self.folder, TARGETS)
        self.open_transactions = OpenTransactions(
            self.target.endpoint(),
            [TopicPartition(name, number) for name, count in TARGETS.items() for number in range(count)],
        )

    def _suffer(self, number: int, fault: Fault) -> None:
        self._make_ready(fault)
        burst = self._burst(fault)
        try:
            self._wait_for_a_moment()
            self.note(f"fault {number}: {fault}")
            self.is_hit = self._is_hit(fault)
            if fault in outages.INFLICT:
                outages.INFLICT[fault](self)
            else:
                self._strike(fault)
        finally:
            burst.join()
        self.hits += self.is_hit
        self.counts[fault] = self.counts.get(fault, 0) + 1
        self.wait_until_copied()

    def _wait_for_a_moment(self) -> None:
        """Somewhere in the middle of copying what is being written, with a transaction open if it can be."""
        base, share = self.uncommitted.records, self.fate.uniform(0.02, 0.6)
        wanted = base + share * self.size.records_per_fault
        self._wait_for_progress(lambda: self.uncommitted.records >= wanted)
        until = time.monotonic() + _LONGEST_WAIT_SECONDS
        while not self.open_transactions.now() and time.monotonic() < until:
            time.sleep(0.01)

    def _is_hit(self, fault: Fault) -> bool:
        return fault is not Fault.SECOND_RUN and bool(self.open_transactions.now())

    def _burst(self, fault: Fault) -> threading.Thread:
        return self.writer.burst_beside(
            self.size.records_per_fault, with_ledger=fault is not Fault.SOURCE_KILL
        )

    def _end(self) -> Proof:
        """Heal, run until caught up, compare."""
        self.writer.stop_live()
        outages.wait_until_in_sync(self.target)
        return self._prove()

    def read_source(self) -> dict[str, Digests]:
        return read_all("source", self.source.bootstrap_servers, "read_committed", self.folder, TOPICS)

    def _stop(self) -> None:
        self._stop_mirror()
        if hasattr(self, "writer"):
            with contextlib.suppress(ClusterTrouble):  # of a broker that a failure left dead
                self.writer.stop_live()
        for name in ("committed", "uncommitted"):
            following = getattr(self, name, None)
            if following is not None:
                following.process.kill_all()
        if hasattr(self, "open_transactions"):
            self.open_transactions.close()
        if self.links is not None:
            self.links.stop()

    def _story(self, failure: BaseException) -> str:
        return "\n".join((f"seed {self.seed}: {failure}", "What happened:", *self.events))
