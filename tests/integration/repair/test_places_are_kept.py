"""Where a partition begins, or was set, doesn't slide: not by a refused answer, a lost round or an expiry."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from causeway.brokers.wire.log_reader import WireLogReader
from causeway.core.copy.ports import Refused
from causeway.core.kernel.errors import BadInput
from causeway.core.kernel.identity import TopicPartition as Partition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.model.flow import Start
from causeway.core.state.position import Position
from causeway.lab.cluster import LabCluster
from causeway.usecases.copy import record_starts
from causeway.usecases.copy.blocking_driver import copy_flow
from causeway.usecases.copy.lane.inspect import PartitionState
from causeway.usecases.copy.run import RunOptions
from causeway.usecases.copy.worker import without_rows
from causeway.usecases.inspect.flow_status import inspect_flow
from causeway.usecases.repair import set_positions
from causeway.usecases.repair.accept_gap import accept_gap
from causeway.usecases.repair.adopt import adopt_partition
from causeway.usecases.repair.reconcile import reconcile_partition
from causeway.usecases.repair.set_positions import Reason
from causeway.usecases.run_lock.ownership import RunOwner
from tests.support.inline_flow import (
    InlineFlow,
    create_topic,
    delete_records,
    grow_topic,
    own_flow,
    topic_of,
    write,
)
from tests.support.janitor import forget_positions, lose_the_map
from tests.support.reading import messages

pytestmark = pytest.mark.integration
REASON = Reason(by="a test", because="it is one")


@pytest.fixture
def runs(sf: LabCluster, nyc: LabCluster) -> InlineFlow:
    return own_flow(sf, nyc, "places")


def beginning_at(runs: InlineFlow, start: Start) -> InlineFlow:
    runs.flow = replace(runs.flow, start=start)
    return runs


def shown(cluster: LabCluster, topic: str, partition: int = 0) -> list[str]:
    """The values that a `read_committed` reader sees, in order."""
    return [message.value().decode() for message in messages(cluster, topic, partition)]


def lose_the_first_round(runs: InlineFlow) -> None:
    """A run whose first round is lost with its executors, as Spark reports it, and that is killed then."""

    def carry(tasks: Any) -> Any:
        carried.append(len(tasks))
        if len(carried) > 1:
            raise KeyboardInterrupt
        return [without_rows(task, "doubt", "its executor died") for task in tasks]

    carried: list[int] = []
    options = RunOptions(holder=RunOwner(name="test", run_id=uuid.uuid4().hex), run_for_seconds=None)
    with pytest.raises(KeyboardInterrupt):
        copy_flow(runs.flow, runs.source, runs.target, carry, options, runs.said.append)


@pytest.mark.parametrize(
    "code", [Code.NOT_LEADER_OR_FOLLOWER, Code.REQUEST_TIMED_OUT, Code.UNSUPPORTED_FOR_MESSAGE_FORMAT]
)
def test_a_refused_answer_is_no_place(
    runs: InlineFlow, sf: LabCluster, nyc: LabCluster, monkeypatch: pytest.MonkeyPatch, code: Code
) -> None:
    """`start: <timestamp>` and one broker that can't answer just now."""
    topic = topic_of(runs)
    create_topic(sf, topic)
    write(sf, topic, 100)
    beginning_at(runs, Start("timestamp", timestamp_ms=1_000))
    asked: list[object] = []
    list_offsets = WireLogReader.list_offsets

    async def once_refused(self: WireLogReader, wanted: Any, **rest: Any) -> Any:
        if set(wanted.values()) == {1_000} and not asked:
            asked.append(wanted)
            return {tp: Refused(int(code)) for tp in wanted}
        return await list_offsets(self, wanted, **rest)

    monkeypatch.setattr(WireLogReader, "list_offsets", once_refused)
    assert runs.run().records == 100
    assert asked
    assert shown(nyc, f"sf.{topic}") == shown(sf, topic)


