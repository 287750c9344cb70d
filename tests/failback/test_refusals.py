"""What a failback refuses, and whose fences it opens: nothing goes on upon a guess."""

from __future__ import annotations

import random

import pytest
from confluent_kafka import Producer

from causeway.core.errors import BadInput, ProtocolFault, StalePlan
from causeway.core.failback.plan import FailbackPlan, export_topic
from causeway.flows.failback import back, home
from causeway.flows.failback.back import FailedBack
from causeway.flows.failback.logbook import newest_failback
from causeway.flows.failover.rollback import roll_back
from causeway.flows.fence import fence_flow, lift_fence
from tests.failback.stage import FailbackStage
from tests.killing import killed_in_front_of

pytestmark = pytest.mark.integration


def test_without_a_failover_there_is_nothing_to_go_back_from(parted: FailbackStage) -> None:
    lift_fence(parted.forward.flow, parted.new.endpoint(), by="ops", because="a mistake")
    with pytest.raises(BadInput, match="isn't fenced: it still mirrors"):
        parted.resume()
    assert newest_failback(parted.ways) == (None, False)


def test_an_export_that_holds_something_else_ends_it_with_both_ways_closed(parted: FailbackStage) -> None:
    with killed_in_front_of(back, "adopt_all"):
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
    with pytest.raises(StalePlan, match="behind the fences"):
        parted.resume()
    parted._note = note  # type: ignore[method-assign]
    with pytest.raises(BadInput, match="--resume` or `--rebuild` comes first"):
        parted.come_home()


def test_of_two_at_the_question_the_second_doesnt_begin_anew_what_the_first_has_opened(
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
    """Killed in front of its last act; before it is run again, somebody closes the flow for a reason."""
    with killed_in_front_of(back, "_open"):
        parted.resume()
    reverse, old = parted.reverse.flow, parted.old.endpoint()
    lift_fence(reverse, old, by="ops", because="to say it in my words")
    fence_flow(reverse, old, by="ops", because="not before noon")
    assert parted.resume().was_done
    assert parted.fences()[1] == "not before noon"
    lift_fence(reverse, old, by="ops", because="noon")

    parted.reverse.run()
    with killed_in_front_of(home, "_open_forward"):
        parted.come_home()
    forward, new = parted.forward.flow, parted.new.endpoint()
    lift_fence(forward, new, by="ops", because="to say it in my words")
    fence_flow(forward, new, by="ops", because="not before one")
    assert parted.come_home().moved is None
    assert parted.fences()[0] == "not before one"


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
