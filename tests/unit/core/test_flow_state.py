import json
from dataclasses import replace
from uuid import UUID

import pytest

from causeway.core.beginnings import PlaceSet, SetByHand, last_beginning
from causeway.core.errors import ProtocolFault
from causeway.core.flow_log import LogRecord
from causeway.core.flow_state import (
    Fence,
    FlowState,
    KnownPair,
    Run,
    adopted_record,
    alive_record,
    claimed_record,
    clusters_record,
    fence_record,
    fold,
    forgotten_record,
    gap_record,
    lift_record,
    pair_record,
    run_record,
    set_record,
)
from causeway.core.gap_ledger import AcceptedGap
from causeway.core.gaps import uncopied_gap
from causeway.core.identity import Pair, SourceOffset, TargetOffset, TopicPartition

PAIR = KnownPair(
    source_topic="orders", source_topic_id=UUID(int=1), target_topic_id=UUID(int=2), partitions=3
)


def run(*, holder="amy", lanes=4, most_lanes=0, at_ms=1_000, flow="f"):
    before = FlowState(most_lanes=most_lanes)
    return run_record(flow, before, holder=holder, run_id=f"{holder}-1", lanes=lanes, at_ms=at_ms)


def alive(generation, *, ended=False, at_ms=2_000):
    return alive_record("f", generation=generation, ended=ended, at_ms=at_ms)


def fence(*, most_lanes=0):
    return fence_record("f", by="eve", because="failover", most_lanes=most_lanes, at_ms=3_000)


def lift(generation):
    return lift_record("f", lifts=generation, by="eve", because="it was a drill", at_ms=4_000)


def folded(*records, first_offset=10):
    states = {}
    for offset, (key, value) in enumerate(records, first_offset):
        states = fold(states, LogRecord(offset, 0, key, value))
    return states


def after(*records):
    return folded(*records)["f"]


def test_a_flow_that_never_ran_has_no_generation():
    assert FlowState().generation == -1
    assert FlowState().running is None
    assert FlowState().last_sign_ms == 0


def test_the_generation_is_the_offset_of_the_newest_turn():
    assert after(run()).generation == 10
    assert after(run(), run()).generation == 11
    assert after(run(), fence()).generation == 11
    assert after(run(), fence(), lift(11)).generation == 12


def test_what_is_no_turn_leaves_the_generation_alone():
    state = after(
        run(), alive(10), pair_record("f", "sf.orders", PAIR), clusters_record("f", source="a", target="b")
    )
    assert state.generation == 10


def test_a_run_says_who_holds_the_flow_since_when():
    assert after(run(lanes=7, at_ms=55)).running == Run(
        generation=10, holder="amy", run_id="amy-1", lanes=7, since_ms=55
    )


def test_a_run_never_lifts_a_fence():
    state = after(fence(), run(), run(holder="bob"))
    assert state.fence == Fence(generation=10, by="eve", because="failover", since_ms=3_000)
    assert state.generation == 12


def test_only_a_lift_opens_a_fence():
    assert after(fence(), run(), lift(10)).fence is None


@pytest.mark.parametrize("turns", [[run(), fence()], [fence(), run(), lift(10)]])
def test_a_fence_and_its_lift_end_the_run_before_them(turns):
    state = after(*turns)
    assert state.run is not None
    assert state.running is None


def test_a_run_ends_by_its_own_word():
    assert after(run(), alive(10, ended=True)).running is None
    assert after(run(), alive(10)).running is not None


def test_the_end_of_an_older_run_does_not_end_the_newest():
    state = after(run(), run(holder="bob"), alive(10, ended=True, at_ms=9_000))
    assert state.running.holder == "bob"
    assert state.last_sign_ms == 1_000


def test_a_sign_of_life_that_comes_late_does_not_wake_a_run_that_ended():
    assert after(run(), alive(10, ended=True), alive(10)).running is None
    assert after(run(), alive(10, ended=True), run(), alive(12)).running is not None


def test_the_last_sign_is_the_beginning_until_the_run_says_more():
    assert after(run(at_ms=700)).last_sign_ms == 700
    assert after(run(at_ms=700), alive(10, at_ms=900)).last_sign_ms == 900


def test_most_lanes_never_shrinks():
    assert after(run(lanes=9), run(lanes=2)).most_lanes == 9
    assert after(run(lanes=9), fence()).most_lanes == 9
    assert after(run(lanes=2, most_lanes=16)).most_lanes == 16
    assert after(run(lanes=2), fence(most_lanes=20), run(lanes=1)).most_lanes == 20


