"""Plans: what moves, what it costs, what is refused, and a hash that changes with whatever would be done."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from causeway.core.failover.plan import (
    FailoverPlan,
    GroupFacts,
    plan_failover,
)
from causeway.core.failover.request import Active, FailoverRequest, Mode, parse_request
from causeway.core.failover.start_impact import LastKnown, Mirrored, impact_left, mirrored_between
from causeway.core.failover.start_offset import Reason, StartOffset
from causeway.core.groups.sync_rules import Committed
from causeway.core.kernel.errors import BadInput
from causeway.core.kernel.estimate import Bound, at_least, at_most, exact, total, unknown
from causeway.core.kernel.identity import Generation, TargetOffset, TopicPartition
from tests.support import builders

P0, P1 = TopicPartition("sf.orders", 0), TopicPartition("sf.orders", 1)
RUNS = tuple(
    builders.mapped_range(
        first, first, (9, 0), first_timestamp_ms=0, last_timestamp_ms=0, generation=Generation(1)
    )
    for first in range(0, 100, 10)
)
"""Nine records and a marker, ten times."""


def mirrored(tp: TopicPartition = P0, place: StartOffset | None = None, log_start: int = 0) -> Mirrored:
    return Mirrored(
        target=tp,
        target_topic_id=UUID(int=2),
        log_start=TargetOffset(log_start),
        end=TargetOffset(99),
        runs=RUNS,
        place=place,
    )


def known(at: int, **more: object) -> LastKnown:
    return LastKnown(at=TargetOffset(at), **{"is_live": True, **more})  # type: ignore[arg-type]


def group(name: str = "billing", **facts: object) -> GroupFacts:
    return GroupFacts(**{"name": name, "is_active": False, "here": {}, "known": {}, **facts})  # type: ignore[arg-type]


MOMENT = FailoverRequest(flow="f", at_ms=1_000)
LATEST = FailoverRequest(flow="f", at_ms=None)


def planned(wish: FailoverRequest, *groups: GroupFacts, **places: StartOffset) -> FailoverPlan:
    found = {tp: mirrored(tp, places.get(f"p{tp.partition}")) for tp in (P0, P1)}
    return plan_failover(wish, groups, found)


def at(offset: int, *reasons: Reason) -> StartOffset:
    return StartOffset(at=TargetOffset(offset), reasons=reasons)


def test_a_moment_moves_every_partition_of_a_topic_that_the_group_reads() -> None:
    plan = planned(MOMENT, group(known={P0: known(45)}), p0=at(20), p1=at(30))
    assert [(m.target, m.after, str(m.rereads), str(m.skips)) for m in plan.moves] == [
        (P0, 20, "23", "0"),  # 45 - 20 offsets, two of them markers
        (P1, 30, "at most 63", "unknown"),
    ]


def test_who_stands_before_the_moment_skips_and_the_sheet_says_so() -> None:
    (move, _) = planned(MOMENT, group(known={P0: known(5)}), p0=at(20), p1=at(0)).moves
    assert (str(move.rereads), str(move.skips)) == ("0", "13")


def test_latest_moves_to_where_the_group_stood() -> None:
    plan = planned(LATEST, group(known={P0: known(45)}))
    assert [(m.target, m.after, str(m.rereads), str(m.skips)) for m in plan.moves] == [(P0, 45, "0", "0")]


def test_who_stands_before_what_the_target_has_begins_with_its_oldest_record() -> None:
    (move,) = planned(LATEST, group(known={P0: known(0, is_older=True)})).moves
    assert (move.after, str(move.rereads), str(move.skips)) == (0, "0", "0")
    assert "isn't on the target" in move.reasons[0]


def test_what_the_last_sync_knew_gives_bounds() -> None:
    said = known(45, is_live=False, told_by="its last checkpoint")
    (move, _) = planned(MOMENT, group(known={P0: said}), p0=at(20), p1=at(0)).moves
    assert (str(move.rereads), str(move.skips)) == ("at most 72", "0"), "all that is mirrored from there on"
    (latest,) = planned(LATEST, group(known={P0: said})).moves
    assert latest.reasons == ("as its last checkpoint says",)
    assert (str(latest.rereads), str(latest.skips)) == ("at most 49", "0")
    assert "it may have read on since" in latest.rereads.because


@pytest.mark.parametrize(
    "stood",
    [known(45, is_live=False, told_by="its last checkpoint"), known(45, is_bound=True), None],
)
@pytest.mark.parametrize("place", [60, 99])
def test_who_reads_on_the_target_already_may_read_more_again_than_was_mirrored(
    stood: LastKnown | None, place: int
) -> None:
    """Its applications have written there: from the place on it reads that again, and nobody counted it."""
    known_there = {} if stood is None else {P0: stood}
    reader = group(here={P0: Committed(5_000)}, known=known_there, own=frozenset({P0}))
    (move, *_) = planned(MOMENT, reader, p0=at(place), p1=at(0)).moves
    assert (move.target, move.after, str(move.rereads)) == (P0, place, "unknown")


@pytest.mark.parametrize(
    "stood",
    [
        known(99, is_live=False, told_by="its last checkpoint"),
        known(99, is_live=False, told_by="its last checkpoint", is_ahead=True),
        known(99, is_bound=True),
    ],
)
def test_who_begins_at_the_end_of_the_mirror_reads_nothing_again(stood: LastKnown) -> None:
    """However far it has read since: what isn't mirrored isn't there."""
    (move,) = planned(LATEST, group(known={P0: stood})).moves
    assert (move.after, move.rereads, move.skips) == (99, exact(0), exact(0))
    (nobody, _) = planned(MOMENT, group(topics=frozenset({"sf.orders"})), p0=at(99), p1=at(0)).moves
    assert (str(nobody.rereads), str(nobody.skips)) == ("0", "unknown")


def test_what_the_map_doesnt_know_makes_a_price_a_bound() -> None:
    """The mirror was adopted: what lies in front was brought by somebody else, and nobody has counted it."""
    found = {P0: replace(mirrored(P0, at(20)), runs=RUNS[5:])}
    stood = {P0: known(75)}
    (move,) = plan_failover(MOMENT, [group(known=stood)], found).moves
    assert (str(move.rereads), str(move.skips)) == ("at least 23", "0")
    assert "before 50 on sf.orders-0 isn't in the map" in move.rereads.because
    found = {P0: replace(found[P0], place=at(75))}
    for stood, price in (({P0: known(20)}, "at least 23"), ({P0: known(60)}, "14")):
        (move,) = plan_failover(MOMENT, [group(known=stood)], found).moves
        assert (str(move.rereads), str(move.skips)) == ("0", price)
    told = {P0: known(20, is_live=False, told_by="its last checkpoint")}
    assert plan_failover(MOMENT, [group(known=told)], found).moves[0].skips.bound is Bound.UNKNOWN
    for stood in ({P0: replace(told[P0], at=TargetOffset(45))}, {}):
        (latest, *_) = plan_failover(
            replace(MOMENT, groups=("billing",)),
            [group(known=stood, topics=frozenset({"sf.orders"}))],
            {P0: replace(found[P0], place=at(45))},
        ).moves
        assert str(latest.rereads) == "unknown", "nobody has counted what lies before 50"


def test_a_place_that_is_a_lower_bound_makes_a_price_that_says_so() -> None:
    said = known(45, is_bound=True)
    (latest,) = planned(LATEST, group(known={P0: said})).moves
    assert latest.reasons == ("its place is a lower bound, by MirrorMaker 2's offset syncs",)
    assert (str(latest.rereads), str(latest.skips)) == ("at most 49", "0")
    (move, _) = planned(MOMENT, group(known={P0: said}), p0=at(60), p1=at(0)).moves
    assert move.skips.bound is Bound.UNKNOWN


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"here": {P0: Committed(7)}, "own": frozenset({P0})}, "by itself"),
        ({"known": {P0: LastKnown(at=None, why_not="older than the map")}}, "older than the map"),
        ({"here": {P0: Committed(7)}}, "isn't known"),
        ({"refused": "GROUP_AUTHORIZATION_FAILED"}, "GROUP_AUTHORIZATION_FAILED"),
    ],
)
def test_latest_leaves_alone_what_it_has_no_place_for(facts: dict[str, object], why: str) -> None:
    plan = planned(LATEST, group("billing", **facts))
    assert plan.moves == ()
    assert why in plan.left_alone[0].why


def test_what_stays_where_it_is_has_a_price() -> None:
    behind = group("behind", here={P0: Committed(20)}, known={P0: known(45)}, own=frozenset({P0}))
    ahead = group("ahead", here={P0: Committed(45)}, known={P0: known(20)}, own=frozenset({P0}))
    level = group("level", here={P0: Committed(45)}, known={P0: known(45)}, own=frozenset({P0}))
    busy = group("busy", is_active=True, here={P0: Committed(20), P1: Committed(45)}, known={P0: known(45)})
    plan = planned(replace(LATEST, active=Active.LEAVE), behind, ahead, level, busy)
    prices = {left.group: left.price for left in plan.left_alone}
    assert [(name, str(p.rereads), str(p.skips), str(p.seconds)) for name, p in prices.items() if p] == [
        ("ahead", "0", "23", "0"),
        ("behind", "23", "0", "0"),
        ("busy", "at most 72", "unknown", "unknown"),
        ("level", "0", "0", "0"),
    ]
    assert str(prices["behind"]) == "left there, it reads again 23 and skips 0 records"
    assert str(prices["level"]) == "it stands there where it stood on the source"
    assert plan.hash == replace(plan, left_alone=tuple(replace(x, price=None) for x in plan.left_alone)).hash


def test_the_time_between_is_that_of_the_runs_and_never_less() -> None:
    runs = [
        replace(run, first_timestamp_ms=n * 1_000, last_timestamp_ms=n * 1_000 + 900)
        for n, run in enumerate(RUNS)
    ]
    found = impact_left(20, known(45), replace(mirrored(), runs=runs))
    assert (found.seconds.bound, found.seconds.number) == (Bound.AT_MOST, 3), "2.0 to 4.9 s"
    assert "(seconds between: at most 3)" in str(found)
    runs[3] = replace(runs[3], last_timestamp_ms=-1)
    assert impact_left(20, known(45), replace(mirrored(), runs=runs)).seconds.bound is Bound.UNKNOWN


def test_other_words_for_the_same_trouble_are_the_same_plan_and_another_trouble_is_another() -> None:
    """A client words a time-out as it likes; after the fence nothing has moved for all that."""

    def left(why: str, detail: str) -> FailoverPlan:
        nowhere = StartOffset(at=None, why_not=why, detail=detail)
        return planned(MOMENT, group(known={P0: known(45)}), p0=nowhere, p1=at(0))

    plans = [left("the source can't be asked", f"KafkaTimeoutError: {n} ms") for n in (4_000, 4_017)]
    assert plans[0].hash == plans[1].hash
    assert "can't be asked: KafkaTimeoutError: 4017 ms" in str(plans[1].left_alone[0])
    assert plans[0].hash != left("the target's index: LEADER_NOT_AVAILABLE", "").hash
    alone = replace(plans[0], left_alone=())
    assert plans[0].hash != alone.hash


def test_active_groups_are_refused_and_named_or_left() -> None:
    facts = [group("billing", is_active=True, known={P0: known(4)}), group("audit", known={P0: known(4)})]
    with pytest.raises(BadInput, match=r"billing.*--active leave"):
        planned(LATEST, *facts)
    with pytest.raises(BadInput, match=r"^(?!.*--active leave)"):  # there are no others to move
        planned(LATEST, facts[0])
    plan = planned(replace(LATEST, active=Active.LEAVE), *facts)
    assert plan.groups == ("audit",)
    assert plan.left_alone[0].group == "billing"


def test_a_homecoming_names_no_option_that_only_a_failover_has() -> None:
    facts = [group("billing", is_active=True, known={P0: known(4)})]
    wish = FailoverRequest(flow="nyc_to_sf", at_ms=None, mode=Mode.HOME)
    with pytest.raises(BadInput, match=r"old primary = billing.*same command again") as refused:
        plan_failover(wish, facts, {P0: mirrored()})
    assert "--" not in str(refused.value)


def test_a_moment_from_before_retention_is_refused_with_its_partitions_unless_clamped() -> None:
    places = {"p0": at(20, Reason.TRIMMED), "p1": at(40)}
    with pytest.raises(BadInput, match=r"sf.orders-0.*--clamp earliest"):
        planned(MOMENT, group(known={P0: known(45)}), **places)
    plan = planned(replace(MOMENT, clamp=True), group(known={P0: known(45)}), **places)
    assert [move.after for move in plan.moves] == [20, 40]


def test_a_moment_from_before_everything_is_refused_and_one_topic_that_began_later_is_not() -> None:
    with pytest.raises(BadInput, match="earlier than the oldest record"):
        planned(MOMENT, group(known={P0: known(45)}), p0=at(0, Reason.OLDER), p1=at(0, Reason.OLDER))
    assert planned(MOMENT, group(known={P0: known(45)}), p0=at(0, Reason.OLDER), p1=at(9)).moves


def test_what_none_of_the_moved_groups_reads_may_begin_later_than_the_moment() -> None:
    """Somebody's metrics, kept for an hour, are no reason to tell everybody to clamp."""
    metrics = mirrored(TopicPartition("sf.metrics", 0), at(20, Reason.TRIMMED))
    found = {P0: mirrored(P0, at(30)), metrics.target: metrics}
    plan = plan_failover(MOMENT, [group(known={P0: known(45)})], found)
    assert [(move.target, move.after) for move in plan.moves] == [(P0, 30)]
    reader = group("dashboards", known={metrics.target: known(45)})
    with pytest.raises(BadInput, match=r"sf.metrics-0.*--clamp earliest"):
        plan_failover(MOMENT, [group(known={P0: known(45)}), reader], found)


