"""A mirror with groups to be failed over, and the truth about it, read by another client than ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Producer

from causeway.brokers.wire.consumer_groups import ConsumerGroups
from causeway.core.copy.report import RunReport
from causeway.core.failover.drill_run import DrillRun, clones_of
from causeway.core.failover.impact_sheet import Sheet
from causeway.core.failover.request import FailoverRequest
from causeway.core.journal.journal import FailoverRun, Status
from causeway.core.model.flow import Flow
from causeway.core.model.group_filter import FlowGroups
from causeway.lab.cluster import LabCluster
from causeway.usecases.failover.drill import drill
from causeway.usecases.failover.execute import FailedOver, Operator, fail_over, preview_failover
from causeway.usecases.failover.rollback import RolledBack, roll_back
from causeway.usecases.groups.sync import sync_groups
from causeway.usecases.journal.store import read_journal
from causeway.usecases.session.both_clusters import open_target, state_on
from causeway.usecases.session.source_may_be_gone import open_target_session
from tests.integration.failover.reader import read_all
from tests.integration.groups.stage import commit, committed, make_topic
from tests.support.mirroring import Mirror, make_flow

BASE_MS = 1_790_000_000_000
_SECONDS = 30.0
Seen = tuple[int, int, int, str]
"""Partition, offset, time, value."""


def _yes(_sheet: Sheet) -> None:
    """Somebody types the flow's name."""


@dataclass
class FailoverStage:
    """One flow over one topic; its groups' names begin with the topic's."""

    source: LabCluster
    target: LabCluster
    stem: str
    partitions: int = 2
    settings: Mapping[str, str] = field(default_factory=dict)
    named: Flow | None = None
    """A flow of some flows.yaml, with one topic of the stem's name; None: the stage makes one."""
    mirror: Mirror = field(init=False)

    def __post_init__(self) -> None:
        flow = self.named or make_flow(self.stem.replace("-", "_"), self.stem)
        self.mirror = Mirror(flow, self.source, self.target)
        # The records are weeks old: retention would take them in the middle of a test.
        make_topic(self.source, self.stem, self.partitions, **{"retention_ms": "-1", **self.settings})

    @property
    def flow(self) -> Flow:
        return self.mirror.flow

    @property
    def mirrored(self) -> str:
        return self.flow.naming.target_topic(self.stem)

    @property
    def rules(self) -> FlowGroups:
        return FlowGroups(include=(f"{self.stem}\\..*",), sync_offsets=True)

    def group(self, name: str) -> str:
        return f"{self.stem}.{name}"

    def write(self, times_ms: Iterable[int], partition: int = 0, **settings: Any) -> None:
        """One record per time, in this order; its value is its number."""
        producer = Producer({**self.source.endpoint().settings, "linger.ms": 5, **settings})
        for number, time_ms in enumerate(times_ms):
            producer.produce(self.stem, f"{number}".encode(), partition=partition, timestamp=time_ms)
        assert producer.flush(_SECONDS) == 0

    def run(self) -> RunReport:
        return self.mirror.run()

    def sync(self) -> None:
        endpoints = self.source.endpoint(), self.target.endpoint()
        sync_groups(self.flow, self.rules, *endpoints, lambda _: None, writes=True)

    def commit(self, name: str, offsets: Mapping[int, int], *, on_target: bool = False) -> None:
        cluster, topic = (self.target, self.mirrored) if on_target else (self.source, self.stem)
        commit(cluster, self.group(name), {(topic, p): offset for p, offset in offsets.items()})

    def there(self, name: str) -> dict[int, int]:
        """What the target holds."""
        held = committed(self.target, self.group(name))
        return {p: offset for (topic, p), offset in held.items() if topic == self.mirrored}

    def wish(self, at_ms: int | None, **more: Any) -> FailoverRequest:
        return FailoverRequest(flow=self.flow.name, at_ms=at_ms, **more)

    def sheet(self, wish: FailoverRequest) -> Sheet:
        return preview_failover(self.flow, self.source.endpoint(), self.target.endpoint(), wish, self.rules)

    def fail_over(
        self, wish: FailoverRequest, consent: Callable[[Sheet], None] = _yes, plan: str = ""
    ) -> FailedOver:
        operator = Operator(
            by="a test", consent=consent, say=lambda _: None, expected_plan=plan, still_seconds=0.3
        )
        endpoints = self.source.endpoint(), self.target.endpoint()
        return fail_over(self.flow, *endpoints, wish, self.rules, operator)

    def rehearse(self) -> DrillRun:
        endpoints = self.source.endpoint(), self.target.endpoint()
        return drill(self.flow, *endpoints, self.rules, by="a test", say=lambda _: None)

    def roll_back(self, run: str) -> RolledBack:
        return roll_back(
            self.flow,
            self.target.endpoint(),
            run,
            by="a test",
            consent=lambda _run, _remaining: None,
            say=lambda _: None,
        )

    def seen(self, cluster: LabCluster, topic: str) -> list[Seen]:
        """All that a `read_committed` reader sees, partition by partition in order."""
        return [
            (p, seen.offset, seen.time_ms, seen.value.decode())
            for (_, p), log in read_all(cluster, [topic], self.partitions).items()
            for seen in log
        ]

    def fence(self) -> str | None:
        """Why the flow is fenced; the source may be gone."""
        with open_target(self.target.endpoint()) as (network, target):
            fence = network.run(lambda: state_on(target, self.flow.name)).fence
        return None if fence is None else fence.because

    def journal(self) -> list[FailoverRun]:
        with open_target_session(self.target.endpoint()) as sides:
            return sides.network.run(lambda: read_journal(sides, self.flow.name)).of_flow(self.flow.name)

    def clones(self) -> list[str]:
        """That a drill has left: by the wire, because the admin client leaves out groups without members."""
        with open_target_session(self.target.endpoint()) as sides:
            listed = sides.network.run(ConsumerGroups(sides.target.wire).listed)
        return [name for name in listed if name.startswith(clones_of(self.flow.name))]

    def mirrored_records(self, partition: int = 0) -> list[Seen]:
        return [seen for seen in self.seen(self.target, self.mirrored) if seen[0] == partition]


def statuses(stage: FailoverStage) -> list[tuple[str, Status]]:
    return [(run.run, run.status) for run in stage.journal()]
