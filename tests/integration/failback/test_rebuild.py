"""A failback that empties the old primary and mirrors the new one into it: what comes back, is refused, is
kept."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourceType,
)

from causeway.brokers.admin import delete_records as admin_delete_records
from causeway.brokers.admin.delete_records import delete_before
from causeway.core.failback.divergence import export_topic
from causeway.core.kernel.errors import BadInput, FlowHeld, ProtocolFault, StalePlan
from causeway.core.kernel.estimate import Bound
from causeway.core.model.flow import Flow
from causeway.core.model.naming import IdentityNaming
from causeway.lab.clients import admin_client
from causeway.lab.cluster import LabCluster
from causeway.render.failback_text import plan_text
from causeway.usecases.failback import delete_records as failback_delete_records
from causeway.usecases.failback import rebuild
from causeway.usecases.failback import start as failback_start
from causeway.usecases.failback.export import export_tails
from causeway.usecases.failback.journal_store import told
from causeway.usecases.run_lock.fence import lift_fence
from causeway.usecases.run_lock.transactional_writer import PortionWriter
from tests.integration.failback.rebuilding import kept, play_rebuild, same_on_both
from tests.integration.failback.stage import FailbackStage, Log
from tests.integration.groups.stage import make_topic
from tests.support.killing import Killed, killed_after, killed_inside
from tests.support.meanwhile import meanwhile
from tests.support.mirroring import end_offsets, make_flow

pytestmark = pytest.mark.integration
SEED = int(os.environ.get("FAILBACK_SEED", "1"))
_SECONDS, _CLEANER_SECONDS = 30.0, 120


def part(stage: FailbackStage, dice: random.Random) -> Log:
    """Mirrored, failed over, with records that were written since; gives the tail that never crossed."""
    stage.write(stage.old, 60, dice)
    stage.forward.run()
    mirrored = stage.log(stage.new, stage.stem)
    stage.write(stage.old, 20, dice)
    for name in ("a", "b"):
        stage.commit(stage.old, name, stage.stem, {0: 3, 1: 5})
    stage.fail_over()
    stage.write(stage.new, 40, dice)
    before = stage.log(stage.old, stage.stem)
    return {p: before[p][len(mirrored[p]) :] for p in before}


@pytest.fixture
def stage(sf: LabCluster, nyc: LabCluster, topic_name: Callable[..., str]) -> Iterator[FailbackStage]:
    made = FailbackStage(sf, nyc, topic_name("rebuild"), keeps_names=True)
    yield made
    made.close()


def delete_records(cluster: LabCluster, topic: str, ends: dict[int, int]) -> None:
    admin = admin_client(cluster.endpoint())
    asked = [TopicPartition(topic, p, end) for p, end in ends.items()]
    for answer in admin.delete_records(asked).values():
        answer.result(_SECONDS)


def test_both_sides_hold_the_same_and_groups_go_on_exactly(stage: FailbackStage) -> None:
    """`make prove` plays ten, each twice."""
    verdict = play_rebuild(stage, SEED, again=False)
    assert verdict.wrong == ()
    assert verdict.tail > 0


BOUNDARIES = (
    (failback_start, "begin_run"),
    (failback_start, "_close"),
    (failback_start, "export_tails"),
    (rebuild, "told"),
    (rebuild, "empty"),
    (rebuild, "prove_empty"),
    (rebuild, "_let_back"),
    (failback_start, "adopt_all"),
    (failback_start, "told"),
)


def test_killed_after_each_step_it_goes_on(stage: FailbackStage) -> None:
    tail = part(stage, random.Random(5))
    before = end_offsets(stage.old, of=stage.stem)
    for room, step in BOUNDARIES:
        with killed_after(room, step):
            stage.rebuild()
        if step == "told" and room is rebuild:  # all was compared, and nothing was dropped yet
            assert end_offsets(stage.old, of=stage.stem) == before
            with killed_inside(failback_delete_records, "delete_before", _one_and_no_more):
                stage.rebuild()
            assert sorted(s == e for s, e in end_offsets(stage.old, of=stage.stem).values()) == [False, True]
    done = stage.rebuild()
    assert done.was_done, "the last kill came behind the last record, and only the fence was left"
    assert len(stage.plans) == 1, "what was agreed to is gone on with, however much of it is done"
    assert kept(stage, export_topic(stage.stem, done.run.begun_ms), tail) == []
    stage.reverse.run()
    stage.come_home()
    assert stage.forward.run().records == 0, "nothing loops back"
    assert same_on_both(stage) == []
    assert stage.forward.verify().exit_code == stage.reverse.verify().exit_code == 0
    whole = stage.forward.verify(across_failbacks=True)
    assert (whole.exit_code, whole.records_equal) == (
        0,
        sum(map(len, stage.log(stage.old, stage.stem).values())),
    )


async def _one_and_no_more(endpoint: Any, ends: dict[Any, int], prove: Callable[[], Awaitable[None]]) -> None:
    tp, end = next(iter(ends.items()))
    await delete_before(endpoint, {tp: end}, prove)
    raise Killed


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_once_a_fence_is_lifted_nothing_more_is_deleted(
    stage: FailbackStage, monkeypatch: pytest.MonkeyPatch, direction: str
) -> None:
    """A flow that is open again may write there, on the word of whoever opened it."""
    part(stage, random.Random(21))
    flow, target = {
        "forward": (stage.forward.flow, stage.new),
        "reverse": (stage.reverse.flow, stage.old),
    }[direction]
    delete, deleted = admin_delete_records._delete, list[object]()

    def lifted_after(*given: Any) -> Any:
        done = delete(*given)
        deleted.append(done)
        raised = meanwhile(lambda: lift_fence(flow, target.endpoint(), by="a colleague", because="why?"))
        assert raised.changed
        return done

    with monkeypatch.context() as lifting:
        lifting.setattr(admin_delete_records, "_AT_ONCE", 1, raising=False)
        lifting.setattr(admin_delete_records, "_delete", lifted_after)
        with pytest.raises(FlowHeld, match="a colleague"):
            stage.rebuild()
    assert sorted(s == e for s, e in end_offsets(stage.old, of=stage.stem).values()) == [False, True]
    assert len(deleted) == 1


def test_who_names_another_plan_doesnt_go_on_with_what_was_begun(stage: FailbackStage) -> None:
    part(stage, random.Random(13))
    with killed_after(failback_start, "begin_run"):
        stage.rebuild()
    before = end_offsets(stage.old, of=stage.stem)
    with pytest.raises(StalePlan, match="another was asked for"):
        stage.rebuild(plan="another")
    assert end_offsets(stage.old, of=stage.stem) == before
    assert not stage.rebuild(plan=stage.plans[0].hash).was_done
    stage.reverse.run()
    assert same_on_both(stage) == []


@pytest.mark.parametrize("wrong", ["lost", "changed", "twice"])
def test_an_export_that_differs_drops_nothing(
    stage: FailbackStage, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    part(stage, random.Random(6))
    before = end_offsets(stage.old, of=stage.stem)
    write = PortionWriter.write

    async def badly(self: PortionWriter, tp: Any, records: list[Any]) -> None:
        spoilt = {
            "lost": records[:-1],
            "changed": [*records[:-1], _with_another_value(records[-1])],
            "twice": [*records, records[-1]],
        }[wrong]
        await write(self, tp, spoilt)

    monkeypatch.setattr(PortionWriter, "write", badly)
    with pytest.raises(ProtocolFault, match="nothing was dropped"):
        stage.rebuild()
    assert end_offsets(stage.old, of=stage.stem) == before


def _with_another_value(record: Any) -> Any:
    from dataclasses import replace

    return replace(record, value=(record.value or b"") + b"!")


def test_writers_who_are_still_at_work_are_refused_and_what_they_write_is_never_dropped(
    stage: FailbackStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    part(stage, random.Random(7))
    before = end_offsets(stage.old, of=stage.stem)

    def meanwhile(_plan: object) -> None:
        stage.write(stage.old, 10, random.Random(1))

    with monkeypatch.context() as writing:
        writing.setattr(stage, "_note", meanwhile)
        with pytest.raises(StalePlan, match="after the fences"):
            stage.rebuild()
    with monkeypatch.context() as writing:
        writing.setattr(failback_start, "export_tails", _then(export_tails, stage))
        with pytest.raises(BadInput, match="still written to"):
            stage.rebuild()
    untouched = end_offsets(stage.old, of=stage.stem)
    assert {place: start for place, (start, _) in untouched.items()} == dict.fromkeys(before, 0)

    with monkeypatch.context() as writing:  # after the very last look
        writing.setattr(rebuild, "told", _then(told, stage))
        with pytest.raises(StalePlan):
            stage.rebuild()
        with pytest.raises(BadInput, match="still written to"):
            stage.rebuild()
    late = stage.log(stage.old, stage.stem)
    assert sum(map(len, late.values())) > 0, "a record that came too late for the export was dropped"
    done = stage.rebuild()
    found = stage.log(stage.new, export_topic(stage.stem, done.run.begun_ms))
    assert all(values_of(late, p) == values_of(found, p)[-len(late[p]) :] for p in late if late[p])
    stage.reverse.run()
    assert same_on_both(stage) == []


def values_of(log: Log, p: int) -> list[str]:
    return [value for _, value in log[p]]


def _then(function: Callable[..., Any], stage: FailbackStage) -> Callable[..., Any]:
    """The same, and somebody writes to the old primary right after it."""

    async def both(*arguments: Any, **named: Any) -> Any:
        found = await function(*arguments, **named)
        stage.write_evenly(stage.old, 6)
        return found

    return both


def test_what_the_new_primary_has_lost_is_reported_and_refused_until_it_is_accepted(
    stage: FailbackStage,
) -> None:
    tail = part(stage, random.Random(8))
    there = stage.log(stage.new, stage.stem)
    cut = {p: there[p][len(there[p]) // 4][0] for p in there}
    delete_records(stage.new, stage.stem, cut)
    lost = sum(offset < cut[p] for p in there for offset, _ in there[p])
    plan = stage.look_at_rebuild()
    assert plan.rebuild is not None
    assert plan.rebuild.gone.number == lost > 0
    before = end_offsets(stage.old, of=stage.stem)
    with pytest.raises(BadInput, match="lost permanently"):
        stage.rebuild()
    assert end_offsets(stage.old, of=stage.stem) == before
    done = stage.rebuild(accepts_loss=True)
    stage.reverse.run()
    assert same_on_both(stage) == []
    assert sum(map(len, stage.log(stage.old, stage.stem).values())) == sum(map(len, there.values())) - lost
    assert kept(stage, export_topic(stage.stem, done.run.begun_ms), tail) == []


@pytest.mark.parametrize("is_over", [False, True])
def test_what_isnt_known_of_one_topic_isnt_nothing_beside_another_that_loses_nothing(
    sf: LabCluster,
    nyc: LabCluster,
    topic_name: Callable[..., str],
    is_over: bool,
) -> None:
    """The cleaner of the new primary alone has taken most of `thin`: nothing else would have that again."""
    stem = topic_name("plain")
    thin = f"{stem}.thin"
    stage = FailbackStage(sf, nyc, stem, keeps_names=True, partitions=1, flows=two_topics(stem, thin))
    make_topic(sf, thin)
    try:
        write_keys(stage, sf, range(40))
        write_keys(stage, sf, range(1_000), topic=thin)
        stage.forward.run()
        stage.fail_over()
        compact(stage, thin)
        before = {topic: stage.log(sf, topic) for topic in (stem, thin)}
        assert [len(before[topic][0]) for topic in (stem, thin)] == [40, 1_000]
        if is_over:
            set_policy(stage, thin, "delete")
        lost = 1_000 - sum(int(value) < 1_000 for _, value in stage.log(nyc, thin)[0])
        assert lost > 500, "most of it is gone there"
        with pytest.raises(BadInput, match=f"of {thin}: would be lost permanently"):
            stage.rebuild()
        assert {topic: stage.log(sf, topic) for topic in (stem, thin)} == before
        assert stage.plans == [], "nobody is asked for a yes to what would be refused"
        assert stage.fences()[1] is None, "and nothing was begun"
        plan = stage.look_at_rebuild()
        assert plan.rebuild is not None
        assert plan.rebuild.losing == [thin]
        gone = plan.rebuild.gone
        assert (gone.number, gone.bound) == (lost, Bound.EXACT if is_over else Bound.AT_LEAST)
        assert f"GONE FOR GOOD {gone} records of {thin}" in plan_text(plan)
    finally:
        stage.close()


def two_topics(stem: str, other: str) -> tuple[Flow, Flow]:
    name = stem.replace("-", "_")
    failback_start = f"{name}_back"
    forward = make_flow(name, stem, other, naming=IdentityNaming("sf"), failback=failback_start)
    reverse = make_flow(
        failback_start, stem, other, source="nyc", target="sf", naming=IdentityNaming("nyc"), failback_of=name
    )
    return forward, reverse


def compact(stage: FailbackStage, topic: str) -> None:
    """On the new primary, until its cleaner has been there; what is written meanwhile rolls the segments."""
    set_policy(stage, topic, "compact")
    deadline = time.monotonic() + _CLEANER_SECONDS
    while len(stage.log(stage.new, topic)[0]) >= 500:
        assert time.monotonic() < deadline, "the cleaner doesn't come"
        write_keys(stage, stage.new, range(2_000, 2_001), topic=topic)
        time.sleep(0.6)


def set_policy(stage: FailbackStage, topic: str, policy: str) -> None:
    admin = admin_client(stage.new.endpoint())
    settings = {"cleanup.policy": policy, "segment.ms": "500", "min.cleanable.dirty.ratio": "0.01"}
    resource = ConfigResource(
        ResourceType.TOPIC,
        topic,
        incremental_configs=[
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in settings.items()
        ],
    )
    for answer in admin.incremental_alter_configs([resource]).values():
        answer.result(_SECONDS)


def test_an_earlier_tail_that_stayed_counts_as_gone(stage: FailbackStage) -> None:
    """`resume` left it on the old primary, before what a later failover mirrors."""
    tail = part(stage, random.Random(9))
    stage.resume()
    stage.reverse.run()
    stage.come_home()
    stage.write(stage.old, 20, random.Random(10))
    stage.forward.run()
    stage.fail_over()
    plan = stage.look_at_rebuild()
    assert plan.rebuild is not None
    assert (plan.rebuild.gone.number, plan.tail.number) == (sum(map(len, tail.values())), 0)


def test_readers_partitions_and_prefixes_are_refused(
    stage: FailbackStage, sf: LabCluster, nyc: LabCluster, topic_name: Callable[..., str]
) -> None:
    part(stage, random.Random(11))
    reader = Consumer({**sf.endpoint().settings, "group.id": stage.group("a")})
    reader.subscribe([stage.stem])
    try:
        while not reader.assignment():
            reader.poll(0.1)
        with pytest.raises(BadInput, match="consumer groups with members on sf"):
            stage.rebuild()
    finally:
        reader.close()
    admin = admin_client(nyc.endpoint())
    for answer in admin.create_partitions([NewPartitions(stage.stem, 3)]).values():
        answer.result(_SECONDS)
    with pytest.raises(BadInput, match="2 on sf, 3 on nyc"):
        stage.rebuild()
    prefixed = FailbackStage(sf, nyc, topic_name("prefixed"), keeps_names=False, partitions=1)
    try:
        prefixed.write_evenly(sf, 5)
        prefixed.forward.run()
        prefixed.fail_over()
        with pytest.raises(BadInput, match="with prefixes nothing has diverged"):
            prefixed.rebuild()
    finally:
        prefixed.close()


def test_a_compacted_topic_is_emptied_too_and_keeps_its_policy(
    sf: LabCluster, nyc: LabCluster, topic_name: Callable[..., str]
) -> None:
    """One of its partitions is empty, and the first try dies while the policy is widened."""
    stage = FailbackStage(
        sf, nyc, topic_name("compacted"), keeps_names=True, settings={"cleanup_policy": "compact"}
    )
    try:
        write_keys(stage, sf, range(30))
        stage.forward.run()
        write_keys(stage, sf, range(30, 40))
        stage.fail_over()
        write_keys(stage, nyc, range(40, 60))
        with killed_after(failback_delete_records, "_set_policies"):
            stage.rebuild()
        assert policy_of(stage) == "compact,delete"
        stage.rebuild()
        assert policy_of(stage) == "compact"
        stage.reverse.run()
        stage.come_home()
        assert same_on_both(stage) == []
        assert values_of(stage.log(sf, stage.stem), 0) == [f"{n}" for n in (*range(30), *range(40, 60))]
    finally:
        stage.close()


def write_keys(stage: FailbackStage, cluster: LabCluster, numbers: range, *, topic: str = "") -> None:
    producer = Producer({**cluster.endpoint().settings, "linger.ms": 2})
    for n in numbers:
        producer.produce(topic or stage.stem, f"{n}".encode(), key=f"{n % 7}".encode(), partition=0)
    assert producer.flush(_SECONDS) == 0


def policy_of(stage: FailbackStage) -> str:
    admin, resource = admin_client(stage.old.endpoint()), ConfigResource(ResourceType.TOPIC, stage.stem)
    found: str = admin.describe_configs([resource])[resource].result(_SECONDS)["cleanup.policy"].value
    return found


def test_what_a_broker_that_died_brings_back_is_emptied_again_on_the_way_home(
    lab_cluster: Callable[..., LabCluster], nyc: LabCluster, topic_name: Callable[..., str]
) -> None:
    """A broker writes down where its logs begin once a minute."""
    old = lab_cluster("sf")
    stage = FailbackStage(old, nyc, topic_name("forgotten"), keeps_names=True)
    try:
        part(stage, random.Random(12))
        stage.rebuild()
        stage.reverse.run()
        assert same_on_both(stage) == []
        old.kill()
        old.start()
        stage.close()
        assert min(start for start, _ in end_offsets(old, of=stage.stem).values()) == 0, "it forgot nothing"
        del stage.__dict__["reverse"], stage.__dict__["forward"]
        stage.come_home()
        assert any("had forgotten" in line for line in stage.said)
        assert same_on_both(stage) == []
    finally:
        stage.close()