def test_a_group_that_nobody_has_seen_moves_if_its_topics_are_named() -> None:
    plan = planned(MOMENT, group(topics=frozenset({"sf.orders"})), p0=at(20), p1=at(30))
    assert [(m.after, str(m.rereads), str(m.skips)) for m in plan.moves] == [
        (20, "at most 72", "unknown"),
        (30, "at most 63", "unknown"),
    ]
    latest = planned(LATEST, group(topics=frozenset({"sf.orders"})))
    assert [(left.target, "--at TIME" in left.why) for left in latest.left_alone] == [(P0, True), (P1, True)]


@pytest.mark.parametrize(
    "changed",
    [
        lambda: planned(LATEST, group(known={P0: known(46)})),
        lambda: planned(LATEST, group("other", known={P0: known(45)})),
        lambda: planned(LATEST, group(known={P0: known(45)}, here={P0: Committed(1, "x")})),
        lambda: planned(LATEST, group(known={P0: known(45), P1: known(1)})),
        lambda: planned(replace(LATEST, topics=("orders",)), group(known={P0: known(45)})),
        lambda: plan_failover(
            LATEST, [group(known={P0: known(45)})], {P0: replace(mirrored(), target_topic_id=UUID(int=9))}
        ),
    ],
)
def test_the_hash_changes_with_whatever_would_be_done(changed: object) -> None:
    before = planned(LATEST, group(known={P0: known(45)}))
    assert before.hash == planned(LATEST, group(known={P0: known(45)})).hash
    assert changed().hash != before.hash  # type: ignore[operator]


