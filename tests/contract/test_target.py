"""Each request of the copy protocol, in order and out of order, to a simulated and to a real target.

Where transactions v1 and v2 differ, both answers are written down: they are why the product has two dialects.
"""

from __future__ import annotations

from uuid import UUID

import pytest

from causeway.brokers.wire.lane_claim import init_producer
from causeway.brokers.wire.lane_transaction import LaneTransaction
from causeway.brokers.wire.positions import _offsets_request
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.ports import (
    AppendAnswer,
    Appended,
    EpochEnd,
    FetchAnswer,
    Fetched,
    FetchFrom,
    LaneFenced,
    OpenTransaction,
    OutcomeUnknown,
    Refused,
)
from causeway.core.copy.producer import ProducerEpoch, ProducerState
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.model.naming import FLOWS_TOPIC
from causeway.core.records.batches import rebase
from causeway.core.records.compression import Codec
from causeway.core.records.records import Record, encode_batch
from causeway.core.records.visibility import Visibility, read_committed
from causeway.core.state.flow_records import run_record
from causeway.core.state.flow_state import FlowState
from causeway.core.state.position import ForeignPosition, Position
from tests.contract.conftest import TIMEOUT_MS, Bench, data

pytestmark = pytest.mark.integration

Held = Position | ForeignPosition | None
Found = list[tuple[Visibility, int]]
"""Batches, and how many records each has."""
Open = dict[TopicPartition, list[int] | Refused]
Transaction = OpenTransaction | None
Told = tuple[int | Refused, int | Refused, int, Open, Found]


async def seen(bench: Bench, target: WireTarget, tp: TopicPartition, offset: int = 0) -> Found:
    """Everything up to the last stable offset; an answer may hold less of it than there is."""
    found: Found = []
    for _ in range(50):
        wanted = {tp: FetchFrom(bench.topic_id, offset)}
        answer = (await target.fetch(wanted, max_bytes=1 << 20, max_wait_ms=0))[tp]
        assert isinstance(answer, Fetched)
        for head, _, what in read_committed(answer.records, answer.aborted, offset):
            found.append((what, head.record_count))
            offset = head.next_offset
        if offset >= answer.last_stable:
            break
    return found


# append


def test_every_append_tells_its_offset(bench: Bench) -> None:
    async def work() -> list[AppendAnswer]:
        _, owner = await bench.claim()
        return [
            await bench.append(owner, bench.here, 3),
            await bench.append(owner, bench.here, 2),
            await bench.append(owner, bench.there, 1),
        ]

    assert [a.base_offset for a in bench.run(work)] == [0, 3, 0]


def test_after_a_marker_the_next_offset_is_one_further(bench: Bench) -> None:
    async def work() -> AppendAnswer:
        _, owner = await bench.claim()
        await bench.append(owner, bench.here, 3)
        await owner.end(commit=True)
        return await bench.append(owner, bench.here, 1)

    assert bench.run(work).base_offset == 4


def test_a_batch_that_was_left_out_is_missed(bench: Bench) -> None:
    async def work() -> AppendAnswer:
        _, owner = await bench.claim()
        await bench.append(owner, bench.here, 3)
        return await bench.append(owner, bench.here, 1, at=7)

    assert bench.run(work).code == Code.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_batch_sent_again_is_not_appended_again(bench: Bench) -> None:
    async def work() -> tuple[AppendAnswer, AppendAnswer, tuple[int, int]]:
        target, owner = await bench.claim()
        first = await bench.append(owner, bench.here, 3, at=0)
        again = await bench.append(owner, bench.here, 3, at=0)
        await owner.end(commit=True)
        return first, again, await bench.settled(target, bench.here)

    first, again, (_, end) = bench.run(work)
    assert first.base_offset == again.base_offset == 0
    assert end == 4


