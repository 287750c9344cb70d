"""One story, played twice: as it is, and with a janitor who deletes the flows' positions after each step.

A story says what it does by its steps, and notes what it sees. Played with the janitor, it has to see the
very same: what flows copy, what plans promise, where status finds each partition, how offsets translate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from confluent_kafka import Message

from causeway.core.copy.report import RunReport
from causeway.core.kernel.identity import SourceOffset, TargetOffset, TopicPartition
from causeway.core.model.flow import Flow
from causeway.core.offsets.translation import PartitionMap
from causeway.core.offsets.why_not import AheadOfMirror
from causeway.lab.cluster import LabCluster
from causeway.usecases.inspect.flow_status import inspect_flow
from causeway.usecases.offsets.translate import load_flow_map, mirrored_partitions
from causeway.usecases.session.both_clusters import open_target, state_on
from tests.integration.failback.stage import read
from tests.support.inline_flow import create_topic
from tests.support.janitor import forget_all_positions
from tests.support.mirroring import Mirror, make_flow
from tests.support.quick import quick_producer

_SECONDS = 60.0
_SAMPLED_OFFSETS = range(150)
Noted = list[tuple[str, Any]]
Tell = Callable[["Life"], None]


@dataclass
class Life:
    """`old` and `new` are two clusters; `name` begins whatever the story makes on them."""

    old: LabCluster
    new: LabCluster
    name: str
    has_janitor: bool
    noted: Noted = field(default_factory=list)
    forgotten: int = 0
    flows: list[tuple[Flow, LabCluster]] = field(default_factory=list)
    """Whose translation is asked before and after the janitor, each with its target."""
    writes_plainly: bool = True
    """No marker ends a source's log. A position that was found again by the map stands before that marker,
    and `status` counts it as lag: then only what is parked is compared."""
    looks: bool = True
    """Whether `status` is asked, too. Of a fenced flow with nothing left to copy it looks at a lost position
    as a lane would, and reports earlier why that couldn't go on."""
    _open: list[Callable[[], None]] = field(default_factory=list)
    _written: int = 0

    # what a story makes

    def topic(self, stem: str, partitions: int = 1, **settings: str) -> str:
        name = f"{stem}-{self.name}"
        create_topic(self.old, name, partitions, **settings)
        return name

    def mirror(self, topic: str, **changes: Any) -> Mirror:
        changes = {"name": topic.replace("-", "_"), **changes}
        made = Mirror(make_flow(changes.pop("name"), topic, **changes), self.old, self.new)
        self.leave(made.close)
        self.flows.append((made.flow, self.new))
        return made

    def leave(self, close: Callable[[], None]) -> None:
        """To be called when the story is over."""
        self._open.append(close)

    def close(self) -> None:
        for close in self._open:
            close()

    def write(self, cluster: LabCluster, topic: str, count: int, partition: int = 0) -> None:
        """Values that no other record of the story has."""
        client = quick_producer(cluster.endpoint())
        for _ in range(count):
            self._written += 1
            client.produce(topic, b"%d" % self._written, b"k%d" % (self._written % 7), partition=partition)
        assert client.flush(_SECONDS) == 0

    # its steps

    def run(self, mirror: Mirror) -> RunReport:
        report = mirror.run()
        self.step("run", (report.records, _parked(report)))
        return report

    def note(self, what: str, seen: object) -> None:
        self.noted.append((what, seen))

    def step(self, what: str, seen: object = None) -> None:
        """Something was done; the janitor comes by."""
        self.note(what, seen)
        if self.has_janitor:
            before = self.translated()
            self.forgotten += forget_all_positions(self.old, self.new, of=self._is_ours)
            now = self.translated()
            differs = [
                f"{place}: {was} -> {now.get(place)}"
                for place, was in before.items()
                if now.get(place) != was
            ]
            assert not differs, f"after {what} offsets translate otherwise: {differs[:6]}"
        for flow, target in self.flows if self.looks else ():
            stands, parked = status(flow, self.old if target is self.new else self.new, target)
            self.note("status", (stands if self.writes_plainly else None, parked))

    def _is_ours(self, group: str) -> bool:
        return self.name.replace("-", "_") in group or any(group == flow.group for flow, _ in self.flows)

    def translated(self) -> dict[tuple[str, str, int], object]:
        """Both ways, of every partition that a flow has ever written."""
        found: dict[tuple[str, str, int], object] = {}
        for flow, target in self.flows:
            flow_map = load_flow_map(flow, target.endpoint())
            with open_target(target.endpoint()) as (network, opened):
                state = network.run(partial(state_on, opened, flow.name))
            for tp in mirrored_partitions(state):
                one = flow_map.of_target(tp)
                assert isinstance(one, PartitionMap), one
                there = one.to_targets(map(SourceOffset, _SAMPLED_OFFSETS))
                back = one.to_sources(map(TargetOffset, _SAMPLED_OFFSETS))
                found |= {(str(tp), "to", n): _goes_on_at(each) for n, each in enumerate(there)}
                found |= {(str(tp), "from", n): _came_from(each) for n, each in enumerate(back)}
        return found

    # what can be seen

    def both_sides(self, mirror: Mirror, topic: str, partitions: int = 1) -> None:
        """Each record that readers see, in order."""
        there = mirror.flow.naming.target_topic(topic)
        for side, cluster, name in (("source", self.old, topic), ("mirror", self.new, there)):
            self.note(side, {p: contents(log) for p, log in read(cluster, name, partitions).items()})

    def seen(self, what: str) -> list[Any]:
        return [seen for noted, seen in self.noted if noted == what]


def _goes_on_at(found: object) -> object:
    """Where a group is put: one that is ahead of the mirror is put at its end."""
    return found.target_next if isinstance(found, AheadOfMirror) else found


def _came_from(found: object) -> object:
    return "nowhere yet" if isinstance(found, AheadOfMirror) else found


def contents(log: Sequence[Message]) -> list[tuple[bytes | None, bytes | None]]:
    return [(message.key(), message.value()) for message in log]


def status(flow: Flow, source: LabCluster, target: LabCluster) -> tuple[object, object]:
    """Partition, where it goes on, and its lag; and what is parked."""
    view = inspect_flow(flow, source.endpoint(), target.endpoint())
    stands = sorted((f.pair.source.partition, f.source_next, f.lag) for f in view.plan.partitions)
    return stands, sorted((tp.partition, str(why.reason)) for tp, why in view.parked.items())


def _parked(report: RunReport) -> list[tuple[int, str]]:
    return sorted((int(p.source.rpartition("-")[2]), p.parked["reason"]) for p in report.parked if p.parked)


def told_twice(old: LabCluster, new: LabCluster, name: Callable[[], str], tell: Tell) -> Noted:
    """What the story with the janitor sees is what the one without him sees."""
    told: list[Noted] = []
    for has_janitor in (False, True):
        life = Life(old, new, name(), has_janitor)
        try:
            tell(life)
        finally:
            life.close()
        told.append(life.noted)
        assert (life.forgotten > 0) is has_janitor
    without, with_him = told
    for one, other in zip(without, with_him, strict=True):
        assert one == other, f"with a janitor: {other}, without: {one}"
    return with_him


def at(topic: str, partition: int = 0) -> TopicPartition:
    return TopicPartition(topic, partition)
