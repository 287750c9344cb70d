import json
from dataclasses import replace
from uuid import UUID

import pytest

from causeway.core.kernel.identity import Generation, Pair, SourceOffset, TargetOffset, TopicPartition
from causeway.core.state.fences import Fence, fence_record, lift_record
from causeway.core.state.flow_log import LogRecord
from causeway.core.state.flow_records import (
    adopted_record,
    alive_record,
    claimed_record,
    clusters_record,
    forgotten_record,
    gap_record,
    pair_record,
    run_record,
    set_record,
)
from causeway.core.state.flow_state import NOBODY, FlowState, Run, fold
from causeway.core.state.gap_ledger import AcceptedGap
from causeway.core.state.gaps import uncopied_gap
from causeway.core.state.known_pairs import KnownPair
from causeway.core.state.position_ledger import ManualPosition, PlaceSet, last_manual_position
from causeway.core.state.start_ledger import StartAt, start_records
from tests.support import builders

PAIR = builders.known_pair(3)


def run(
    *, holder: str = "amy", lanes: int = 4, most_lanes: int = 0, at_ms: int = 1_000, flow: str = "f"
) -> tuple[bytes, bytes]:
    before = FlowState(most_lanes=most_lanes)
    return run_record(flow, before, holder=holder, run_id=f"{holder}-1", lanes=lanes, at_ms=at_ms)


def alive(generation: int, *, ended: bool = False, at_ms: int = 2_000) -> tuple[bytes, bytes]:
    return alive_record("f", generation=generation, ended=ended, at_ms=at_ms)


def fence(token: str = "t", *, most_lanes: int = 0) -> tuple[bytes, bytes]:
    fence = Fence(by="eve", because="nyc takes over", since_ms=3_000, token=token)
    return fence_record("f", fence, most_lanes=most_lanes)


def lift(token: str = "t", *, most_lanes: int = 0) -> tuple[bytes, bytes]:
    named = a_fence(token)
    return lift_record("f", named, by="amy", because="it was a drill", most_lanes=most_lanes, at_ms=4_000)


def a_fence(token: str = "t") -> Fence:
    return Fence(generation=10, by="eve", because="nyc takes over", since_ms=3_000, token=token)


def folded(*records: tuple[bytes, bytes | None], first_offset: int = 10) -> dict[str, FlowState]:
    states: dict[str, FlowState] = {}
    for offset, (key, value) in enumerate(records, first_offset):
        states = fold(states, LogRecord(offset, 0, key, value))
    return states


def after(*records: tuple[bytes, bytes | None]) -> FlowState:
    return folded(*records)["f"]


def test_a_flow_that_never_ran_has_no_generation() -> None:
    assert FlowState().generation == -1
    assert FlowState().running is None
    assert FlowState().last_sign_ms == 0


def test_the_generation_is_the_offset_of_the_newest_turn() -> None:
    assert after(run()).generation == 10
    assert after(run(), run()).generation == 11
    assert after(run(), fence()).generation == 11
    assert after(run(), fence(), lift()).generation == 12


def test_what_is_no_turn_leaves_the_generation_alone() -> None:
    state = after(
        run(), alive(10), pair_record("f", "sf.orders", PAIR), clusters_record("f", source="a", target="b")
    )
    assert state.generation == 10


def test_a_run_says_who_holds_the_flow_since_when() -> None:
    assert after(run(lanes=7, at_ms=55)).running == Run(
        generation=Generation(10), holder="amy", run_id="amy-1", lanes=7, since_ms=55
    )


def test_a_run_never_lifts_a_fence() -> None:
    state = after(fence(), run(), run(holder="bob"))
    assert state.fence == a_fence()
    assert state.generation == 12


def test_only_a_lift_opens_a_fence() -> None:
    assert after(fence(), run(), lift()).fence is None


@pytest.mark.parametrize("turns", [[run(), fence()], [fence(), run(), lift()]])
def test_a_fence_and_its_lift_end_the_run_before_them(turns: list[tuple[bytes, bytes]]) -> None:
    state = after(*turns)
    assert state.run is not None
    assert state.running is None