def test_records_between_two_places_are_those_of_the_map() -> None:
    assert mirrored_between(RUNS, 0, 100) == 90
    assert mirrored_between(RUNS, 9, 10) == 0
    assert mirrored_between(RUNS, 8, 11) == 2
    assert mirrored_between(RUNS, 50, 40) == 0


def test_a_sum_is_as_sure_as_its_least_sure_part() -> None:
    assert str(total([exact(2), exact(3)])) == "5"
    assert str(total([exact(2), at_most(3, "x")])) == "at most 5"
    assert total([exact(2), unknown("dead")]) == at_least(2, "dead")
    assert str(total([unknown("dead"), unknown("dead")])) == "unknown"
    assert total([at_most(2, "x"), unknown("dead")]).bound is Bound.UNKNOWN
    assert str(total([])) == "0"


def test_a_wish_comes_back_as_it_was() -> None:
    wish = FailoverRequest(flow="f", at_ms=5, safety_ms=3, groups=("a", "b"), active=Active.LEAVE, clamp=True)
    assert parse_request(wish.as_dict()) == wish
    assert wish.moment_ms == 2
    assert wish.key == replace(wish, groups=("b", "a")).key
    assert wish.key != replace(wish, safety_ms=4).key


def test_a_name_is_meant_as_it_is_and_as_a_pattern() -> None:
    wish = replace(LATEST, groups=("a+b", "team.*"), topics=("orders",))
    assert [wish.selects_group(name) for name in ("a+b", "aab", "team 7", "b")] == [True, True, True, False]
    assert wish.selects_topic("orders")


def test_a_planned_failover_agrees_to_groups_and_their_offsets_follow() -> None:
    wish = replace(LATEST, mode=Mode.PLANNED)
    sheet, later = (planned(wish, group(known={P0: known(at)})) for at in (45, 46))
    assert sheet.hash != later.hash
    assert sheet.agreement == later.agreement
    assert sheet.agreement != planned(wish, group("other", known={P0: known(45)})).agreement
    unplanned = planned(LATEST, group(known={P0: known(45)}))
    assert unplanned.agreement == unplanned.hash


def test_a_wish_of_an_older_journal_was_no_planned_one() -> None:
    fields = {name: value for name, value in LATEST.as_dict().items() if name != "mode"}
    assert parse_request(fields) == LATEST
    assert parse_request(replace(LATEST, mode=Mode.PLANNED).as_dict()).is_planned
