"""A campaign: a source that is written, a flow that is copied, readers that follow, and faults, by a seed.

The proof doesn't use the flow's own word: it compares what readers saw, record by record and in order. Two
numbers of the product are held against it: what the last run's report says of repeats, and `verify_flow`.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from causeway.core.errors import ClusterTrouble
from causeway.core.identity import TopicPartition
from causeway.flows.verify import PartitionPair, verify_flow
from causeway.lab.cluster import LabCluster
from tests.chaos import faults
from tests.chaos.open_transactions import OpenTransactions
from tests.chaos.processes import TookTooLong, wait_until
from tests.chaos.proof import Proof, prove
from tests.chaos.readers import Digests, Following, follow, read_all
from tests.chaos.schedule import Fault, Size, plan_faults
from tests.chaos.spark_runs import Launcher, SparkRun, StandaloneCluster
from tests.chaos.writers import TOPICS, Writer

Say = Callable[[str], None]
BROKER_SETTINGS = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"}
_RUN_FOR_SECONDS = 3600.0


class CampaignFailed(AssertionError):
    """With the seed and everything that happened, so that it can be played again."""


@dataclass(slots=True)
class Campaign:
    source: LabCluster
    target: LabCluster
    folder: Path
    seed: int
    size: Size
    say: Say
    events: list[str] = field(default_factory=list)
    counts: dict[Fault, int] = field(default_factory=dict)
    hits: int = 0
    """Faults that found a transaction of the flow open."""
    run: SparkRun | None = None
    chance: random.Random = field(init=False)
    writer: Writer = field(init=False)
    launcher: Launcher = field(init=False)
    committed: Following = field(init=False)
    uncommitted: Following = field(init=False)
    open_transactions: OpenTransactions = field(init=False)
    _began: float = field(default_factory=time.monotonic)

    def play(self) -> Proof:
        """Everything from the first record to the proof; whatever was started is stopped again."""
        self.chance = random.Random(self.seed)
        standalone = StandaloneCluster(self.folder)
        self.launcher = Launcher(
            self.source, self.target, self.folder, standalone=standalone, settles=self.size.settles
        )
        try:
            self._begin(standalone)
            for fault in plan_faults(self.size, self.chance):
                self._suffer(fault)
            return self._end()
        except (AssertionError, TookTooLong, OSError) as failure:
            raise CampaignFailed(self._story(failure)) from failure
        finally:
            self._stop(standalone)

    # what faults do with a campaign

    def note(self, event: str) -> None:
        self.events.append(f"{time.monotonic() - self._began:7.1f} s  {event}")
        self.say(self.events[-1])
        with (self.folder / "events.log").open("a") as log:
            log.write(f"{self.events[-1]}\n")

    def launch(self, how: str, **options: object) -> SparkRun:
        on_cluster = options.pop("on_cluster", False)
        is_short = self.size.has_short_time_outs and self.chance.random() < 0.5
        run = self.launcher.launch(
            run_for=options.pop("run_for", _RUN_FOR_SECONDS),  # type: ignore[arg-type]
            is_short=bool(options.pop("is_short", is_short)),
            on_cluster=bool(on_cluster),
            **options,  # type: ignore[arg-type]
        )
        kind = "a Spark cluster" if on_cluster else "local[*]"
        self.note(f"{run.holder} starts ({how}, {kind}{', short time-out' if run.is_short else ''})")
        return run

    def replace_run(self, how: str, **options: object) -> SparkRun:
        """A new run takes over from the one at work, which has to end and say so."""
        old = self.run
        new = self.launch(how, take_over=True, **options)
        if old is not None and old.exit_code is None:
            self.expect_superseded(old, new)
        self.run = new
        return new

    def expect_superseded(self, old: SparkRun, new: SparkRun) -> None:
        self.wait(lambda: old.exit_code is not None, f"{old.holder} ends, {new.holder} has taken over", new)
        said = f"{new.holder} took over"
        if old.exit_code != 4 or said not in old.process.output():
            raise AssertionError(
                f"{old.holder} ended with {old.exit_code}, not with 4 and '{said}': {old.tail()}"
            )

    def succeed(self, dead: SparkRun) -> SparkRun:
        """The run after one that was killed, at once, in one of the three ways there are."""
        how = self.chance.choices(("take over", "same run id", "watch for silence"), (5, 4, 1))[0]
        options = {"take over": {"take_over": True}, "same run id": {"run_id": dead.run_id}}.get(how, {})
        self.run = self.launch(how, **options)
        return self.run

    def wait_until_copied(self, run: SparkRun | None = None) -> None:
        """The live `read_committed` reader has as many records as the source by now."""
        wanted = self.writer.committed
        self.wait(lambda: self.committed.records >= wanted, f"{wanted:,} records copied", run or self.run)

    def wait(self, is_so: Callable[[], object], what: str, alive: SparkRun | None = None) -> None:
        """Wait, as long as the run that should bring it about lives, or has ended well."""

        def is_so_now() -> object:
            if is_so():
                return True
            if alive is not None and alive.exit_code not in (None, 0) and not is_so():
                raise AssertionError(
                    f"{alive.holder} ended with {alive.exit_code} before '{what}': {alive.tail(3000)}"
                )
            return False

        wait_until(is_so_now, what)

    def wait_for_a_moment(self, records: int) -> None:
        """Somewhere in the middle of copying `records` more."""
        base, share = self.uncommitted.records, self.chance.uniform(0.02, 0.6)
        assert self.run is not None
        self.wait(lambda: self.uncommitted.records >= base + share * records, "copying goes on", self.run)

    # the parts

    def _begin(self, standalone: StandaloneCluster) -> None:
        if self.size.faults.get(Fault.EXECUTOR_KILL):
            standalone.start()
        self.writer = Writer(self.source.endpoint(), self.seed, live_per_second=self.size.live_per_second)
        self.writer.burst(self.size.records_in_front)
        self.writer.start_live()
        self.note(f"seed {self.seed}; {self.writer.committed:,} records on the source in front")
        targets = {f"sf.{name}": count for name, count in TOPICS.items()}
        servers = self.target.bootstrap_servers
        self.committed = follow("committed", servers, "read_committed", self.folder, targets)
        self.uncommitted = follow("uncommitted", servers, "read_uncommitted", self.folder, targets)
        self.open_transactions = OpenTransactions(
            self.target.endpoint(),
            [TopicPartition(name, number) for name, count in targets.items() for number in range(count)],
        )

    def _suffer(self, fault: Fault) -> None:
        on_cluster = fault is Fault.EXECUTOR_KILL
        if self.run is None:
            self.run = self.launch("first run", on_cluster=on_cluster)
        elif on_cluster:
            self.replace_run("for executors", on_cluster=True)
        elif fault is Fault.FREEZE_PAST_TIME_OUT and not self.run.is_short:
            self.replace_run("for a short time-out", is_short=True)
        self.wait(lambda: self.run and self.run.has_begun, "the run begins", self.run)
        burst = self._burst(fault)
        try:
            self.wait_for_a_moment(self.size.records_per_fault)
            self.note(f"fault {sum(self.counts.values()) + 1}: {fault}")
            self.hits += self.is_hit(fault)
            faults.INFLICT[fault](self)
        finally:
            burst.join()
        self.counts[fault] = self.counts.get(fault, 0) + 1
        self.wait_until_copied()

    def is_hit(self, fault: Fault) -> bool:
        return fault is not Fault.SECOND_RUN and bool(self.open_transactions.now())

    def _burst(self, fault: Fault) -> threading.Thread:
        return self.writer.burst_beside(
            self.size.records_per_fault, with_ledger=fault is not Fault.SOURCE_KILL
        )

    def _end(self) -> Proof:
        """Heal, run until caught up, compare."""
        self.writer.stop_live()
        last = self.replace_run("the last one", run_for=None)
        self.wait(lambda: last.exit_code is not None, "the last run ends")
        if last.exit_code != 0:
            raise AssertionError(f"the last run ended with {last.exit_code}: {last.tail(3000)}")
        self.note("healed and caught up; comparing")
        report = last.report()
        saw_committed, saw_uncommitted = self.committed.finish(), self.uncommitted.finish()
        source = self._read_source()
        pairs = [
            PartitionPair(source=TopicPartition(name, p), target=TopicPartition(f"sf.{name}", p))
            for name, count in TOPICS.items()
            for p in range(count)
        ]
        verified = verify_flow(self.source.endpoint(), self.target.endpoint(), pairs)
        return prove(
            source, saw_committed, saw_uncommitted, report, verified,
            faults=self.counts, hits=self.hits, runs=len(self.launcher.started), events=self.events,
            seconds=time.monotonic() - self._began,
        )  # fmt: skip

    def _read_source(self) -> dict[str, Digests]:
        return read_all("source", self.source.bootstrap_servers, "read_committed", self.folder, TOPICS)

    def _stop(self, standalone: StandaloneCluster) -> None:
        self.launcher.stop()
        standalone.stop()
        if hasattr(self, "writer"):
            with contextlib.suppress(ClusterTrouble):  # of a broker that a failure left dead
                self.writer.stop_live()
        for name in ("committed", "uncommitted"):
            following = getattr(self, name, None)
            if following is not None:
                following.process.kill_all()
        if hasattr(self, "open_transactions"):
            self.open_transactions.close()

    def _story(self, failure: BaseException) -> str:
        return "\n".join((f"seed {self.seed}: {failure}", "What happened:", *self.events))
