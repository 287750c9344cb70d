"""A position that was rebuilt from the map lies before a marker: what is reported once that one is gone."""

from __future__ import annotations

import uuid

import pytest

from causeway.core.kernel.identity import TopicPartition
from causeway.core.state.parked import ParkReason
from causeway.lab.clients import admin_client, producer
from causeway.lab.cluster import LabCluster
from causeway.usecases.repair.accept_gap import accept_gap
from causeway.usecases.repair.set_positions import Reason
from tests.support.inline_flow import (
    InlineFlow,
    create_topic,
    delete_records,
    mirror_of,
    named,
    topic_ends,
)
from tests.support.quick import init_transactions, quick_producer
from tests.support.reading import messages

pytestmark = pytest.mark.integration
WHY = Reason(by="test", because="only a marker")


class Stage:
    def __init__(self, source: LabCluster, target: LabCluster) -> None:
        name = uuid.uuid4().hex[:8]
        self.source, self.target, self.topic = source, target, f"markers-{name}"
        self.flow = mirror_of(f"markers_{name}", self.topic, lanes=1)
        self.runs = InlineFlow(self.flow, named(source, "sf"), named(target, "nyc"))
        create_topic(source, self.topic)
        self.writer = producer(source.endpoint(), transactional_id=f"app-{name}")
        init_transactions(self.writer, 30)

    def write(self, *values: bytes, commit: bool = True) -> None:
        self.writer.begin_transaction()
        for value in values:
            self.writer.produce(self.topic, value, partition=0)
        assert self.writer.flush(30) == 0
        (self.writer.commit_transaction if commit else self.writer.abort_transaction)(30)

    def expire(self) -> None:
        admin = admin_client(self.target.endpoint())
        for answer in admin.delete_consumer_groups([self.flow.group]).values():
            answer.result(30)

    def empty_source(self) -> int:
        end = topic_ends(self.source)[(self.topic, 0)][1]
        delete_records(self.source, self.topic, end)
        return end

    def mirrored(self) -> list[bytes]:
        return [message.value() for message in messages(self.target, f"sf.{self.topic}")]


@pytest.fixture
def at(sf: LabCluster, nyc: LabCluster) -> Stage:
    return Stage(sf, nyc)


def the_gap(at: Stage) -> dict[str, str]:
    (told,) = [p.parked for p in at.runs.run().partitions.values() if p.parked]
    return told


def test_a_marker_that_is_gone_is_reported_as_an_offset_and_never_as_a_record(at: Stage) -> None:
    """Nothing of the mirror is missing; nothing proves it. So it is loud, says what isn't known, and goes on
    by the command that it names."""
    at.write(b"a", b"b")
    assert at.runs.run().records == 2
    at.expire()
    assert at.empty_source() == 3
    at.write(b"c")

    for _ in range(2):  # as the lane finds it, and as the plan does that finds the position committed again
        told = the_gap(at)
        assert (
            told["reason"]
            == ParkReason.SOURCE_GAP.value
            == "offsets gone from the source before they were copied"
        )
        assert told["facts"].startswith(f"offsets 2 to 2 of {at.topic}-0 are gone")
        assert "whether they held records, or only markers" in told["facts"]
        assert f"accept-gap {at.flow.name} {at.topic} 0 2 3 " in told["remedy"]
    assert at.mirrored() == [b"a", b"b"]

    accept_gap(at.flow, at.runs.source, at.runs.target, TopicPartition(at.topic, 0), 2, 3, WHY)
    assert (at.runs.run().records, at.mirrored()) == (1, [b"a", b"b", b"c"])


def test_records_that_are_gone_too_look_the_same_to_the_mirror(at: Stage) -> None:
    """Why it can't pass a lone offset by itself: this one was a plain record."""
    at.write(b"a", b"b")
    assert at.runs.run().records == 2
    at.expire()
    plain = quick_producer(at.source.endpoint())
    plain.produce(at.topic, b"lost", partition=0)
    assert plain.flush(30) == 0
    assert at.empty_source() == 4
    assert f"accept-gap {at.flow.name} {at.topic} 0 2 4 " in the_gap(at)["remedy"]


def test_without_an_expired_position_markers_are_no_gap(at: Stage) -> None:
    at.write(b"a", b"b")
    at.write(b"gone", commit=False)
    assert at.runs.run().records == 2
    at.empty_source()
    at.write(b"c")
    assert (at.runs.run().parked, at.mirrored()) == ([], [b"a", b"b", b"c"])