def test_where_nothing_is_known_of_a_producer_only_v2_wants_its_first_batch(bench: Bench) -> None:
    """Why a lost connection ends a transaction (rule R4)."""

    async def work() -> AppendAnswer:
        _, owner = await bench.claim()
        return await bench.append(owner, bench.here, 2, at=10)

    answer = bench.run(work)
    if bench.is_v2:
        assert answer.code == Code.OUT_OF_ORDER_SEQUENCE_NUMBER
    else:
        assert answer.base_offset == 0


def test_sequences_begin_again_with_each_epoch(bench: Bench) -> None:
    async def work() -> AppendAnswer:
        _, owner = await bench.claim()
        await bench.append(owner, bench.here, 3)
        await owner.end(commit=True)
        return await bench.append(owner, bench.here, 1, at=3)

    assert bench.run(work).code == Code.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_refused_partition_holds_nobody_up(bench: Bench) -> None:
    async def work() -> dict[TopicPartition, AppendAnswer]:
        _, owner = await bench.claim()
        await bench.append(owner, bench.here, 1)
        await bench.append(owner, bench.there, 1)
        return await owner.append(
            {bench.here: data(owner.producer, 1, 9), bench.there: data(owner.producer, 1, 1)}
        )

    answers = bench.run(work)
    assert isinstance(answers[bench.here], Refused)
    assert answers[bench.there].base_offset == 1


def test_a_batch_over_the_limit_is_refused_for_its_own_fault(bench: Bench) -> None:
    async def work() -> AppendAnswer:
        _, owner = await bench.claim()
        producer = owner.producer
        big = encode_batch(
            [Record(0, 1_700_000_000_000, b"k", bytes(1_100_000))],
            codec=Codec.NONE,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=0,
        )
        return (await owner.append({bench.here: big}))[bench.here]

    assert bench.run(work).code == Code.MESSAGE_TOO_LARGE


def test_a_batch_with_holes_is_refused(bench: Bench) -> None:
    async def work() -> AppendAnswer:
        _, owner = await bench.claim()
        batch = bytearray(data(owner.producer, 2, 0))
        batch[23:27] = (4).to_bytes(4, "big")  # the last offset delta: three records are missing
        whole = rebase(
            memoryview(batch),
            producer_id=owner.producer.producer_id,
            producer_epoch=owner.producer.epoch,
            base_sequence=0,
        )
        return (await owner.append({bench.here: whole}))[bench.here]

    assert bench.run(work).code == Code.INVALID_RECORD


# the claim


def test_a_claim_beats_the_older_owner_in_everything(bench: Bench) -> None:
    async def work() -> AppendAnswer:
        _, old = await bench.claim()
        await bench.append(old, bench.here, 3)
        await bench.claim()
        answer = await bench.append(old, bench.here, 1)
        with pytest.raises(LaneFenced):
            await old.commit_positions(bench.group, {bench.here: bench.position(5, 3)})
        with pytest.raises(LaneFenced):
            await old.end(commit=True)
        with pytest.raises(LaneFenced):
            await old.end(commit=False)
        return answer

    assert bench.run(work).code == Code.INVALID_PRODUCER_EPOCH


def test_a_beaten_owner_is_refused_where_it_never_was(bench: Bench) -> None:
    """No marker has reached that partition's leader with the claim: the coordinator does."""

    async def work() -> AppendAnswer:
        _, old = await bench.claim()
        await bench.append(old, bench.here, 3)
        await bench.claim()
        fresh = bench.as_before(await bench.client(), old.producer)
        if bench.is_v2:
            return await bench.append(fresh, bench.there, 1)
        with pytest.raises(LaneFenced):
            await fresh.append({bench.there: data(fresh.producer, 1, 0)})
        return Refused(int(Code.INVALID_PRODUCER_EPOCH))

    assert bench.run(work).code == Code.INVALID_PRODUCER_EPOCH


