"""A group sync that is held up anywhere, and a failover: at its end each group stands where the plan says.

Both commit plainly, which the coordinator takes from anybody. The sync freezes and wakes, requests arrive
late, twice or not at all, the coordinator moves.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

import pytest

from causeway.brokers.wire.consumer_groups import ConsumerGroups
from causeway.core.copy.ports import OutcomeUnknown, Unreachable
from causeway.core.failover.request import FailoverRequest
from causeway.core.groups.stamp import Stamp, stamped
from causeway.core.groups.sync_rules import Committed
from causeway.core.journal.journal import FailoverRun, Shift, Status
from causeway.core.journal.journal_format import FAILOVERS_TOPIC
from causeway.core.journal.remaining_work import left_to_apply
from causeway.core.kernel.errors import FlowFenced
from causeway.core.kernel.identity import SourceOffset, TargetOffset, TopicPartition
from causeway.usecases.failover import move_groups
from causeway.usecases.failover.move_groups import move_for_good
from causeway.usecases.run_lock import write_proof as proof_module
from causeway.usecases.run_lock.ownership import refuse_fenced, write_fence
from causeway.usecases.run_lock.write_proof import AskedProof, outlive_others, proved_state
from causeway.usecases.session.source_may_be_gone import FlowSession, committed_by
from tests.simulation.cases.small_stage import Stage
from tests.simulation.cluster.wire import Weather
from tests.simulation.scenario import scenario_of
from tests.simulation.world import World

SEEDS = range(40)
PLACE, SYNCED = 187, 900
GROUPS = ("billing", "audit", "mail")
FLOW = World(scenario_of(0)).flow_now()


class Race:
    """One sync that goes on and on, and one failover."""

    def __init__(self, seed: int) -> None:
        self.at = Stage(seed)
        self.at.target.create_topic(FAILOVERS_TOPIC, 1)
        self.at.target.leaders[TopicPartition(FAILOVERS_TOPIC, 0)] = 1
        self.tp = TopicPartition("sf.orders", 0)
        self.sync_network, _, self.syncs = self.at.worker("sync")
        self.network, _, self.target = self.at.worker("failover")
        self.at.begin(self.sync_network, self.syncs)
        self.random = self.at.loop.random
        self.run = FailoverRun(
            run="r1",
            flow=FLOW.name,
            wish=FailoverRequest(flow=FLOW.name, at_ms=1),
            plan_hash="",
            by="",
            begun_ms=0,
            status=Status.BEGUN,
            shifts={name: {self.tp: Shift(before=None, after=TargetOffset(PLACE))} for name in GROUPS},
        )

    def play(self) -> dict[str, int]:
        """Where each group stands when all is over."""
        loop, target = self.at.loop, self.at.target
        target.weather = Weather(late=0.1, again=0.1, silent=0.05, reset_after=0.05, latest=3.0)
        target.is_stormy = True
        syncing = self.sync_network.process.spawn(self._sync())
        for _ in range(3):
            loop.after(self.random.uniform(0, 3), self._hold_up)
        loop.after(self.random.uniform(0, 6), target.move_coordinators)
        loop.run(lambda: False, deadline=loop.now + self.random.uniform(0.05, 1.5))
        failing_over = self.network.process.spawn(self._fail_over())
        assert loop.run(lambda: failing_over.is_done and syncing.is_done, deadline=loop.now + 300)
        self.at.settle(10)
        return {name: target.groups.committed[name, self.tp][0] for name in GROUPS}

    def _hold_up(self) -> None:
        process = self.sync_network.process
        process.freeze()
        self.at.loop.after(self.random.uniform(0.1, 12), process.thaw)

    async def _sync(self) -> None:
        async def refuse() -> None:
            refuse_fenced(FLOW.name, await proved_state(self.syncs, FLOW.name, "groups"))

        words = stamped(
            Stamp(flow=FLOW.name, source_next=SourceOffset(1), target_next=TargetOffset(SYNCED), time_ms=0)
        )
        proof = AskedProof(self.sync_network, refuse)
        for _ in range(60):
            wanted = {name: {self.tp: Committed(SYNCED, words)} for name in GROUPS}
            try:
                await ConsumerGroups(self.syncs.wire).commit(wanted, proof)
            except FlowFenced:
                return
            except (Unreachable, OutcomeUnknown):
                await self.sync_network.sleep(0.1)
            await self.sync_network.sleep(self.random.uniform(0.01, 0.5))

    async def _fail_over(self) -> None:
        """The steps of `usecases/failover/failover.py` that matter here, each again until it is done."""
        await self._until_done(lambda: write_fence(self.target, self.network, FLOW, by="ops", because="x"))
        await outlive_others(self.network)
        sides = FlowSession(self.network, self.target, None)  # type: ignore[arg-type]  # virtual time stands in
        await self._until_done(lambda: move_for_good(FLOW, sides, self.run, "ops", AlwaysRight()))

    async def _until_done(self, step: Any) -> None:
        while True:
            try:
                await step()
            except (Unreachable, OutcomeUnknown):
                await self.network.sleep(0.1)
            else:
                return


class AlwaysRight:
    """Nobody takes this failover back."""

    is_fresh = True

    async def renew(self) -> None:
        """Nothing to ask."""


def test_groups_stand_where_the_failover_has_put_them() -> None:
    for seed in SEEDS:
        assert Race(seed).play() == dict.fromkeys(GROUPS, PLACE), f"seed {seed}"


async def _one_look(flow: Any, sides: Any, run: Any, _by: str, proof: Any) -> Any:
    groups = ConsumerGroups(sides.target.wire)
    remaining = left_to_apply(run, await committed_by(groups, run))
    return await move_groups._apply(flow, run, groups, remaining, proof)


@pytest.mark.parametrize(
    "mutant",
    [
        pytest.param(lambda: patch.object(proof_module, "PROOF_SECONDS", 1e9), id="asked once, for ever"),
        pytest.param(lambda: patch.object(proof_module, "OUTLIVED_SECONDS", 0.0), id="nothing outwaited"),
        pytest.param(lambda: patch(f"{__name__}.move_for_good", _one_look), id="no look after the last move"),
    ],
)
def test_without_this_rule_a_seed_fails(mutant: Callable[[], AbstractContextManager[object]]) -> None:
    with mutant():
        assert any(SYNCED in Race(seed).play().values() for seed in range(400)), "no seed sees it"
