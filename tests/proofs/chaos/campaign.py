"""A campaign: a source that is written, a flow that is copied, readers that follow, and faults, by a seed.

The proof doesn't use the flow's own word: it compares what readers saw, record by record and in order. Two
numbers of the product are held against it: what the last run's report says of repeats, and `verify_flow`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from causeway.core.kernel.identity import TopicPartition
from causeway.usecases.verify.partition_pair import PartitionPair
from causeway.usecases.verify.partitions import verify_flow
from tests.proofs.chaos import faults
from tests.proofs.chaos.parts.processes import wait_until
from tests.proofs.chaos.parts.spark_runs import Launcher, SparkRun, StandaloneCluster
from tests.proofs.chaos.parts.testbed import CampaignFailed, Ground
from tests.proofs.chaos.parts.writers import TOPICS
from tests.proofs.chaos.proof import Proof, prove
from tests.proofs.chaos.schedule import Fault

__all__ = ["BROKER_SETTINGS", "Campaign", "CampaignFailed"]

BROKER_SETTINGS = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"}
_RUN_FOR_SECONDS = 360_000.0


@dataclass(slots=True)
class Campaign(Ground):
    """Causeway's, through Spark."""

    run: SparkRun | None = None
    launcher: Launcher = field(init=False)
    standalone: StandaloneCluster = field(init=False)

    # what faults do with a campaign

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
        self.wait_beside(
            lambda: old.exit_code is not None, f"{old.holder} ends, {new.holder} has taken over", new
        )
        said = f"{new.holder} took over"
        if old.exit_code != 4 or said not in old.process.output():
            raise AssertionError(
                f"{old.holder} ended with {old.exit_code}, not with 4 and '{said}': {old.tail()}"
            )

    def succeed(self, dead: SparkRun) -> SparkRun:
        """The run after one that was killed, at once, in one of the three ways there are."""
        how = self.chance.choices(("take over", "same run id", "watch for silence"), (5, 4, 1))[0]
        ways: dict[str, dict[str, object]] = {
            "take over": {"take_over": True},
            "same run id": {"run_id": dead.run_id},
        }
        self.run = self.launch(how, **ways.get(how, {}))
        return self.run

    def wait_until_copied(self) -> None:
        """The live `read_committed` reader has as many records as the source by now."""
        wanted = self.writer.committed
        self.wait_beside(lambda: self.committed.records >= wanted, f"{wanted:,} records copied", self.run)

    def wait_beside(self, is_so: Callable[[], object], what: str, alive: SparkRun | None) -> None:
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

    # a ground's parts

    def _begin(self) -> None:
        self.standalone = StandaloneCluster(self.folder)
        Ground._begin(self)
        self.launcher = Launcher(
            *self.connections(), self.folder, standalone=self.standalone, settles=self.size.settles
        )
        if self.size.faults.get(Fault.EXECUTOR_KILL):
            self.standalone.start()

    def _make_ready(self, fault: Fault) -> None:
        on_cluster = fault is Fault.EXECUTOR_KILL
        if self.run is None:
            self.run = self.launch("first run", on_cluster=on_cluster)
        elif on_cluster:
            self.replace_run("for executors", on_cluster=True)
        elif fault is Fault.FREEZE_PAST_TIME_OUT and not self.run.is_short:
            self.replace_run("for a short time-out", is_short=True)
        self.wait_beside(lambda: self.run and self.run.has_begun, "the run begins", self.run)

    def _wait_for_progress(self, is_so: Callable[[], bool]) -> None:
        assert self.run is not None
        self.wait_beside(is_so, "copying goes on", self.run)

    def _strike(self, fault: Fault) -> None:
        faults.INFLICT[fault](self)

    def _prove(self) -> Proof:
        last = self.replace_run("the last one", run_for=None)
        self.wait(lambda: last.exit_code is not None, "the last run ends")
        if last.exit_code != 0:
            raise AssertionError(f"the last run ended with {last.exit_code}: {last.tail(3000)}")
        self.note("healed and caught up; comparing")
        report = last.report()
        saw_committed, saw_uncommitted = self.committed.finish(), self.uncommitted.finish()
        source = self.read_source()
        pairs = [
            PartitionPair(source=TopicPartition(name, p), target=TopicPartition(f"sf.{name}", p))
            for name, count in TOPICS.items()
            for p in range(count)
        ]
        verified = verify_flow(self.source.endpoint(), self.target.endpoint(), pairs)
        return prove(
            source, saw_committed, saw_uncommitted, report, verified,
            faults=self.counts, hits=self.hits, runs=len(self.launcher.started), events=self.events,
            seconds=time.monotonic() - self.began,
        )  # fmt: skip

    def _stop_mirror(self) -> None:
        if hasattr(self, "launcher"):
            self.launcher.stop()
        if hasattr(self, "standalone"):
            self.standalone.stop()