def test_a_claim_aborts_what_was_open_and_answers_when_it_is_closed(bench: Bench) -> None:
    async def work() -> tuple[int | Refused, int, Held, Found]:
        _, old = await bench.claim()
        await bench.append(old, bench.here, 3)
        await old.commit_positions(bench.group, {bench.here: bench.position(5, 3)})
        target, _ = await bench.claim()
        stable = (await target.last_stables([bench.here]))[bench.here]
        end = (await bench.end(target, bench.here)).offset
        positions = await target.positions(bench.group, [bench.here], stable=True)
        return stable, end, positions[bench.here], await seen(bench, target, bench.here)

    stable, end, position, found = bench.run(work)
    assert (stable, end, position) == (4, 4, None)
    assert found == [(Visibility.ABORTED, 3), (Visibility.MARKER, 1)]


def test_claiming_again_with_what_one_holds_is_refused_to_the_beaten(bench: Bench) -> None:
    async def work() -> None:
        target, old = await bench.claim()
        await bench.claim()
        with pytest.raises(LaneFenced):
            await init_producer(target.wire, bench.lane, TIMEOUT_MS, old.producer)

    bench.run(work)


def test_claiming_again_with_what_one_holds_gives_the_next_epoch(bench: Bench) -> None:
    async def work() -> tuple[ProducerState, ProducerState]:
        target, owner = await bench.claim()
        return owner.producer, await init_producer(target.wire, bench.lane, TIMEOUT_MS, owner.producer)

    before, after = bench.run(work)
    assert (after.producer_id, after.epoch) == (before.producer_id, before.epoch + 1)


# positions


def test_a_position_is_there_with_the_commit_and_not_before(bench: Bench) -> None:
    async def work() -> tuple[Held, int, Held]:
        target, owner = await bench.claim()
        await bench.append(owner, bench.here, 3)
        await owner.commit_positions(bench.group, {bench.here: bench.position(5, 3)})
        before = await target.positions(bench.group, [bench.here], stable=False)
        asked = _offsets_request(bench.group, {bench.topic: [0]}, stable=True)
        (answer,) = await target._groups._ask(bench.group, [asked])
        _, code = target._groups._parse(answer)
        await owner.end(commit=True)
        after = await target.positions(bench.group, [bench.here], stable=True)
        return before[bench.here], code, after[bench.here]

    before, code, after = bench.run(work)
    assert before is None
    assert code == Code.UNSTABLE_OFFSET_COMMIT
    assert after == bench.position(5, 3)


def test_an_aborted_position_leaves_the_one_before(bench: Bench) -> None:
    async def work() -> Held:
        target, owner = await bench.claim()
        await owner.commit_positions(bench.group, {bench.here: bench.position(5, 3)})
        await owner.end(commit=True)
        await bench.append(owner, bench.here, 1)
        await owner.commit_positions(bench.group, {bench.here: bench.position(9, 9)})
        await owner.end(commit=False)
        return (await target.positions(bench.group, [bench.here], stable=True))[bench.here]

    assert bench.run(work) == bench.position(5, 3)


def test_a_late_position_of_an_ended_transaction_is_refused(bench: Bench) -> None:
    async def work() -> Held:
        target, owner = await bench.claim()
        before = state_of(owner)
        await owner.commit_positions(bench.group, {bench.here: bench.position(5, 3)})
        await owner.end(commit=True)
        await target.positions(bench.group, [bench.here], stable=True)
        late = bench.as_before(await bench.client(), before)
        with pytest.raises(LaneFenced):
            await late.commit_positions(bench.group, {bench.here: bench.position(1, 1)})
        return (await target.positions(bench.group, [bench.here], stable=True))[bench.here]

    assert bench.run(work) == bench.position(5, 3)


def state_of(owner: LaneTransaction) -> ProducerState:
    return ProducerState(owner.producer.producer_id, owner.producer.epoch)


# the end


def test_after_its_end_no_batch_of_a_transaction_gets_in(bench: Bench) -> None:
    async def work() -> int:
        target, owner = await bench.claim()
        before = state_of(owner)
        await bench.append(owner, bench.here, 3)
        await owner.end(commit=True)
        await bench.settled(target, bench.here)
        late = bench.as_before(await bench.client(), before)
        if bench.is_v2:
            answer = (await late.append({bench.here: data(before, 1, 3)}))[bench.here]
            assert isinstance(answer, Refused)
            return answer.code
        with pytest.raises(LaneFenced):
            await late.append({bench.here: data(before, 1, 3)})
        return Code.INVALID_PRODUCER_EPOCH

    assert bench.run(work) == Code.INVALID_PRODUCER_EPOCH


