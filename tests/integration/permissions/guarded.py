"""A flow whose users have the rights that it needs, and no other; and how a test takes one of them away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from causeway.core.doctor.permissions import doctor_rights
from causeway.core.kernel.acl_vocabulary import NeededRight
from causeway.core.model.flow import Flow
from causeway.core.model.naming import FLOWS_TOPIC, PrefixNaming
from causeway.core.permissions.flow import needed_rights
from causeway.lab.access import Right
from causeway.lab.cluster import LabCluster
from tests.support.inline_flow import (
    InlineFlow,
    create_topic,
    delete_topic,
    mirror_of,
    named,
    topic_ends,
    write,
)

RIGHTS = needed_rights(mirror_of("some_flow", "orders"), ["orders"])
MAP_TOPIC = mirror_of("some_flow", "orders").map_topic
RECORDS = 50


class Guarded:
    """A flow whose users have the rights that it needs, and no other."""

    def __init__(self, source: LabCluster, target: LabCluster, name: str) -> None:
        self.source, self.target, self.user = source, target, f"user-{name}"
        self.orders, self.clicks = f"orders-{name}", f"clicks-{name}"
        flow = mirror_of(f"flow_{name}", self.orders, self.clicks)
        self.flow: Flow = replace(flow, source=f"sf{name}", naming=PrefixNaming(f"sf{name}"))
        for cluster in (source, target):
            cluster.add_user(self.user)
        for topic in (self.orders, self.clicks):
            create_topic(source, topic, retention_ms="90000000")
            write(source, topic, RECORDS)
        self.runs = InlineFlow(
            self.flow, named(source, self.flow.source, self.user), named(target, "nyc", self.user)
        )
        self.rights = needed_rights(self.flow, [self.orders, self.clicks])
        self.give(*self.rights)

    def like(self, example: NeededRight) -> NeededRight:
        """This flow's own right of that kind; on the source, the one on `orders`."""
        names = {
            "orders": self.orders,
            "sf.": f"{self.flow.source}.",
            MAP_TOPIC: self.flow.map_topic,
            "causeway.some_flow": self.flow.group,
            "causeway.some_flow.": f"{self.flow.group}.",
        }
        wanted = replace(example, name=names.get(example.name, example.name))
        assert wanted in self.rights
        return wanted

    def give(self, *rights: NeededRight) -> None:
        """One request to each cluster."""
        for cluster in (self.source, self.target):
            if here := [lab_right(right) for right in rights if self._at(right) is cluster]:
                cluster.grant(self.user, *here)

    def take(self, right: NeededRight) -> None:
        self._at(right).revoke(self.user, lab_right(right))

    @contextmanager
    def without(self, right: NeededRight) -> Iterator[None]:
        self.take(right)
        yield
        self.give(right)

    def mirror_ends(self) -> dict[tuple[str, int], tuple[int, int]]:
        mine = f"{self.flow.source}."
        return {tp: ends for tp, ends in topic_ends(self.target).items() if tp[0].startswith(mine)}

    def write_more(self) -> None:
        for topic in (self.orders, self.clicks):
            write(self.source, topic, RECORDS)

    def assert_equal(self, records: int) -> None:
        proof = self.runs.verify()
        assert proof.exit_code == 0, list(map(str, proof.unequal))
        assert proof.records_equal == records

    def _at(self, right: NeededRight) -> LabCluster:
        return self.source if right.side == "source" else self.target


def lab_right(right: NeededRight) -> Right:
    operation = right.operation.name.lower()
    return Right(right.resource, right.name, operation, "prefixed" if right.is_prefix else "literal")


def name_of(right: NeededRight) -> str:
    return f"{right.side} {right.operation.word} {right.resource} {right.name}"


def forget_flows_topic(target: LabCluster) -> None:
    if (FLOWS_TOPIC, 0) in topic_ends(target):
        delete_topic(target, FLOWS_TOPIC)


def give_doctor_its_rights(guarded: Guarded) -> list[NeededRight]:
    rights = list(doctor_rights(guarded.flow))
    guarded.give(*map(on_cluster, rights))
    return rights


def on_cluster(right: NeededRight) -> NeededRight:
    """The lab wants the name that Kafka has for the cluster as a whole."""
    return replace(right, name="kafka-cluster") if right.resource == "cluster" else right