def test_a_run_ends_by_its_own_word() -> None:
    assert after(run(), alive(10, ended=True)).running is None
    assert after(run(), alive(10)).running is not None


def test_the_end_of_an_older_run_does_not_end_the_newest() -> None:
    state = after(run(), run(holder="bob"), alive(10, ended=True, at_ms=9_000))
    assert state.running is not None
    assert state.running.holder == "bob"
    assert state.last_sign_ms == 1_000


def test_a_sign_of_life_that_comes_late_does_not_wake_a_run_that_ended() -> None:
    assert after(run(), alive(10, ended=True), alive(10)).running is None
    assert after(run(), alive(10, ended=True), run(), alive(12)).running is not None


def test_the_last_sign_is_the_beginning_until_the_run_says_more() -> None:
    assert after(run(at_ms=700)).last_sign_ms == 700
    assert after(run(at_ms=700), alive(10, at_ms=900)).last_sign_ms == 900


def test_most_lanes_never_shrinks() -> None:
    assert after(run(lanes=9), run(lanes=2)).most_lanes == 9
    assert after(run(lanes=9), fence()).most_lanes == 9
    assert after(run(lanes=2, most_lanes=16)).most_lanes == 16
    assert after(run(lanes=2), fence(most_lanes=20), run(lanes=1)).most_lanes == 20
    assert after(lift(most_lanes=20), run(lanes=1)).most_lanes == 20, "its fence may have been compacted"


def test_pairs_add_up_by_target_topic_and_the_newest_word_counts() -> None:
    grown = builders.known_pair(6, target_topic_id=UUID(int=9))
    other = KnownPair(
        source_topic="x", source_topic_id=UUID(int=3), target_topic_id=UUID(int=4), partitions=1
    )
    state = after(
        pair_record("f", "sf.orders", PAIR),
        pair_record("f", "sf.x", other),
        pair_record("f", "sf.orders", grown),
    )
    assert state.pairs == {"sf.orders": grown, "sf.x": other}


def test_clusters_are_remembered() -> None:
    state = after(clusters_record("f", source="S", target="T"))
    assert (state.source_cluster_id, state.target_cluster_id) == ("S", "T")


def test_flows_share_the_topic_and_nothing_else() -> None:
    states = folded(run(flow="f"), run(flow="g", lanes=30), fence())
    assert states["g"].fence is None
    assert states["g"].generation == 11
    assert states["f"].most_lanes == 4


def test_each_kind_and_each_pair_has_a_key_of_its_own_and_two_runs_share_one() -> None:
    keys = [
        run()[0],
        alive(1)[0],
        fence()[0],
        clusters_record("f", source="", target="")[0],
        pair_record("f", "sf.a", PAIR)[0],
        pair_record("f", "sf.b", PAIR)[0],
        run(flow="g")[0],
    ]
    assert len(set(keys)) == len(keys)
    assert run()[0] == run(holder="bob", at_ms=5)[0]
    assert fence()[0] == fence(most_lanes=7)[0] == lift()[0] != fence("another")[0]


def test_folding_leaves_the_states_before_as_they_were() -> None:
    before = folded(run())
    kept = dict(before)
    fold(before, LogRecord(11, 0, *fence()))
    assert before == kept


def test_what_compaction_removes_says_nothing() -> None:
    assert folded((run()[0], None)) == {}


GOOD_RUN = json.loads(run()[1])


def without(field: str) -> bytes:
    return json.dumps({k: v for k, v in GOOD_RUN.items() if k != field}).encode()


def with_(**fields: object) -> bytes:
    return json.dumps(GOOD_RUN | fields).encode()


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"hello",
        b"\xff\xfe",
        b"[1]",
        b"7",
        b"[" * 100_000,
        with_(v=2),
        without("v"),
        without("holder"),
        without("lanes"),
        with_(lanes="4"),
        with_(lanes=None),
        with_(at_ms=1.5),
        with_(most_lanes=True),
    ],
    ids=lambda value: value[:24],
)
def test_a_value_that_cannot_be_read_is_odd_not_skipped(value: bytes) -> None:
    state = after((run()[0], value))
    assert (list(state.odd), state.run) == ([10], None)