def test_an_end_that_comes_again(bench: Bench) -> None:
    """v2 gives the owner its next epoch again; an abort after the commit is refused. On v1 the lane has
    been claimed again by then."""

    async def work() -> Found:
        target, owner = await bench.claim()
        before = state_of(owner)
        await bench.append(owner, bench.here, 3)
        await owner.end(commit=True)
        await bench.settled(target, bench.here)
        again = bench.as_before(target, before)
        if bench.is_v2:
            await again.end(commit=True)
            assert again.producer.epoch == owner.producer.epoch
        else:
            with pytest.raises(LaneFenced):
                await again.end(commit=True)
        with pytest.raises(LaneFenced):
            await bench.as_before(target, before).end(commit=False)
        return await seen(bench, target, bench.here)

    assert bench.run(work) == [(Visibility.DATA, 3), (Visibility.MARKER, 1)]


def test_aborted_data_is_nothing_to_a_reader(bench: Bench) -> None:
    async def work() -> Found:
        target, owner = await bench.claim()
        await bench.append(owner, bench.here, 3)
        await owner.end(commit=False)
        await bench.append(owner, bench.here, 2)
        await owner.end(commit=True)
        await bench.settled(target, bench.here)
        return await seen(bench, target, bench.here)

    assert bench.run(work) == [
        (Visibility.ABORTED, 3),
        (Visibility.MARKER, 1),
        (Visibility.DATA, 2),
        (Visibility.MARKER, 1),
    ]


def test_nothing_can_be_committed_without_a_transaction(bench: Bench) -> None:
    async def work() -> None:
        _, owner = await bench.claim()
        with pytest.raises(LaneFenced):
            await owner.end(commit=True)

    bench.run(work)


def test_an_empty_transaction_leaves_a_marker(bench: Bench) -> None:
    """The cure of a lost marker (rule R5)."""

    async def work() -> tuple[int, int, Found]:
        target, owner = await bench.claim()
        await owner.close_partitions([bench.here], commit=True)
        for _ in range(500):
            if (await bench.end(target, bench.here)).offset:
                break
            await bench.network.sleep(0.01)
        stable, end = await bench.settled(target, bench.here)
        return stable, end, await seen(bench, target, bench.here)

    assert bench.run(work) == (1, 1, [(Visibility.MARKER, 1)])


@pytest.mark.parametrize("commit", [True, False])
def test_pending_positions_end_with_an_empty_transaction_over_their_group(bench: Bench, commit: bool) -> None:
    """The cure of a marker that the positions didn't get: here they wait for the one that is on its way."""

    async def work() -> Held:
        target, owner = await bench.claim()
        await owner.commit_positions(bench.group, {bench.here: bench.position(5, 3)})
        await owner.close_partitions([], commit=commit, group=bench.group)
        return (await target.positions(bench.group, [bench.here], stable=True))[bench.here]

    assert bench.run(work) == (bench.position(5, 3) if commit else None)


def test_an_empty_transaction_over_a_group_is_accepted_with_nothing_pending(bench: Bench) -> None:
    async def work() -> AppendAnswer:
        _, owner = await bench.claim()
        for commit in (True, False):
            await owner.close_partitions([], commit=commit, group=bench.group)
        return await bench.append(owner, bench.here, 1)

    assert bench.run(work).base_offset == 0


# logs


