"""A planned failover on real brokers: nobody writes, nothing is left, every group goes on exactly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from causeway.core.failover.impact_sheet import Sheet
from causeway.core.failover.request import FailoverRequest, Mode
from causeway.core.kernel.errors import BadInput, FlowFenced, StalePlan
from causeway.usecases.failover import failover as steps
from causeway.usecases.failover import planned as switch
from causeway.usecases.failover.copy_remaining import drain
from causeway.usecases.failover.failover import Failover
from tests.integration.failover.conftest import NOWHERE, MakeStage, held
from tests.integration.failover.stage import BASE_MS, FailoverStage
from tests.integration.groups.stage import make_topic
from tests.support.inline_flow import delete_records
from tests.support.killing import killed_after
from tests.support.mirroring import Mirror

pytestmark = pytest.mark.integration
RECORDS, LEFT = 120, 35
STOOD = {"ahead": {0: RECORDS + 20, 1: RECORDS + LEFT}, "middle": {0: 50, 1: 70}, "behind": {0: 5}}


@pytest.fixture
def alive(stage: MakeStage) -> FailoverStage:
    """Two partitions, mirrored but for the last records; groups that stand anywhere."""
    made = stage()
    for first, count in ((0, RECORDS), (RECORDS, LEFT)):
        for partition in (0, 1):
            made.write([BASE_MS + n for n in range(first, first + count)], partition)
        if first == 0:
            made.run()
    for name, offsets in STOOD.items():
        made.commit(name, offsets)
    return made


def planned(stage: FailoverStage, **more: Any) -> FailoverRequest:
    return stage.wish(None, mode=Mode.PLANNED, **more)


def exact(stage: FailoverStage) -> dict[str, dict[int, int]]:
    """Where each group belongs: on the record that it would have read next."""
    expected: dict[str, dict[int, int]] = {}
    for name, offsets in STOOD.items():
        for partition, stood in offsets.items():
            here = [offset for _, offset, _, _ in stage.mirrored_records(partition)]
            at = here[stood] if stood < len(here) else here[-1] + 1
            expected.setdefault(name, {})[partition] = at
    return expected


def values(stage: FailoverStage, *, mirrored: bool) -> list[tuple[int, int, str]]:
    cluster, topic = (stage.target, stage.mirrored) if mirrored else (stage.source, stage.stem)
    return [(p, time_ms, value) for p, _, time_ms, value in sorted(stage.seen(cluster, topic))]


def test_what_is_left_is_mirrored_and_every_group_goes_on_exactly(alive: FailoverStage) -> None:
    agreed, seen = alive.sheet(planned(alive)).plan.agreement, list[Sheet]()

    done = alive.fail_over(planned(alive), consent=seen.append, plan=agreed)

    assert values(alive, mirrored=True) == values(alive, mirrored=False)
    assert held(alive) == exact(alive)
    assert done.verified.as_planned == done.verified.offsets == 5
    assert done.sheet is not None
    assert (seen[0].lost.number, done.sheet.lost.number) == (2 * LEFT, 0)
    assert [topic.topic for topic in done.sheet.topics] == [alive.stem], "it is priced, at the mirror's end"
    assert {(str(group.rereads), str(group.skips)) for group in done.sheet.groups} == {("0", "0")}
    assert alive.fail_over(planned(alive)).was_done
    with pytest.raises(FlowFenced, match=done.run):
        alive.run()


def test_a_writer_an_open_transaction_and_a_reader_are_refused_by_name(alive: FailoverStage) -> None:
    settings = alive.source.endpoint().settings
    producer = Producer({**settings, "transactional.id": alive.stem, "linger.ms": 0})
    producer.init_transactions(30)
    producer.begin_transaction()

    def one_more(_sheet: Sheet) -> None:
        producer.produce(alive.stem, b"more", partition=0)
        producer.flush(30)

    with pytest.raises(BadInput, match=f"{alive.stem}: have an open transaction"):
        alive.fail_over(planned(alive), consent=one_more)
    producer.commit_transaction(30)

    from causeway.usecases.failover import copy_remaining

    plain, real = Producer({**settings, "linger.ms": 0}), copy_remaining._ends

    async def while_somebody_writes(*arguments: Any) -> Any:
        found = await real(*arguments)
        plain.produce(alive.stem, b"still here", partition=1)
        plain.flush(30)
        return found

    with pytest.MonkeyPatch.context() as writing:
        writing.setattr(copy_remaining, "_ends", while_somebody_writes)
        with pytest.raises(BadInput, match=f"{alive.stem}: are still written to"):
            alive.fail_over(planned(alive))

    consumer = Consumer({**settings, "group.id": alive.group("middle"), "enable.auto.commit": False})
    try:
        consumer.subscribe([alive.stem])
        while not consumer.assignment():
            consumer.poll(0.1)
        with pytest.raises(BadInput, match=alive.group("middle")):
            alive.fail_over(planned(alive))
    finally:
        consumer.close()
    assert (alive.fence(), held(alive)) == (None, NOWHERE)


def test_a_group_that_appears_after_the_question_is_nobodys_yes(alive: FailoverStage) -> None:
    def meanwhile(_sheet: Sheet) -> None:
        alive.commit("latecomer", {0: 3})

    with pytest.raises(StalePlan, match="other groups than those of the sheet"):
        alive.fail_over(planned(alive), consent=meanwhile)
    assert (alive.fence(), alive.journal()) == (None, [])


def test_what_is_parked_is_refused_with_its_lag(alive: FailoverStage) -> None:
    delete_records(alive.source, alive.stem, RECORDS + 3)
    with pytest.raises(BadInput, match=f"{alive.stem}-0 .lag .*1 partitions parked"):
        alive.fail_over(planned(alive))
    assert (alive.fence(), held(alive)) == (None, NOWHERE)


def test_a_topic_that_the_flow_has_left_may_still_be_written_to(stage: MakeStage) -> None:
    """Its mirror stays where it is; the switch is about what the flow asks for today."""
    made = stage(partitions=1)
    narrow, left = made.flow, f"{made.stem}-left"
    wide = replace(narrow, topics=replace(narrow.topics, include=(made.stem, left)))
    make_topic(made.source, left)
    made.write([BASE_MS])
    both = Mirror(wide, made.source, made.target)
    both.run()
    both.close()
    producer = Producer(made.source.endpoint().settings)
    producer.produce(left, b"on and on")
    assert producer.flush(30) == 0
    made.commit("g", {0: 1})
    assert made.fail_over(planned(made)).verified.as_planned == 1


def test_who_writes_after_the_proof_ends_it_before_anything_moves(
    alive: FailoverStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = drain

    def and_then_somebody_writes(*arguments: Any, **named: Any) -> None:
        real(*arguments, **named)
        alive.write([BASE_MS])

    monkeypatch.setattr(switch, "drain", and_then_somebody_writes)
    with pytest.raises(StalePlan, match=f"{alive.stem}-0 ends at {RECORDS + LEFT + 1}"):
        alive.fail_over(planned(alive))
    assert alive.fence() is None
    assert held(alive) == exact(alive), "by the last group sync, which is no failover"


STEPS = [
    (switch, "drain"),
    (steps, "create_journal"),
    (steps, "write_journal"),
    (Failover, "raise_fence"),
    (Failover, "_compare_plans"),
    (steps, "move_for_good"),
    (Failover, "verify"),
]


@pytest.mark.parametrize(("module", "step"), STEPS, ids=[step for _, step in STEPS])
def test_killed_after_a_step_and_run_again_it_ends_in_the_same_state(
    alive: FailoverStage, module: Any, step: str
) -> None:
    with killed_after(module, step):
        alive.fail_over(planned(alive))
    alive.fail_over(planned(alive))
    assert values(alive, mirrored=True) == values(alive, mirrored=False)
    assert held(alive) == exact(alive)
    assert alive.fail_over(planned(alive)).was_done


def test_killed_after_the_fence_and_written_to_since_it_is_given_up(alive: FailoverStage) -> None:
    with killed_after(Failover, "raise_fence"):
        alive.fail_over(planned(alive))
    alive.write([BASE_MS])
    with pytest.raises(StalePlan, match="1 partitions that were written to"):
        alive.fail_over(planned(alive))
    assert alive.fence() is None
    assert alive.fail_over(planned(alive)).verified.as_planned == 5
    assert values(alive, mirrored=True) == values(alive, mirrored=False)
