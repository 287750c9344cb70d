"""Who commits for groups and is held up: a failover that was done meanwhile stands as it was verified.

Somebody else's work happens while a commit is on its way: before it, between two of its tries, or right
after the last look at the clock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import errors as kafka_errors
from kafka.future import Future
from kafka.net.connection import KafkaConnection

from causeway.brokers.transport.connection import Network
from causeway.brokers.wire.consumer_groups import ConsumerGroups
from causeway.core.groups.late_commits import COMMIT_SECONDS, PROOF_SECONDS
from causeway.core.kernel.errors import BadInput, FlowFenced
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.usecases.failover import failover as steps
from causeway.usecases.failover import move_groups
from causeway.usecases.failover.execute import FailedOver
from causeway.usecases.failover.failover import Failover
from causeway.usecases.groups import share
from causeway.usecases.run_lock.write_proof import proved_state
from tests.integration.failover.conftest import STEP_MS, MakeStage
from tests.integration.failover.stage import BASE_MS, FailoverStage
from tests.support.meanwhile import meanwhile

pytestmark = pytest.mark.integration
RECORDS, MIRRORED, PLACE = 1_000, 900, 187
MOMENT_MS = BASE_MS + PLACE * STEP_MS


@pytest.fixture(autouse=True)
def nobody_is_held_up() -> None:
    """Here somebody is: the failovers wait as they do for people."""


@pytest.fixture
def billing(stage: MakeStage) -> FailoverStage:
    """One partition, and a group that has read all of it; no sync has moved it yet."""
    made = stage(partitions=1)
    made.write([BASE_MS + n * STEP_MS for n in range(RECORDS)])
    made.run()
    made.commit("billing", {0: MIRRORED})
    return made


def at_the_place(stage: FailoverStage) -> dict[int, int]:
    """Where the record of the moment lies."""
    return {0: next(offset for _, offset, time_ms, _ in stage.mirrored_records() if time_ms >= MOMENT_MS)}


def first_commit(monkeypatch: pytest.MonkeyPatch, work: Callable[[], Any]) -> None:
    """Before the first commit of anybody, when all that comes before it was asked."""
    real = ConsumerGroups.commit

    async def held_up(self: ConsumerGroups, *arguments: Any) -> Any:
        monkeypatch.setattr(ConsumerGroups, "commit", real)
        work()
        return await real(self, *arguments)

    monkeypatch.setattr(ConsumerGroups, "commit", held_up)


def first_request(monkeypatch: pytest.MonkeyPatch, instead: Callable[[Any, Callable[[], Any]], Any]) -> None:
    """`instead` stands for the first request that commits; it is given the request, and how it is sent."""
    real = KafkaConnection.send_request

    def send(self: Any, request: Any, *rest: Any, **named: Any) -> Any:
        if type(request).__name__ != "OffsetCommitRequest":
            return real(self, request, *rest, **named)
        monkeypatch.setattr(KafkaConnection, "send_request", real)
        return instead(request, lambda: real(self, request, *rest, **named))

    monkeypatch.setattr(KafkaConnection, "send_request", send)


def test_a_sync_that_was_held_up_before_its_commit_commits_nothing(
    billing: FailoverStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = list[FailedOver]()
    first_commit(
        monkeypatch, lambda: done.append(meanwhile(lambda: billing.fail_over(billing.wish(MOMENT_MS))))
    )
    with pytest.raises(FlowFenced):
        billing.sync()
    assert (done[0].verified.as_planned, done[0].verified.moved_on) == (1, 0)
    assert billing.there("billing") == at_the_place(billing)


@pytest.mark.parametrize("code", [Code.NOT_COORDINATOR, Code.COORDINATOR_LOAD_IN_PROGRESS])
def test_nor_one_that_was_held_up_between_two_tries(
    billing: FailoverStage, monkeypatch: pytest.MonkeyPatch, code: Code
) -> None:
    def refused(request: Any, _send: Any) -> Future:
        meanwhile(lambda: billing.fail_over(billing.wish(MOMENT_MS)))
        topics = [
            SimpleNamespace(
                name=topic.name,
                partitions=[
                    SimpleNamespace(partition_index=p.partition_index, error_code=int(code))
                    for p in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return Future().success(SimpleNamespace(topics=topics))

    first_request(monkeypatch, refused)
    with pytest.raises(FlowFenced):
        billing.sync()
    assert billing.there("billing") == at_the_place(billing)


@pytest.mark.parametrize("moment", ["moved", "compared"])
def test_what_slips_after_the_last_look_is_named_and_put_right(
    billing: FailoverStage, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Asked in time, sent too late: after the groups' move, or between the plan's proof and the move."""
    come, sent = threading.Event(), threading.Event()
    done = list[FailedOver]()
    failing_over = threading.Thread(
        target=lambda: done.append(billing.fail_over(billing.wish(MOMENT_MS))), daemon=True
    )

    def wait_for_the_sync() -> None:
        come.set()
        assert sent.wait(60)

    if moment == "moved":
        real_move = move_groups._apply

        async def then_slip(*arguments: Any) -> Any:
            found = await real_move(*arguments)
            monkeypatch.setattr(move_groups, "_apply", real_move)
            wait_for_the_sync()
            return found

        monkeypatch.setattr(move_groups, "_apply", then_slip)
    else:
        real_compare = Failover._compare_plans

        async def then_slip(*arguments: Any) -> Any:
            await real_compare(*arguments)
            wait_for_the_sync()

        monkeypatch.setattr(Failover, "_compare_plans", then_slip)

    def late(_request: Any, send: Callable[[], Any]) -> Any:
        failing_over.start()
        assert come.wait(60)
        return send()

    first_request(monkeypatch, late)
    with pytest.raises(FlowFenced):  # by what it would have done next
        billing.sync()
    assert billing.there("billing") != at_the_place(billing)
    sent.set()
    failing_over.join(60)
    assert billing.there("billing") == at_the_place(billing)
    assert (done[0].verified.as_planned, done[0].verified.moved_on) == (1, 0)
    (line,) = done[0].slipped
    assert line.startswith(f"{billing.group('billing')} on {billing.mirrored}-0")
    assert billing.journal()[-1].slipped == (line,)