@pytest.mark.parametrize("key", [b"", b"run/f", b"0/run/f", b"1/run", b"\xff/run/f", b"x1/run/f", b"1/run/"])
def test_a_key_of_another_maker_is_no_flows(key: bytes) -> None:
    states = folded(run(), (key, run()[1]))
    assert states["f"] == after(run())
    assert [odd.key for odd in states[NOBODY].odd.values()] == [key]


@pytest.mark.parametrize(
    ("key", "version"), [(b"2/run/f", "version 2 of kind run"), (b"1/lease/f", "version 1 of kind lease")]
)
def test_a_version_or_a_kind_from_the_future_is_named(key: bytes, version: str) -> None:
    (odd,) = after((key, b'{"v":1}')).odd.values()
    assert (odd.newer, odd.offset) == (version, 10)


def test_half_a_topic_id_is_odd() -> None:
    key, value = pair_record("f", "sf.orders", PAIR)
    assert after((key, value.replace(b"-", b"")[:-30] + b'"}')).odd
    assert after((key, value.replace(b"00000001", b"1"))).odd


def test_another_number_of_lanes_is_never_forgotten() -> None:
    """Compaction leaves one run record: it alone must say that an old worker may hold a lane's old id."""
    state = FlowState()
    said = []
    for offset, lanes in enumerate((16, 4, 4, 4)):
        key, value = run_record("f", state, holder="amy", run_id=f"{offset}", lanes=lanes, at_ms=offset)
        state = fold({"f": state}, LogRecord(offset, 0, key, value))["f"]
        said.append(state.lanes_varied)
    only_the_last = fold({}, LogRecord(offset, 0, key, value))["f"]

    assert said == [False, True, True, True]
    assert (only_the_last.lanes_varied, only_the_last.most_lanes) == (True, 16)


def test_a_claim_is_written_to_be_read_up_to_and_says_nothing() -> None:
    assert after(run(), claimed_record("f", lane=3, generation=10)) == after(run())
    keys = {claimed_record("f", lane=lane, generation=1)[0] for lane in (0, 1)}
    assert keys == {b"1/claimed/f/0", b"1/claimed/f/1"}


# What a person decided about a pair of topics.

MADE_ANEW = replace(PAIR, source_topic_id=UUID(int=7))


def pairs(pair: KnownPair = PAIR) -> tuple[bytes, bytes]:
    return pair_record("f", "sf.orders", pair)


def adopted(at: int, pair: KnownPair = PAIR) -> tuple[bytes, bytes]:
    return adopted_record("f", "sf.orders", replace(pair, adopted_at=at), [0])


def known_since(at: int, pair: KnownPair = PAIR) -> KnownPair:
    return replace(pair, adopted_at=at, adopted={0: at})


def forgotten(pair: KnownPair = PAIR) -> tuple[bytes, bytes]:
    return forgotten_record("f", "sf.orders", pair)


def test_an_adoption_is_not_hidden_by_a_runs_record_that_arrives_after_it() -> None:
    """The run read the state before the adoption; its record was given up, and appended all the same."""
    assert after(pairs(), adopted(5), pairs()).pairs["sf.orders"].adopted_at == 5
    assert after(adopted(5, MADE_ANEW), pairs()).pairs["sf.orders"] == known_since(5, MADE_ANEW)


def test_an_adoption_is_not_taken_by_compaction() -> None:
    (key, _), (late, _) = adopted(5), pairs()
    assert key not in {late, adopted(6)[0]}


def test_of_adoptions_the_newest_counts_whatever_arrives_last() -> None:
    assert after(adopted(6, MADE_ANEW), adopted(5)).pairs["sf.orders"] == known_since(6, MADE_ANEW)
    assert after(adopted(5), adopted(6, MADE_ANEW)).pairs["sf.orders"].ids == MADE_ANEW.ids