def test_pairs_add_up_by_target_topic_and_the_newest_word_counts():
    grown = KnownPair(
        source_topic="orders", source_topic_id=UUID(int=1), target_topic_id=UUID(int=9), partitions=6
    )
    other = KnownPair(
        source_topic="x", source_topic_id=UUID(int=3), target_topic_id=UUID(int=4), partitions=1
    )
    state = after(
        pair_record("f", "sf.orders", PAIR),
        pair_record("f", "sf.x", other),
        pair_record("f", "sf.orders", grown),
    )
    assert state.pairs == {"sf.orders": grown, "sf.x": other}


def test_clusters_are_remembered():
    state = after(clusters_record("f", source="S", target="T"))
    assert (state.source_cluster_id, state.target_cluster_id) == ("S", "T")


def test_flows_share_the_topic_and_nothing_else():
    states = folded(run(flow="f"), run(flow="g", lanes=30), fence())
    assert states["g"].fence is None
    assert states["g"].generation == 11
    assert states["f"].most_lanes == 4


def test_each_kind_and_each_pair_has_a_key_of_its_own_and_two_runs_share_one():
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
    assert fence()[0] == fence(most_lanes=7)[0]
    assert lift(1)[0] != lift(2)[0]


def test_folding_leaves_the_states_before_as_they_were():
    before = folded(run())
    kept = dict(before)
    fold(before, LogRecord(11, 0, *fence()))
    assert before == kept


def test_what_compaction_removes_says_nothing():
    assert folded((run()[0], None)) == {}


GOOD_RUN = json.loads(run()[1])


def without(field):
    return json.dumps({k: v for k, v in GOOD_RUN.items() if k != field}).encode()


def with_(**fields):
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
def test_a_value_that_cannot_be_read_is_refused_not_skipped(value):
    with pytest.raises(ProtocolFault, match="in the flows topic"):
        folded((run()[0], value))


@pytest.mark.parametrize("key", [b"", b"run/f", b"2/run/f", b"1/run", b"\xff/run/f", b"x1/run/f"])
def test_a_key_of_another_maker_or_version_is_refused(key):
    with pytest.raises(ProtocolFault, match="key of record 10 in the flows topic"):
        folded((key, run()[1]))


def test_a_kind_from_the_future_is_refused_with_the_way_out():
    with pytest.raises(
        ProtocolFault, match=r"record 10 of the flows topic = lease: .*run the newest version"
    ):
        folded((b"1/lease/f", b'{"v":1}'))


def test_half_a_topic_id_is_refused():
    key, value = pair_record("f", "sf.orders", PAIR)
    with pytest.raises(ProtocolFault, match="must be version 1"):
        folded((key, value.replace(b"-", b"")[:-30] + b'"}'))
    with pytest.raises(ProtocolFault, match="must be version 1"):
        folded((key, value.replace(b"00000001", b"1")))


def test_another_number_of_lanes_is_never_forgotten():
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


def test_a_lift_lifts_the_fence_that_it_names_and_no_other():
    """It may arrive when somebody has long fenced the flow again."""
    state = after(fence(), lift(10), fence(), lift(10))
    assert state.fence is not None
    assert state.fence.generation == state.generation == 12


def test_a_fence_knows_the_one_that_it_was_raised_over():
    state = after(fence(), fence())
    assert state.fence is not None
    assert state.fence.over is not None
    assert (state.fence.generation, state.fence.over.generation, state.fence.over.over) == (11, 10, None)


def test_a_claim_is_written_to_be_read_up_to_and_says_nothing():
    assert after(run(), claimed_record("f", lane=3, generation=10)) == after(run())
    keys = {claimed_record("f", lane=lane, generation=1)[0] for lane in (0, 1)}
    assert keys == {b"1/claimed/f/0", b"1/claimed/f/1"}


def test_a_late_lift_does_not_take_the_place_of_the_one_that_counts():
    log = [fence(), lift(10), fence(), lift(12), lift(10)]
    newest = {key: offset for offset, (key, _) in enumerate(log, 10)}
    states = {}
    for offset, (key, value) in enumerate(log, 10):
        if newest[key] == offset:
            states = fold(states, LogRecord(offset, 0, key, value))
    assert states["f"].fence is None


# What a person decided about a pair of topics.

MADE_ANEW = replace(PAIR, source_topic_id=UUID(int=7))


def pairs(pair=PAIR):
    return pair_record("f", "sf.orders", pair)


def adopted(at, pair=PAIR):
    return adopted_record("f", "sf.orders", replace(pair, adopted_at=at))


def forgotten(pair=PAIR):
    return forgotten_record("f", "sf.orders", pair)