def test_what_is_open_is_after_the_last_stable_offset(bench: Bench) -> None:
    async def work() -> tuple[Told, tuple[int, int], Open, int]:
        target, owner = await bench.claim()
        await bench.append(owner, bench.here, 3)
        tps = [bench.here]
        told = (
            (await target.log_starts(tps))[bench.here],
            (await target.last_stables(tps))[bench.here],
            (await bench.end(target, bench.here)).offset,
            await target.open_producers(tps),
            await seen(bench, target, bench.here),
        )
        await owner.end(commit=True)
        settled = await bench.settled(target, bench.here)
        return told, settled, await target.open_producers(tps), owner.producer.producer_id

    (start, stable, end, open_by, found), settled, closed, producer_id = bench.run(work)
    assert (start, stable, end, found) == (0, 0, 3, [])
    assert open_by == {bench.here: [producer_id]}
    assert settled == (4, 4)
    assert closed == {bench.here: []}


def test_an_epoch_ends_where_the_log_does_and_an_unknown_one_nowhere(bench: Bench) -> None:
    async def work() -> tuple[int, EpochEnd | Refused, EpochEnd | Refused]:
        target, owner = await bench.claim()
        await bench.append(owner, bench.here, 3)
        return (
            (await bench.end(target, bench.here)).leader_epoch,
            (await target.epoch_ends({bench.here: 0}))[bench.here],
            (await target.epoch_ends({bench.here: 9}))[bench.here],
        )

    assert bench.run(work) == (0, EpochEnd(0, 3), EpochEnd(-1, -1))


def test_a_fetch_of_another_topic_id_is_refused(bench: Bench) -> None:
    async def work() -> FetchAnswer:
        target = await bench.client()
        wanted = {bench.here: FetchFrom(UUID(int=77), 0)}
        return (await target.fetch(wanted, max_bytes=1 << 20, max_wait_ms=0))[bench.here]

    assert bench.run(work).code == Code.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize(("offset", "last_epoch"), [(99, -1), (0, 9)], ids=["offset", "epoch"])
def test_a_fetch_of_what_the_log_never_held_is_refused(bench: Bench, offset: int, last_epoch: int) -> None:
    async def work() -> FetchAnswer:
        target, owner = await bench.claim()
        await bench.append(owner, bench.here, 3)
        await owner.end(commit=True)
        await bench.settled(target, bench.here)
        wanted = {bench.here: FetchFrom(bench.topic_id, offset, last_epoch)}
        return (await target.fetch(wanted, max_bytes=1 << 20, max_wait_ms=0))[bench.here]

    assert bench.run(work).code == Code.OFFSET_OUT_OF_RANGE


def test_a_fetch_begins_with_the_batch_that_holds_the_offset(bench: Bench) -> None:
    async def work() -> tuple[Found, Found]:
        target, owner = await bench.claim()
        await bench.append(owner, bench.here, 3)
        await bench.append(owner, bench.here, 2)
        await owner.end(commit=True)
        await bench.settled(target, bench.here)
        return await seen(bench, target, bench.here, 1), await seen(bench, target, bench.here, 3)

    first, second = bench.run(work)
    assert first == [(Visibility.DATA, 3), (Visibility.DATA, 2), (Visibility.MARKER, 1)]
    assert second == [(Visibility.DATA, 2), (Visibility.MARKER, 1)]


def test_turns_are_recorded_in_one_order(bench: Bench) -> None:
    async def work() -> tuple[int, FlowState]:
        first, second = await bench.client(), await bench.client()
        flow = bench.group.removeprefix("causeway.")
        before = await first.flow_state(flow)
        key, value = run_record(flow, before, holder="me", run_id="r", lanes=4, at_ms=5)
        offset = await first.append_plain(FLOWS_TOPIC, key, value)
        return offset, await second.flow_state(flow)

    offset, state = bench.run(work)
    assert state.generation == offset
    assert state.run is not None
    assert state.run.holder == "me"


def test_the_next_epoch_says_that_nobody_claimed_in_between(bench: Bench) -> None:
    async def work() -> tuple[ProducerEpoch, ProducerState, ProducerState]:
        _, owner = await bench.claim()
        await bench.append(owner, bench.here, 2)
        await owner.end(commit=True)
        left = ProducerEpoch(owner.producer.producer_id, owner.producer.epoch)
        _, following = await bench.claim()
        _, behind_another = await bench.claim()
        return left, following.producer, behind_another.producer

    left, following, behind_another = bench.run(work)
    assert left.is_followed_by(following)
    assert not left.is_followed_by(behind_another)