def test_partitions_that_come_after_an_adoption_are_known() -> None:
    grown = after(adopted(5), pairs(replace(PAIR, partitions=8))).pairs["sf.orders"]
    assert (grown.partitions, grown.adopted_at) == (8, 5)


def test_a_pair_that_was_forgotten_stays_so_until_other_topics_take_its_place() -> None:
    assert after(pairs(), forgotten()).pairs == {}
    assert after(adopted(5), forgotten(), pairs()).pairs == {}, "a late record of before"
    assert after(pairs(), forgotten(), pairs(MADE_ANEW)).pairs["sf.orders"] == MADE_ANEW
    assert after(pairs(MADE_ANEW), forgotten()).pairs["sf.orders"] == MADE_ANEW


def test_a_pair_that_was_forgotten_may_be_adopted_by_hand() -> None:
    assert after(forgotten(), adopted(9)).pairs["sf.orders"].adopted_at == 9


def test_an_adoption_counts_for_the_partitions_that_it_names_and_for_no_other() -> None:
    both = after(
        adopted_record("f", "sf.orders", replace(PAIR, adopted_at=5), [1]),
        adopted_record("f", "sf.orders", replace(PAIR, adopted_at=9), [0]),
    ).pairs["sf.orders"]
    assert [both.adopted_at_of(partition) for partition in range(3)] == [9, 5, -1]
    assert both.adopted_at == 9


def test_a_late_word_of_a_superseded_run_takes_back_no_partition_that_has_begun() -> None:
    early = pairs(replace(PAIR, partitions=2, not_begun=frozenset({1})))
    known = after(early, pairs(replace(PAIR, partitions=3)), early).pairs["sf.orders"]
    assert (known.partitions, known.not_begun) == (3, frozenset())
    silent = pairs(replace(PAIR, partitions=3, not_begun=frozenset({1, 2})))
    assert after(early, silent).pairs["sf.orders"].not_begun == {1, 2}, "of those that came since, too"


def test_an_adoption_that_names_no_partition_counts_for_all_of_them() -> None:
    """As versions before wrote it."""
    key, value = adopted(5)
    old = after((key, value.replace(b',"adopted":[0]', b"")), adopted(9)).pairs["sf.orders"]
    assert [old.adopted_at_of(partition) for partition in range(3)] == [9, 5, 5]


def test_partitions_that_have_not_begun_stay_so_when_a_sibling_is_adopted() -> None:
    waits = replace(PAIR, not_begun=frozenset({1}))
    state = after(
        pair_record("f", "sf.orders", waits),
        adopted_record("f", "sf.orders", replace(PAIR, adopted_at=5), [0]),
    )
    assert state.pairs["sf.orders"].not_begun == {1}
    assert state.pairs["sf.orders"].adopted_at_of(0) == 5
    grown = replace(waits, partitions=4, adopted_at=5)
    assert after(pair_record("f", "sf.orders", grown)).pairs["sf.orders"].not_begun == {1}


# Where partitions begin.

START = StartAt(offset=SourceOffset(100), epoch=3, generation=7)
ORDERS = ("sf.orders", PAIR.source_topic_id, PAIR.target_topic_id)


def began(starts: dict[int, StartAt], *, generation: int = 7, at_ms: int = 1) -> list[tuple[bytes, bytes]]:
    return start_records("f", ORDERS, starts, generation=generation, at_ms=at_ms)


def start_of(state: FlowState, partition: int = 0, pair: KnownPair = PAIR) -> StartAt | None:
    return state.start_of(
        builders.pair(partition, source_topic_id=pair.source_topic_id, target_topic_id=pair.target_topic_id)
    )


def test_a_start_is_kept_by_pair_and_partition_and_of_two_the_first_one_counts() -> None:
    later = StartAt(offset=SourceOffset(600), epoch=4)
    state = after(*began({0: START}), *began({0: later, 1: later}, generation=8))
    assert start_of(state) == START
    assert start_of(state, 1) == replace(later, generation=8)
    assert start_of(state, 2) is None
    assert start_of(state, pair=MADE_ANEW) is None


