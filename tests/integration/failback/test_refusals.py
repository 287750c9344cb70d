"""What a failback refuses, and whose fences it opens: nothing goes on upon a guess."""

from __future__ import annotations

import random
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from causeway.core.failback.divergence import FailbackPlan, export_topic
from causeway.core.journal.journal import Status
from causeway.core.kernel.errors import BadInput, ProtocolFault, StalePlan
from causeway.usecases.failback import complete, start
from causeway.usecases.failback.journal_store import newest_failback
from causeway.usecases.failback.start import FailedBack
from causeway.usecases.failover import rollback
from causeway.usecases.failover.rollback import roll_back
from causeway.usecases.journal.store import read_journal
from causeway.usecases.run_lock.fence import fence_flow, lift_fence
from causeway.usecases.session.source_may_be_gone import open_target_session
from tests.integration.failback.stage import FailbackStage
from tests.integration.failover.conftest import killed_once_it_was_claimed
from tests.support.killing import killed_in_front_of
from tests.support.meanwhile import meanwhile

pytestmark = pytest.mark.integration


def test_without_a_failover_there_is_nothing_to_go_back_from(parted: FailbackStage) -> None:
    lift_fence(parted.forward.flow, parted.new.endpoint(), by="ops", because="a mistake")
    with pytest.raises(BadInput, match="isn't fenced: it still mirrors"):
        parted.resume()
    assert newest_failback(parted.ways) == (None, False)
    for go_home in (parted.come_home, parted.look_home):
        with pytest.raises(BadInput, match="isn't fenced: it still mirrors"):
            go_home()


def test_home_comes_after_the_way_back_was_opened_also_in_a_dry_run(parted: FailbackStage) -> None:
    for go_home in (parted.come_home, parted.look_home):
        with pytest.raises(BadInput, match=r"hasn't opened the way back yet; .* --resume`"):
            go_home()
    with killed_in_front_of(start, "export_tails"):
        parted.resume()
    for go_home in (parted.come_home, parted.look_home):
        with pytest.raises(BadInput, match=r"isn't finished: .* --resume` goes on with it"):
            go_home()
    parted.resume()
    assert parted.look_home().flow == parted.reverse.flow.name