def test_a_failover_waits_for_who_asked_before_its_fence_and_once_more_after_its_last_move(
    billing: FailoverStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, real_sleep = list[str](), Network.sleep

    async def sleep(self: Network, seconds: float) -> None:
        await real_sleep(self, min(seconds, 0.1))
        seen.extend(["waits"] * (seconds >= PROOF_SECONDS + COMMIT_SECONDS))

    def noted(owner: Any, step: str, word: str) -> None:
        real = getattr(owner, step)

        async def work(*arguments: Any, **named: Any) -> Any:
            seen.append(word)
            return await real(*arguments, **named)

        monkeypatch.setattr(owner, step, work)

    monkeypatch.setattr(Network, "sleep", sleep)
    noted(Failover, "raise_fence", "fences")
    noted(steps, "make_sheet", "compares")
    noted(ConsumerGroups, "commit", "moves")
    noted(Failover, "verify", "verifies")
    billing.fail_over(billing.wish(MOMENT_MS))
    assert seen == ["fences", "waits", "compares", "moves", "waits", "verifies"]


def test_a_commit_that_isnt_answered_in_time_is_sent_again_on_a_proof_that_holds(
    billing: FailoverStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Held up for longer than a proof lasts: by the clock that goes on while the machine sleeps."""
    proofs, lost, slept = list[str](), list[float](), [0.0]
    real_proof, real_boottime, real_send = proved_state, Network.boottime, KafkaConnection.send_request

    async def proved(*arguments: Any) -> Any:
        proofs.append("asked")
        return await real_proof(*arguments)

    def send(self: Any, request: Any, request_timeout_ms: Any = None) -> Any:
        if lost or type(request).__name__ != "OffsetCommitRequest":
            return real_send(self, request, request_timeout_ms)
        lost.append(request_timeout_ms)
        slept[0] += PROOF_SECONDS
        return Future().failure(kafka_errors.RequestTimedOutError())

    monkeypatch.setattr(share, "proved_state", proved)
    monkeypatch.setattr(KafkaConnection, "send_request", send)
    monkeypatch.setattr(Network, "boottime", lambda self: real_boottime(self) + slept[0])
    billing.sync()
    assert lost == [COMMIT_SECONDS * 1000]
    assert proofs == ["asked", "asked"]
    assert billing.there("billing") == {0: MIRRORED}


def test_a_failover_that_was_held_up_moves_nobody_once_it_was_taken_back(
    billing: FailoverStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken_back() -> None:
        billing.roll_back(billing.journal()[-1].run)
        billing.run()
        billing.sync()

    first_commit(monkeypatch, lambda: meanwhile(taken_back))
    with pytest.raises(BadInput, match="was rolled back"):
        billing.fail_over(billing.wish(MOMENT_MS))
    assert billing.there("billing") == {0: MIRRORED}
    assert billing.fence() is None


def test_nor_does_a_rollback_that_was_held_up(
    billing: FailoverStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    billing.commit("billing", {0: 5}, on_target=True)
    done = billing.fail_over(billing.wish(MOMENT_MS))

    def another() -> None:
        billing.roll_back(done.run)
        billing.commit("billing", {0: 300}, on_target=True)

    first_commit(monkeypatch, lambda: meanwhile(another))
    with pytest.raises(BadInput, match="was rolled back"):
        billing.roll_back(done.run)
    assert billing.there("billing") == {0: 300}