def test_each_answer_has_a_key_of_its_own_so_compaction_keeps_the_first() -> None:
    keys = {began({0: START}, generation=g, at_ms=at)[0][0] for g in (7, 8) for at in (1, 2)}
    assert len(keys) == 4
    assert all(key.startswith(b"2/starts/f/") for key in keys), "what a Causeway before it refuses"


def test_starts_of_many_partitions_are_several_records() -> None:
    starts = {n: replace(START, offset=SourceOffset(n)) for n in range(4_500)}
    records = began(starts)
    assert [len(value) < 100_000 for _, value in records] == [True, True, True]
    assert [start_of(after(*records), n) for n in (0, 4_499)] == [starts[0], starts[4_499]]


def test_a_pair_that_was_forgotten_has_no_start_any_more() -> None:
    assert start_of(after(*began({0: START}), pairs(), forgotten())) is None
    assert start_of(after(pairs(), forgotten(), *began({0: START}))) is None, "a late record of before"


# The ledger.


def accepted(first: int, end: int, because: str = "nobody needs them") -> AcceptedGap:
    source, target = TopicPartition("orders", 1), TopicPartition("sf.orders", 1)
    gap = uncopied_gap(source, first, end)
    assert gap is not None
    return AcceptedGap(
        gap=gap, target=target, source_topic_id=UUID(int=1), by="amy", because=because, at_ms=9
    )


def test_accepted_gaps_stay_in_the_order_in_which_they_were_accepted() -> None:
    state = after(gap_record("f", accepted(5, 9)), run(), gap_record("f", accepted(20, 30)))
    assert list(state.gaps.values()) == [accepted(5, 9), accepted(20, 30)]


def test_a_gap_that_is_accepted_twice_is_one() -> None:
    again = gap_record("f", accepted(5, 9, "again"))
    state = after(gap_record("f", accepted(5, 9)), again)
    assert list(state.gaps.values()) == [accepted(5, 9, "again")]


def test_an_entry_of_the_ledger_that_cannot_be_read_is_odd() -> None:
    key, value = gap_record("f", accepted(5, 9))
    for broken in ({"first": "5"}, {"kind": "wished away"}, {"end": None}):
        assert after((key, json.dumps(json.loads(value) | broken).encode())).odd


def set_to(
    generation: int, *places: tuple[int, int, int], because: str = "nobody needs them"
) -> ManualPosition:
    return ManualPosition(
        how="adopt",
        source_topic="orders",
        target_topic="sf.orders",
        source_topic_id=UUID(int=1),
        target_topic_id=UUID(int=2),
        places=tuple(
            PlaceSet(
                partition=partition,
                source_next=SourceOffset(here),
                target_next=TargetOffset(there),
                stood_at=7,
            )
            for partition, here, there in places
        ),
        generation=generation,
        by="amy",
        because=because,
        at_ms=9,
    )


def test_what_was_set_by_hand_stays_and_is_one_when_it_is_written_twice() -> None:
    first, second = set_to(4, (0, 10, 31)), set_to(8, (0, 5, 40), (1, 6, 50))
    state = after(set_record("f", first), run(), set_record("f", second), set_record("f", first))
    assert set(state.set_by_hand.values()) == {first, second}


def test_the_newest_word_on_a_pair_counts_and_none_of_topics_that_are_gone() -> None:
    def pair(partition: int, target_id: int = 2) -> Pair:
        return builders.pair(partition, target_topic_id=UUID(int=target_id))

    entries = [set_to(8, (0, 5, 40)), set_to(4, (0, 10, 31), (1, 6, 50))]
    told = [last_manual_position(entries, pair(partition)) for partition in (0, 1, 2)]
    assert [each and each[1].source_next for each in told] == [5, 6, None]
    assert last_manual_position(entries, pair(0, target_id=3)) is None


def test_a_place_that_is_none_is_odd() -> None:
    key, value = set_record("f", set_to(4, (0, 10, 31)))
    for broken in ({"places": [[0, 1, 2]]}, {"places": "all"}, {"generation": "4"}):
        assert after((key, json.dumps(json.loads(value) | broken).encode())).odd
