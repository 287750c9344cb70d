"""A run ends at the source's ends of when it began, whoever goes on writing; and copies the topics that it is
asked for, and no others."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from causeway.core.copy.lane_task import LaneResult, LaneTask
from causeway.core.kernel.errors import UnknownName
from causeway.lab.cluster import LabCluster
from causeway.spark.copy_job import last_line
from causeway.usecases.inspect.flow_status import inspect_flow
from tests.integration.fidelity.raw_log import create
from tests.support.mirroring import Mirror, end_offsets, make_flow

pytestmark = pytest.mark.integration
TopicName = Callable[..., str]
Mirrored = Callable[..., tuple[Mirror, list[str]]]
_MOST_ROUNDS = 8


@pytest.fixture
def mirrored(sf: LabCluster, nyc: LabCluster, topic_name: TopicName) -> Iterator[Mirrored]:
    made: list[Mirror] = []

    def make(*stems: str) -> tuple[Mirror, list[str]]:
        names = [topic_name(stem) for stem in stems]
        for name in names:
            create(sf, name, 1)
        flow = make_flow(names[0].replace("-", "_"), *names, lanes=2)
        made.append(Mirror(flow, sf, nyc))
        return made[-1], names

    yield make
    for mirror in made:
        mirror.close()


def write(cluster: LabCluster, topic: str, count: int) -> None:
    producer = Producer({**cluster.endpoint().settings, "linger.ms": 5})
    for n in range(count):
        producer.produce(topic, f"{n}".encode(), partition=0)
    assert producer.flush(30) == 0


def test_a_run_until_caught_up_ends_under_steady_traffic(
    mirrored: Mirrored, sf: LabCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No plan meets a lag of 0: more is written in each round."""
    mirror, (busy, quiet) = mirrored("busy", "quiet")
    write(sf, busy, 500)
    write(sf, quiet, 20)
    carry, rounds = mirror.carry, itertools.count(1)

    def carry_while_somebody_writes(tasks: Sequence[LaneTask]) -> list[LaneResult]:
        assert next(rounds) <= _MOST_ROUNDS, "it never ends"
        results = carry(tasks)
        write(sf, busy, 7)
        return results

    monkeypatch.setattr(mirror, "carry", carry_while_somebody_writes)
    report = mirror.run()
    assert report.outcome == "caught up"
    found = {p.source: p.source_next for p in report.partitions.values()}
    assert found[f"{quiet}-0"] == 20
    assert found[f"{busy}-0"] >= 500
    assert report.lag > 0
    said = f"caught up with the source as it was at {report.ends_seen_at}, when the run began"
    assert last_line(report).endswith(said)


def test_a_run_over_some_topics_leaves_the_others_alone(
    mirrored: Mirrored, sf: LabCluster, nyc: LabCluster
) -> None:
    mirror, (first, second, third) = mirrored("first", "second", "third")
    for topic in (first, second, third):
        write(sf, topic, 30)
    report = mirror.run(topics=frozenset({first}))
    assert (report.outcome, report.records) == ("caught up", 30)
    assert [p.source for p in report.partitions.values()] == [f"{first}-0"]
    assert f"only {first}: the other topics were left alone" in last_line(report)
    mirrors = {topic: mirror.flow.naming.target_topic(topic) for topic in (first, second, third)}
    assert [name for name, _ in end_offsets(nyc, of=mirrors[second])] == [], "it isn't even made"
    planned = inspect_flow(mirror.flow, sf.endpoint(), nyc.endpoint(), frozenset({second}))
    assert [str(new.source) for new in planned.to_begin] == [f"{second}-0"]

    report = mirror.run()
    assert report.records == 60, "nothing was written down about the others: they begin at their beginning"
    assert mirror.verify().exit_code == 0


def test_what_was_recorded_of_other_topics_stays(
    mirrored: Mirrored, sf: LabCluster, nyc: LabCluster, nyc_admin: AdminClient
) -> None:
    mirror, (good, spoilt) = mirrored("good", "spoilt")
    for topic in (good, spoilt):
        write(sf, topic, 10)
    mirror.run()
    write(nyc, mirror.flow.naming.target_topic(spoilt), 3)
    for topic in (good, spoilt):
        write(sf, topic, 10)
    assert [p.source for p in mirror.run().parked] == [f"{spoilt}-0"]
    ends = sf.endpoint(), nyc.endpoint()
    assert [str(tp) for tp in inspect_flow(mirror.flow, *ends).parked] == [f"{spoilt}-0"]

    gone = mirror.flow.naming.target_topic(good)
    for answer in nyc_admin.delete_topics([gone]).values():
        answer.result(20)
    report = mirror.run(topics=frozenset({good}))
    assert [p.source for p in report.parked] == [f"{good}-0"], "a new word was left on the target"
    assert sorted(map(str, inspect_flow(mirror.flow, *ends).parked)) == [f"{good}-0", f"{spoilt}-0"]


def test_a_topic_that_the_flow_does_not_mirror_is_refused(
    mirrored: Mirrored, sf: LabCluster, nyc: LabCluster, topic_name: TopicName
) -> None:
    mirror, (mine,) = mirrored("mine")
    other = topic_name("other")
    create(sf, other, 1)
    write(sf, mine, 5)
    before = end_offsets(nyc, of=mirror.flow.name)
    mirror_name = mirror.flow.naming.target_topic(mine)
    for name, way_out in (
        (f"{mine}x", f"there is no such topic on sf; did you mean {mine}?"),
        (other, "add it to the flow's topics in flows.yaml"),
        (mirror_name, f"is the name of the mirror on nyc; write the topic's name on sf: {mine}"),
    ):
        with pytest.raises(UnknownName) as refused:
            mirror.run(topics=frozenset({mine, name}))
        assert f"--topics = {name}: " in str(refused.value)
        assert way_out in str(refused.value)
    assert inspect_flow(mirror.flow, sf.endpoint(), nyc.endpoint()).state.generation == -1
    assert end_offsets(nyc, of=mirror.flow.name) == before