def test_lanes_that_read_their_positions_at_the_same_moment_all_get_them(bench: Bench) -> None:
    async def work() -> list[Held]:
        target, owner = await bench.claim()
        await owner.commit_positions(bench.group, {bench.here: bench.position(2, 2)})
        await owner.end(commit=True)
        await bench.settled(target, bench.here)
        others = [await bench.client() for _ in range(4)]
        asked = [
            other.wire.network.selector.call_soon_with_future(
                lambda o=other: o.positions(bench.group, [bench.here], stable=True, marked=True)
            )
            for other in others
        ]
        return [(await each)[bench.here] for each in asked]

    assert bench.run(work) == [bench.position(2, 2)] * 4


def test_one_claimed_lane_answers_for_all(bench: Bench) -> None:
    """The shape of a whole transaction: data, position, end, and what a reader then has."""

    async def work() -> tuple[list[AppendAnswer], dict[TopicPartition, Held], dict[TopicPartition, Position]]:
        target, owner = await bench.claim()
        answers = [await bench.append(owner, tp, 2) for tp in (bench.here, bench.there)]
        positions = {tp: bench.position(2, 2) for tp in (bench.here, bench.there)}
        await owner.commit_positions(bench.group, positions)
        await owner.end(commit=True)
        for tp in positions:
            await bench.settled(target, tp)
        return answers, await target.positions(bench.group, list(positions), stable=True), positions

    answers, found, positions = bench.run(work)
    assert all(isinstance(a, Appended) for a in answers)
    assert found == positions


# settling: what anybody sees of a lane's transaction, and who may commit it


def test_what_is_open_is_shown_to_anybody(bench: Bench) -> None:
    async def work() -> tuple[Transaction, Transaction, ProducerState, Transaction, Transaction]:
        bystander = await bench.client()
        never = await bystander.open_transaction(bench.lane)
        _, owner = await bench.claim()
        empty = await bystander.open_transaction(bench.lane)
        await bench.append(owner, bench.here, 3)
        await owner.commit_positions(bench.group, {bench.here: bench.position(5, 3)})
        held = ProducerState(owner.producer.producer_id, owner.producer.epoch)
        found = await bystander.open_transaction(bench.lane)
        await owner.end(commit=True)
        await bench.settled(bystander, bench.here)
        return never, empty, held, found, await bystander.open_transaction(bench.lane)

    never, empty, held, found, after = bench.run(work)
    assert (never, empty, after) == (None, None, None)
    assert (found.producer_id, found.producer_epoch) == (held.producer_id, held.epoch)
    assert found.partitions == {bench.here, TopicPartition("__consumer_offsets", _offsets_partition(found))}


def _offsets_partition(found: OpenTransaction) -> int:
    """Which of them is the group's is the cluster's choice."""
    return next(tp.partition for tp in found.partitions if tp.topic == "__consumer_offsets")


def test_only_transactions_of_version_2_may_be_settled(bench: Bench) -> None:
    async def work() -> bool:
        return (await bench.client()).may_be_settled

    assert bench.run(work) is bench.is_v2


@pytest.fixture
def v2(bench: Bench) -> Bench:
    if not bench.is_v2:
        pytest.skip("only v2 is settled")
    return bench


async def open_now(target: WireTarget, lane: str) -> OpenTransaction:
    found = await target.open_transaction(lane)
    assert found is not None
    return found


async def end_once_complete(bench: Bench, owner: LaneTransaction) -> None:
    """Markers are written before the coordinator is through; until then it knows no outcome."""
    for _ in range(500):
        try:
            return await owner.end(commit=True)
        except OutcomeUnknown as not_yet:
            if not_yet.code != Code.CONCURRENT_TRANSACTIONS:
                raise
            await bench.network.sleep(0.01)
    raise AssertionError("the transaction doesn't complete")


