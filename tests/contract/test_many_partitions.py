"""More offsets than one request may carry: a coordinator writes what one request commits as one batch.

The names are long, so that a few hundred partitions are as much as thousands with usual names.
"""

from __future__ import annotations

import pytest

from causeway.brokers.wire.consumer_groups import ConsumerGroups
from causeway.brokers.wire.delete_offsets import forget_offsets
from causeway.core.copy.ports import Refused
from causeway.core.groups.sync_rules import Committed
from causeway.core.kernel.identity import TopicPartition
from causeway.core.state.position import ForeignPosition, Position
from tests.contract.conftest import Bench

pytestmark = pytest.mark.integration
PARTITIONS = 450
_LETTERS = 2_500

Held = dict[TopicPartition, Position | ForeignPosition | None]
Offsets = dict[TopicPartition, Committed]
Codes = dict[TopicPartition, int]


@pytest.fixture
def partitions() -> int:
    return PARTITIONS


def places(bench: Bench) -> list[TopicPartition]:
    return [TopicPartition(bench.topic, number) for number in range(PARTITIONS)]


def test_a_lane_commits_all_of_its_positions_in_one_transaction(bench: Bench) -> None:
    group = f"{bench.group}.{'g' * _LETTERS}"
    positions = {tp: bench.position(tp.partition, 2) for tp in places(bench)}

    async def work() -> tuple[Held, Held]:
        target, owner = await bench.claim()
        await bench.append(owner, bench.here, 2)
        await owner.commit_positions(group, positions)
        before = await target.positions(group, list(positions), stable=False)
        await owner.end(commit=True)
        await bench.settled(target, bench.here)
        return before, await target.positions(group, list(positions), stable=True)

    before, after = bench.run(work)
    assert set(before.values()) == {None}
    assert after == positions


def test_an_aborted_transaction_leaves_none_of_them(bench: Bench) -> None:
    group = f"{bench.group}.{'g' * _LETTERS}"
    positions = {tp: bench.position(tp.partition, 2) for tp in places(bench)}

    async def work() -> Held:
        target, owner = await bench.claim()
        await bench.append(owner, bench.here, 2)
        await owner.commit_positions(group, positions)
        await owner.end(commit=False)
        await bench.settled(target, bench.here)
        return await target.positions(group, list(positions), stable=True)

    assert set(bench.run(work).values()) == {None}


@pytest.mark.parametrize("bench", ["real", "real_v1"], indirect=True)
def test_a_group_is_committed_for_and_forgotten_whole(bench: Bench) -> None:
    group = f"{bench.group}.{'g' * _LETTERS}"
    wanted = {tp: Committed(tp.partition + 1, f"{tp.partition}") for tp in places(bench)}

    async def work() -> tuple[Codes | Refused, Offsets | Refused, Refused | None, Offsets | Refused]:
        target = await bench.client()
        groups = ConsumerGroups(target.wire)
        answers = await groups.commit({group: wanted})
        held = (await groups.committed([group]))[group]
        refused = await forget_offsets(target.wire, group, list(wanted)[1:])
        return answers[group], held, refused, (await groups.committed([group]))[group]

    codes, held, refused, left = bench.run(work)
    assert codes == dict.fromkeys(wanted, 0)
    assert held == wanted
    assert refused is None
    assert left == dict(list(wanted.items())[:1])