def test_ctrl_c_at_each_place_of_a_failback_says_what_stands(
    parted: FailbackStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pressed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for module, step, act in (
        (start, "begin_run", parted.resume),
        (start, "export_tails", parted.resume),
        (complete, "_let_reverse_stand_by", parted.come_home),
    ):
        if act == parted.come_home:
            parted.resume()
        with monkeypatch.context() as interrupted:
            interrupted.setattr(module, step, pressed)
            with pytest.raises(KeyboardInterrupt, match="the same command goes on with it"):
                act()
    parted.come_home()


def test_an_export_that_holds_something_else_ends_it_with_both_ways_closed(parted: FailbackStage) -> None:
    with killed_in_front_of(start, "adopt_all"):
        parted.resume()
    run, _ = newest_failback(parted.ways)
    assert run is not None
    export = export_topic(parted.stem, run.begun_ms)
    producer = Producer(parted.new.endpoint().settings)
    producer.produce(export, b"nobody's", partition=0)
    assert producer.flush(30) == 0

    with pytest.raises(ProtocolFault, match=export):
        parted.resume()

    assert parted.fences() == (run.fence_words, run.fence_words)


def test_a_plan_that_was_given_up_opens_no_way_home(parted: FailbackStage) -> None:
    def meanwhile(_plan: object) -> None:
        parted.write(parted.old, 10, random.Random(1))

    parted._note, note = meanwhile, parted._note  # type: ignore[method-assign,assignment]
    with pytest.raises(StalePlan, match="after the fences"):
        parted.resume()
    parted._note = note  # type: ignore[method-assign]
    with pytest.raises(BadInput, match="--resume` or `--rebuild` comes first"):
        parted.come_home()


def test_of_two_at_the_question_the_second_doesnt_begin_again_what_the_first_has_opened(
    parted: FailbackStage,
) -> None:
    """It would lead all of it back a second time."""
    opened, note = list[FailedBack](), parted._note

    def while_it_is_read(plan: FailbackPlan) -> None:
        parted._note = note  # type: ignore[method-assign]
        opened.append(parted.resume())

    parted._note = while_it_is_read  # type: ignore[method-assign]
    with pytest.raises(BadInput, match="by a test while this one's plan was read"):
        parted.resume()
    assert parted.fences() == (opened[0].run.fence_words, None)
    assert parted.resume().was_done


def test_who_can_not_be_decided_yet_is_named(parted: FailbackStage) -> None:
    producer = Producer({**parted.old.endpoint().settings, "transactional.id": parted.stem, "linger.ms": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(parted.stem, b"perhaps", partition=0)
    producer.flush(30)
    with pytest.raises(BadInput, match=f"{parted.stem}.*have an open transaction"):
        parted.resume()
    producer.abort_transaction(30)
    assert parted.resume().run.facts["parted"] is True


def test_a_fence_that_somebody_raised_meanwhile_stays(parted: FailbackStage) -> None:
    """Killed before its last act; before it is run again, somebody closes the flow for a reason."""
    with killed_in_front_of(start, "_open"):
        parted.resume()
    reverse, old = parted.reverse.flow, parted.old.endpoint()
    lift_fence(reverse, old, by="ops", because="to say it in my words")
    fence_flow(reverse, old, by="ops", because="not before noon")
    assert parted.resume().was_done
    assert parted.fences()[1] == "not before noon"
    assert any("_back stays closed: fence " in line and "by ops since" in line for line in parted.said)
    lift_fence(reverse, old, by="ops", because="noon")

    parted.reverse.run()
    with killed_in_front_of(complete, "_open_forward"):
        parted.come_home()
    forward, new = parted.forward.flow, parted.new.endpoint()
    lift_fence(forward, new, by="ops", because="to say it in my words")
    fence_flow(forward, new, by="ops", because="not before one")
    home_again = parted.come_home()
    assert home_again.moved is None
    assert parted.fences()[0] == "not before one"
    assert ["NOT YET: fenced by ops since" in line for line in home_again.not_yet] == [True]


def test_no_failback_begins_while_somebody_takes_the_failover_back(parted: FailbackStage) -> None:
    run = str(parted.fences()[0]).removeprefix("failover ")
    with killed_once_it_was_claimed():
        parted.roll_back(run)
    with pytest.raises(BadInput, match=f"is being rolled back.*--rollback {run}"):
        parted.resume()
    assert newest_failback(parted.ways)[0] is None
    assert parted.roll_back(run).fence == "lifted"


def test_a_rollback_that_finds_a_failback_takes_its_word_back(
    parted: FailbackStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The failback began between the rollback's look and its first word."""
    run, real = str(parted.fences()[0]).removeprefix("failover "), rollback._claim

    async def slowly(*arguments: Any) -> None:
        meanwhile(parted.resume)
        await real(*arguments)
        pytest.fail("it went on beside the failback")

    monkeypatch.setattr(rollback, "_claim", slowly)
    with pytest.raises(BadInput, match="can't be taken back any more"):
        parted.roll_back(run)
    with open_target_session(parted.new.endpoint()) as sides:
        journal = sides.network.run(lambda: read_journal(sides, parted.forward.flow.name))
    assert (journal.runs[run].status, journal.runs[run].claims) == (Status.DONE, ())


def test_taking_the_groups_back_opens_no_reverse_flow_beside_the_forward_one(parted: FailbackStage) -> None:
    back_run = parted.resume().run
    parted.reverse.run()
    moved = parted.come_home().moved
    assert moved is not None
    taken = roll_back(
        parted.reverse.flow,
        parted.old.endpoint(),
        moved.run,
        by="a test",
        consent=lambda _run, _remaining: None,
        say=lambda _: None,
    )
    assert "the fence stays" in taken.fence
    assert parted.fences() == (None, back_run.stand_by_words)


def test_who_may_read_the_export_by_a_pattern_is_named_before_it_is_made(parted: FailbackStage) -> None:
    settings = {**parted.new.endpoint().settings, "enable.auto.commit": False}
    parted.commit(parted.new, "idle", parted.mirrored, {0: 1})
    reader = Consumer({**settings, "group.id": parted.group("reads"), "auto.offset.reset": "earliest"})
    try:
        reader.subscribe([f"^{parted.stem}.*"])
        message = None
        while message is None:
            message = reader.poll(1)
        reader.commit(message, asynchronous=False)
        parted.resume()
    finally:
        reader.close()
    assert parted.plans[0].at_work == (parted.group("reads"),)