def test_settling_commits_data_and_position_and_its_owner_appends_no_more(v2: Bench) -> None:
    async def work() -> tuple[bool, tuple[int, int], Held, AppendAnswer, Found]:
        bystander = await v2.client()
        _, owner = await v2.claim()
        await v2.append(owner, v2.here, 3)
        await owner.commit_positions(v2.group, {v2.here: v2.position(5, 3)})
        found = await open_now(bystander, v2.lane)
        asked = await bystander.settle(v2.lane, found)
        ends = await v2.settled(bystander, v2.here)
        position = await bystander.positions(v2.group, [v2.here], stable=True)
        refused = await v2.append(owner, v2.here, 1)
        with pytest.raises(LaneFenced):
            await owner.commit_positions(v2.group, {v2.here: v2.position(9, 9)})
        return asked, ends, position[v2.here], refused, await seen(v2, bystander, v2.here)

    asked, ends, position, refused, found = v2.run(work)
    assert asked
    assert ends == (4, 4)
    assert position == v2.position(5, 3)
    assert refused.code == Code.INVALID_PRODUCER_EPOCH
    assert found == [(Visibility.DATA, 3), (Visibility.MARKER, 1)]


def test_an_owner_that_is_settled_while_it_commits_learns_the_next_epoch(v2: Bench) -> None:
    async def work() -> tuple[int, int, AppendAnswer]:
        bystander = await v2.client()
        _, owner = await v2.claim()
        await v2.append(owner, v2.here, 3)
        before = owner.producer.epoch
        await bystander.settle(v2.lane, await open_now(bystander, v2.lane))
        await v2.settled(bystander, v2.here)
        await end_once_complete(v2, owner)
        return before, owner.producer.epoch, await v2.append(owner, v2.here, 1)

    before, after, answer = v2.run(work)
    assert after == before + 1
    assert answer.base_offset == 4


def test_what_somebody_ended_or_claimed_meanwhile_is_described_again(v2: Bench) -> None:
    async def work() -> tuple[bool, Transaction, Found]:
        bystander = await v2.client()
        _, owner = await v2.claim()
        await v2.append(owner, v2.here, 3)
        found = await open_now(bystander, v2.lane)
        await v2.claim()
        asked = await bystander.settle(v2.lane, found)
        return asked, await bystander.open_transaction(v2.lane), await seen(v2, bystander, v2.here)

    assert v2.run(work) == (True, None, [(Visibility.ABORTED, 3), (Visibility.MARKER, 1)])


def test_without_a_transaction_settling_is_refused_permanently(v2: Bench) -> None:
    async def work() -> bool:
        bystander = await v2.client()
        _, owner = await v2.claim()
        nothing = OpenTransaction(owner.producer.producer_id, owner.producer.epoch, frozenset())
        return await bystander.settle(v2.lane, nothing)

    assert v2.run(work) is False


def test_open_records_are_read_without_isolation_only(bench: Bench) -> None:
    async def work() -> list[list[int]]:
        target, owner = await bench.claim()
        await bench.append(owner, bench.here, 3)
        wanted = {bench.here: FetchFrom(bench.topic_id, 0)}
        counts = []
        for is_isolated in (True, False):
            answers = await target.fetch(wanted, max_bytes=1 << 20, max_wait_ms=0, is_isolated=is_isolated)
            answer = answers[bench.here]
            assert isinstance(answer, Fetched)
            counts.append([h.record_count for h, _, _ in read_committed(answer.records, (), 0)])
        return counts

    assert bench.run(work) == [[], [3]]


def test_a_topic_that_only_forgets_its_oldest_records_isnt_compacted(bench: Bench) -> None:
    async def work() -> tuple[frozenset[str], frozenset[str]]:
        target = await bench.client()
        return await target.compacted([bench.topic]), await target.compacted(["never-made"])

    assert bench.run(work) == (frozenset(), {"never-made"})