def test_a_partition_that_couldnt_be_asked_has_not_begun_with_its_siblings(
    runs: InlineFlow, sf: LabCluster, nyc: LabCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of two brokers can't answer just now: the other's partition goes on, this one's is asked later."""
    topic = topic_of(runs)
    create_topic(sf, topic, 2)
    for partition in (0, 1):
        write(sf, topic, 100, partition)
    beginning_at(runs, Start("timestamp", timestamp_ms=1_000))
    asked: list[object] = []
    list_offsets = WireLogReader.list_offsets

    async def one_refused(self: WireLogReader, wanted: Any, **rest: Any) -> Any:
        found = await list_offsets(self, wanted, **rest)
        if set(wanted.values()) == {1_000} and not asked:
            asked.append(wanted)
            found[Partition(topic, 1)] = Refused(int(Code.REQUEST_TIMED_OUT))
        return found

    monkeypatch.setattr(WireLogReader, "list_offsets", one_refused)
    report = runs.run()
    assert (report.records, report.parked) == (200, [])
    assert asked
    for partition in (0, 1):
        assert shown(nyc, f"sf.{topic}", partition) == shown(sf, topic, partition)


def test_latest_is_asked_once_though_the_first_round_of_a_new_partition_is_lost(
    runs: InlineFlow, sf: LabCluster, nyc: LabCluster
) -> None:
    topic = topic_of(runs)
    create_topic(sf, topic)
    write(sf, topic, 30)
    beginning_at(runs, Start("latest")).run()
    grow_topic(sf, topic, 2)
    lose_the_first_round(runs)
    write(sf, topic, 50, 1)

    runs.run()

    assert shown(nyc, f"sf.{topic}", 1) == [f"value {number}" for number in range(50)]
    assert runs.verify().exit_code == 0


def test_latest_is_asked_once_though_the_first_round_of_a_new_topic_is_lost(
    runs: InlineFlow, sf: LabCluster, nyc: LabCluster
) -> None:
    topic = topic_of(runs)
    create_topic(sf, topic)
    write(sf, topic, 30)
    beginning_at(runs, Start("latest"))
    lose_the_first_round(runs)
    write(sf, topic, 50)

    runs.run()

    assert shown(nyc, f"sf.{topic}") == [f"value {number}" for number in range(50)]


@pytest.mark.parametrize("start", ["latest", "earliest"])
def test_a_partition_without_a_record_keeps_its_place(
    runs: InlineFlow, sf: LabCluster, nyc: LabCluster, start: str
) -> None:
    topic = topic_of(runs)
    create_topic(sf, topic)
    beginning_at(runs, Start(start)).run()  # type: ignore[arg-type]
    forget_positions(nyc, runs.flow.group)
    write(sf, topic, 300)

    runs.run()

    assert shown(nyc, f"sf.{topic}") == [f"value {number}" for number in range(300)]


def test_what_retention_takes_after_the_start_was_asked_is_a_gap(
    runs: InlineFlow, sf: LabCluster, nyc: LabCluster
) -> None:
    topic = topic_of(runs)
    create_topic(sf, topic)
    runs.run()
    forget_positions(nyc, runs.flow.group)
    write(sf, topic, 30)
    delete_records(sf, topic, 20)

    (parked,) = runs.run().parked

    assert parked.parked is not None
    assert parked.parked["reason"] == "offsets gone from the source before they were copied"
    assert "accept-gap" in parked.parked["remedy"]
    accept_gap(runs.flow, runs.source, runs.target, Partition(topic, 0), 0, 20, REASON)
    assert runs.run().records == 10


def test_a_start_is_no_place_in_a_mirror_that_was_written_to_since(
    runs: InlineFlow, sf: LabCluster, nyc: LabCluster
) -> None:
    """Position and map are lost: who went by the start would copy again what is there."""
    topic = topic_of(runs)
    create_topic(sf, topic)
    runs.run()
    write(sf, topic, 30)
    runs.run()
    forget_positions(nyc, runs.flow.group)
    lose_the_map(nyc, runs.flow.map_topic, f"sf.{topic}")
    delete_records(sf, topic, 10)
    there = shown(nyc, f"sf.{topic}")

    with pytest.raises(BadInput, match="no gap that could be accepted"):
        accept_gap(runs.flow, runs.source, runs.target, Partition(topic, 0), 0, 10, REASON)

    assert [p.parked["reason"] for p in runs.run().parked if p.parked] == ["position lost"]
    assert shown(nyc, f"sf.{topic}") == there


def test_a_place_from_before_places_were_kept_is_kept_by_the_first_run_that_can(
    runs: InlineFlow, sf: LabCluster, nyc: LabCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def as_it_was(flow: object, generation: object, target: object, plan: Any, _: object) -> Any:
        return plan

    topic = topic_of(runs)
    create_topic(sf, topic)
    write(sf, topic, 30)
    beginning_at(runs, Start("latest"))
    with monkeypatch.context() as before:
        before.setattr(PartitionState, "needs_a_place", False)
        before.setattr(Position, "needs_a_place", lambda *_: False)
        before.setattr(record_starts, "_write_starts", as_it_was)
        runs.run()
    state = inspect_flow(runs.flow, runs.source, runs.target).state
    assert not state.starts, "nothing but a committed offset knows of it"

    runs.run()

    forget_positions(nyc, runs.flow.group)
    write(sf, topic, 300)
    runs.run()
    assert shown(nyc, f"sf.{topic}") == [f"value {number}" for number in range(300)]


def adopted(runs: InlineFlow, offset: int) -> None:
    at = Partition(topic_of(runs), 0)
    adopt_partition(runs.flow, runs.source, runs.target, at, offset, REASON, even_though_healthy=True)


def gap_accepted(runs: InlineFlow, offset: int) -> None:
    accept_gap(runs.flow, runs.source, runs.target, Partition(topic_of(runs), 0), 30, offset, REASON)


@pytest.mark.parametrize("how", [adopted, gap_accepted])
def test_a_place_that_was_set_by_hand_survives_its_committed_offset(
    runs: InlineFlow, sf: LabCluster, nyc: LabCluster, how: Callable[[InlineFlow, int], None]
) -> None:
    topic = topic_of(runs)
    create_topic(sf, topic)
    write(sf, topic, 30)
    runs.run()
    write(sf, topic, 30)
    if how is gap_accepted:
        delete_records(sf, topic, 60)
    how(runs, 60)
    forget_positions(nyc, runs.flow.group)
    write(sf, topic, 5)

    assert runs.run().records == 5
    assert shown(nyc, f"sf.{topic}")[30:] == [f"value {number}" for number in range(5)]


def test_a_flow_of_another_name_heeds_what_was_adopted_under_the_old_one(
    runs: InlineFlow, sf: LabCluster, nyc: LabCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a version that kept no places: the ledger of the old name is all that is left."""

    async def none(*_: object) -> None:
        return None

    topic = topic_of(runs)
    create_topic(sf, topic)
    write(sf, topic, 30)
    runs.run()
    write(sf, topic, 30)
    with monkeypatch.context() as earlier:
        earlier.setattr(set_positions, "_append_places", none)
        adopted(runs, 60)
    forget_positions(nyc, runs.flow.group)
    renamed = replace(runs.flow, name=f"new_{runs.flow.name}")

    done = reconcile_partition(renamed, runs.source, runs.target, Partition(topic, 0), REASON)

    assert done.found.beginning.source_next == 60


def test_a_healthy_partition_is_moved_by_those_only_who_mean_it_though_its_position_expired(
    runs: InlineFlow, sf: LabCluster, nyc: LabCluster
) -> None:
    topic = topic_of(runs)
    create_topic(sf, topic)
    write(sf, topic, 30)
    runs.run()
    write(sf, topic, 30)
    forget_positions(nyc, runs.flow.group)
    with pytest.raises(BadInput, match="it stands at source offset 30 and isn't parked"):
        adopt_partition(runs.flow, runs.source, runs.target, Partition(topic, 0), 60, REASON)


def test_a_park_that_a_person_ended_stays_ended_when_the_position_expires(
    runs: InlineFlow, sf: LabCluster, nyc: LabCluster
) -> None:
    topic = topic_of(runs)
    create_topic(sf, topic)
    write(sf, topic, 30)
    runs.run()
    write(nyc, f"sf.{topic}", 3)
    write(sf, topic, 30)
    assert runs.run().parked
    adopted(runs, 30)
    forget_positions(nyc, runs.flow.group)
    assert inspect_flow(runs.flow, runs.source, runs.target).parked == {}


def test_an_accepted_gap_says_nothing_of_quiet_siblings(
    runs: InlineFlow, sf: LabCluster, nyc: LabCluster
) -> None:
    topic = topic_of(runs)
    create_topic(sf, topic, 2)
    write(sf, topic, 30, 0)
    write(sf, topic, 30, 1)
    runs.run()
    write(sf, topic, 30)
    delete_records(sf, topic, 60)
    gap_accepted(runs, 60)
    forget_positions(nyc, runs.flow.group)
    write(sf, topic, 5, 1)

    report = runs.run()

    assert (report.records, report.parked) == (5, [])
    assert shown(nyc, f"sf.{topic}", 1) == shown(sf, topic, 1)


def test_status_and_the_lag_of_an_expired_position_are_those_of_the_mirror(
    runs: InlineFlow, sf: LabCluster, nyc: LabCluster
) -> None:
    topic = topic_of(runs)
    create_topic(sf, topic)
    write(sf, topic, 30)
    runs.run()
    forget_positions(nyc, runs.flow.group)
    write(sf, topic, 7)

    (facts,) = inspect_flow(runs.flow, runs.source, runs.target).plan.partitions

    assert (facts.source_next, facts.lag, facts.standing is not None) == (30, 7, True)


def test_a_start_that_two_runs_ask_for_is_one(runs: InlineFlow, sf: LabCluster, nyc: LabCluster) -> None:
    """A run that was taken over wakes with an answer of its own: the first one in the log counts."""
    topic = topic_of(runs)
    create_topic(sf, topic)
    beginning_at(runs, Start("latest"))
    lose_the_first_round(runs)
    write(sf, topic, 10)
    lose_the_first_round(runs)
    write(sf, topic, 10)
    state = inspect_flow(runs.flow, runs.source, runs.target).state
    assert [start.offset for places in state.starts.values() for start in places.values()] == [0]
    assert runs.run().records == 20
