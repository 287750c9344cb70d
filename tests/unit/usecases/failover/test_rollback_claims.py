"""What a rollback's claim becomes when the rollback ends early. The journal is a list, and nobody waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from causeway.core.copy.ports import Unreachable
from causeway.core.failback.divergence import Step
from causeway.core.failover.plan import FailoverPlan
from causeway.core.failover.request import FailoverRequest
from causeway.core.journal.journal import FailoverRun, Journal, Status, fold
from causeway.core.journal.remaining_work import Remaining
from causeway.core.journal.rollback_records import claim_record
from causeway.core.journal.written_records import agreed_record, begun_record, ended_record, failback_record
from causeway.core.kernel.errors import BadInput
from causeway.core.model.flow import Flow
from causeway.core.state.flow_state import FlowState
from causeway.usecases.failover import rollback, rollback_claim, rollback_refusals
from causeway.usecases.run_lock.write_proof import AskedProof
from causeway.usecases.session import source_may_be_gone
from tests.support.episodes import failback_run
from tests.support.mirroring import make_flow

FLOW: Flow = make_flow("f", "orders")
PLAN = FailoverPlan(wish=FailoverRequest(flow="f", at_ms=5), moves=(), left_alone=())
FAILED_OVER = [
    begun_record("r1", PLAN, by="amy", at_ms=7),
    agreed_record("f", "r1", by="amy", at_ms=8, generation=20),
    ended_record("f", "r1", Status.DONE, by="amy", at_ms=9, generation=20),
]


@dataclass
class Cluster:
    """The target; it is its own network and its own connection."""

    log: list[tuple[bytes, bytes]] = field(default_factory=lambda: list(FAILED_OVER))
    said: list[str] = field(default_factory=list)
    connections: int = 0
    at: Callable[[str], None] = lambda _step: None
    """Called at each step."""

    @property
    def network(self) -> Any:
        return self

    @property
    def target(self) -> Any:
        return self

    def run(self, work: Callable[[], Any]) -> Any:
        return asyncio.run(work())

    def time_ms(self) -> int:
        return 10

    def boottime(self) -> float:
        return 0.0

    async def flow_state(self, _flow: str) -> FlowState:
        return FlowState()

    @property
    def journal(self) -> Journal:
        found = Journal()
        for offset, (key, value) in enumerate(self.log):
            found = fold(found, offset, key, value)
        return found

    @property
    def failover(self) -> FailoverRun:
        return self.journal.runs["r1"]

    def roll_back(self) -> Any:
        nowhere: Any = None
        return rollback.roll_back(
            FLOW, nowhere, "r1", by="bob", consent=lambda *_: None, say=self.said.append
        )


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()

    @contextmanager
    def opened(_target: object) -> Iterator[Any]:
        made.connections += 1
        yield made

    async def read(_sides: object, _flow: str) -> Journal:
        return made.journal

    async def written(_sides: object, records: list[tuple[bytes, bytes]]) -> None:
        made.at("write")
        made.log += records

    async def proved(_sides: object, _flow: str, record: tuple[bytes, bytes]) -> Journal:
        made.log.append(record)
        made.at("proof")
        return made.journal

    async def outlived(_clock: object) -> None:
        made.at("wait")

    async def restored(_sides: object, _remaining: object, proof: AskedProof) -> int:
        made.at("restore")
        await proof.renew()
        made.at("commit")
        return 1

    async def remaining(_run: object, _sides: object) -> Remaining:
        return Remaining(to_commit={}, to_forget={}, astray=())

    async def nothing(*_: object) -> None:
        return None

    monkeypatch.setattr(source_may_be_gone, "open_target_session", opened)
    monkeypatch.setattr(rollback_claim, "write_journal", written)
    monkeypatch.setattr(rollback_refusals, "state_on", Cluster.flow_state)
    steps = {"open_target_session": opened, "read_journal": read}
    steps |= {"proved_journal": proved, "outlive_others": outlived}
    steps |= {"_restore": restored, "_remaining": remaining, "_lift": nothing}
    steps |= {"refuse_active": nothing, "refuse_without_rights": nothing}
    for name, step in steps.items():
        monkeypatch.setattr(rollback, name, step)
    return made


def ending_at(step: str, how: BaseException) -> Callable[[str], None]:
    def at(now: str) -> None:
        if now == step:
            raise how

    return at


@pytest.mark.parametrize("step", ["proof", "wait", "restore"])
def test_a_rollback_that_is_interrupted_before_it_put_anybody_back_takes_its_word_back(
    cluster: Cluster, step: str
) -> None:
    cluster.at = ending_at(step, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt, match="nobody was put back; failover r1 stands as before"):
        cluster.roll_back()
    assert (cluster.failover.status, cluster.failover.claims) == (Status.DONE, ())
    assert cluster.connections == 2, "the loop that was broken isn't used again"


def test_so_does_one_whose_claim_cant_be_read_back(cluster: Cluster) -> None:
    cluster.at = ending_at("proof", Unreachable("it is cut off"))
    with pytest.raises(Exception, match="it is cut off"):
        cluster.roll_back()
    assert (cluster.failover.status, cluster.failover.claims) == (Status.DONE, ())


def test_once_somebody_may_have_been_put_back_the_claim_stays(cluster: Cluster) -> None:
    cluster.at = ending_at("commit", KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt, match="may not be finished: the same command goes on with it"):
        cluster.roll_back()
    assert cluster.failover.status is Status.ROLLING_BACK
    cluster.at = ending_at("wait", KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt, match="nobody was put back"):
        cluster.roll_back()
    assert cluster.failover.status is Status.ROLLING_BACK, "the earlier try may have put somebody back"
    assert len(cluster.failover.claims) == 1
    cluster.at = lambda _step: None
    cluster.roll_back()
    ended = cluster.failover
    assert ended.status is Status.ROLLED_BACK


def test_a_word_that_cant_be_taken_back_is_reported_and_hides_nothing(cluster: Cluster) -> None:
    def at(now: str) -> None:
        if now == "wait":
            raise KeyboardInterrupt
        if now == "write":
            raise Unreachable("it is gone")

    cluster.at = at
    with pytest.raises(KeyboardInterrupt, match="may not be finished: the same command goes on with it"):
        cluster.roll_back()
    assert cluster.failover.status is Status.ROLLING_BACK
    assert "nobody was put back, but failover r1 may count as being rolled back" in cluster.said[-1]


def test_a_claim_that_a_failback_has_overtaken_is_taken_back_by_who_finds_it(cluster: Cluster) -> None:
    """Its own withdrawal had failed. As long as the failback was under way nobody could end it."""
    back = failback_run(Step.RETURNING, begun_ms=10, at_ms=10)
    claims = [claim_record(cluster.failover, token, by="bob", at_ms=11) for token in ("t1", "t2")]
    cluster.log += [failback_record(back), *claims]
    assert cluster.failover.status is Status.ROLLING_BACK
    for _ in range(2):
        with pytest.raises(BadInput, match="can't be taken back any more: amy has begun failback b1"):
            cluster.roll_back()
        assert (cluster.failover.status, cluster.failover.claims) == (Status.DONE, ())
    assert len(cluster.log) == len(FAILED_OVER) + 5


@pytest.mark.parametrize("facts", [{}, {"given_up": True}], ids=["home", "given up"])
def test_a_failover_whose_groups_returned_isnt_taken_back(cluster: Cluster, facts: dict[str, Any]) -> None:
    """Somebody kept the command that undoes it, and types it after the episode is over."""
    back = failback_run(Step.HOME, begun_ms=10, at_ms=20, facts=facts)
    cluster.log.append(failback_record(back))
    before = len(cluster.log)
    if facts:
        cluster.roll_back()
        assert cluster.failover.status is Status.ROLLED_BACK
        return
    with pytest.raises(
        BadInput, match=r"can't be taken back any more: failback b1 was completed.*causeway next f"
    ):
        cluster.roll_back()
    assert (cluster.failover.status, len(cluster.log)) == (Status.DONE, before)