def test_an_adoption_is_not_hidden_by_a_runs_record_that_arrives_behind_it():
    """The run read the state in front of the adoption; its record was given up, and appended all the same."""
    assert after(pairs(), adopted(5), pairs()).pairs["sf.orders"].adopted_at == 5
    assert after(adopted(5, MADE_ANEW), pairs()).pairs["sf.orders"] == replace(MADE_ANEW, adopted_at=5)


def test_an_adoption_is_not_taken_by_compaction():
    (key, _), (late, _) = adopted(5), pairs()
    assert key not in {late, adopted(6)[0]}


def test_of_adoptions_the_newest_counts_whatever_arrives_last():
    assert after(adopted(6, MADE_ANEW), adopted(5)).pairs["sf.orders"] == replace(MADE_ANEW, adopted_at=6)
    assert after(adopted(5), adopted(6, MADE_ANEW)).pairs["sf.orders"].ids == MADE_ANEW.ids


def test_partitions_that_come_behind_an_adoption_are_known():
    grown = after(adopted(5), pairs(replace(PAIR, partitions=8))).pairs["sf.orders"]
    assert (grown.partitions, grown.adopted_at) == (8, 5)


def test_a_pair_that_was_forgotten_stays_so_until_other_topics_take_its_place():
    assert after(pairs(), forgotten()).pairs == {}
    assert after(adopted(5), forgotten(), pairs()).pairs == {}, "a late record of before"
    assert after(pairs(), forgotten(), pairs(MADE_ANEW)).pairs["sf.orders"] == MADE_ANEW
    assert after(pairs(MADE_ANEW), forgotten()).pairs["sf.orders"] == MADE_ANEW


def test_a_pair_that_was_forgotten_may_be_adopted_by_hand():
    assert after(forgotten(), adopted(9)).pairs["sf.orders"].adopted_at == 9


# The ledger.


def accepted(first, end, because="nobody needs them"):
    source, target = TopicPartition("orders", 1), TopicPartition("sf.orders", 1)
    gap = uncopied_gap(source, first, end)
    return AcceptedGap(
        gap=gap, target=target, source_topic_id=UUID(int=1), by="amy", because=because, at_ms=9
    )


def test_accepted_gaps_stay_in_the_order_in_which_they_were_accepted():
    state = after(gap_record("f", accepted(5, 9)), run(), gap_record("f", accepted(20, 30)))
    assert list(state.gaps.values()) == [accepted(5, 9), accepted(20, 30)]


def test_a_gap_that_is_accepted_twice_is_one():
    again = gap_record("f", accepted(5, 9, "again"))
    state = after(gap_record("f", accepted(5, 9)), again)
    assert list(state.gaps.values()) == [accepted(5, 9, "again")]


def test_the_ledger_refuses_what_it_does_not_understand():
    key, value = gap_record("f", accepted(5, 9))
    for broken in ({"first": "5"}, {"kind": "wished away"}, {"end": None}):
        with pytest.raises(ProtocolFault):
            after((key, json.dumps(json.loads(value) | broken).encode()))


def test_a_fence_is_known_by_its_token():
    key, value = fence_record("f", by="eve", because="x", most_lanes=1, at_ms=1, token="mine")
    assert after((key, value)).fence.token == "mine"
    assert after(fence()).fence.token == ""


def set_to(generation, *places, because="nobody needs them"):
    return SetByHand(
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


def test_what_was_set_by_hand_stays_and_is_one_when_it_is_said_twice():
    first, second = set_to(4, (0, 10, 31)), set_to(8, (0, 5, 40), (1, 6, 50))
    state = after(set_record("f", first), run(), set_record("f", second), set_record("f", first))
    assert set(state.set_by_hand.values()) == {first, second}


def test_the_newest_word_on_a_pair_counts_and_none_of_topics_that_are_gone():
    def pair(partition, target_id=2):
        return Pair(
            source=TopicPartition("orders", partition),
            target=TopicPartition("sf.orders", partition),
            source_topic_id=UUID(int=1),
            target_topic_id=UUID(int=target_id),
        )

    entries = [set_to(8, (0, 5, 40)), set_to(4, (0, 10, 31), (1, 6, 50))]
    told = [last_beginning(entries, pair(partition)) for partition in (0, 1, 2)]
    assert [each and each[1].source_next for each in told] == [5, 6, None]
    assert last_beginning(entries, pair(0, target_id=3)) is None


def test_a_place_that_is_none_is_refused():
    key, value = set_record("f", set_to(4, (0, 10, 31)))
    for broken in ({"places": [[0, 1, 2]]}, {"places": "all"}, {"generation": "4"}):
        with pytest.raises(ProtocolFault):
            after((key, json.dumps(json.loads(value) | broken).encode()))
