"""One group on one partition: what the target should hold for it, rule by rule."""

from __future__ import annotations

from dataclasses import replace

import pytest

from causeway.core.groups.stamp import Stamp, parse_stamp, stamped
from causeway.core.groups.sync_rules import (
    RENEW_AFTER_MS,
    Committed,
    GroupPlace,
    Outcome,
    SyncRules,
    TargetRange,
    Translated,
    Untranslated,
    Verdict,
    judge_place,
)
from causeway.core.journal.remaining_work import failover_mark
from causeway.core.kernel.identity import SourceOffset, TargetOffset, TopicPartition

NOW_MS = 1_800_000_000_000
RULES = SyncRules(flow="sf_to_nyc", syncs=True, follows_rewinds=False, now_ms=NOW_MS)
PLACE = GroupPlace(
    group="billing",
    source=TopicPartition("orders", 0),
    target=TopicPartition("sf.orders", 0),
    committed=Committed(150),
    translation=Translated(TargetOffset(50)),
    range=TargetRange(log_start=TargetOffset(10), end=TargetOffset(100), log_end=TargetOffset(101)),
    there=None,
    is_active=False,
    last_checkpoint=None,
)


def ours(offset: int, source_next: int = 150, *, age_ms: int = 0) -> Committed:
    stamp = Stamp(
        flow="sf_to_nyc",
        source_next=SourceOffset(source_next),
        target_next=TargetOffset(offset),
        time_ms=NOW_MS - age_ms,
    )
    return Committed(offset, stamped(stamp))


def judged(rules: SyncRules = RULES, **changes: object) -> Verdict:
    return judge_place(replace(PLACE, **changes), rules)  # type: ignore[arg-type]


def committed(verdict: Verdict) -> int | None:
    return None if verdict.commit is None else verdict.commit.offset


def test_a_group_that_the_target_does_not_know_gets_its_place() -> None:
    verdict = judged()
    assert (verdict.outcome, verdict.target_next, committed(verdict)) == (Outcome.SYNCED, 50, 50)
    assert verdict.commit is not None
    stamp = parse_stamp(verdict.commit.metadata)
    assert stamp == Stamp(
        flow="sf_to_nyc", source_next=SourceOffset(150), target_next=TargetOffset(50), time_ms=NOW_MS
    )


def test_it_moves_forward() -> None:
    verdict = judged(there=ours(40, 140))
    assert (verdict.outcome, verdict.before, committed(verdict)) == (Outcome.SYNCED, 40, 50)


def test_what_is_right_already_is_not_written_again() -> None:
    verdict = judged(there=ours(50))
    assert (verdict.outcome, committed(verdict)) == (Outcome.SYNCED, None)


def test_what_is_right_is_committed_again_each_day() -> None:
    """Committed offsets of a group without members expire after seven days."""
    assert committed(judged(there=ours(50, age_ms=RENEW_AFTER_MS - 1))) is None
    assert committed(judged(there=ours(50, age_ms=RENEW_AFTER_MS))) == 50
    assert committed(judged(there=ours(50, age_ms=-RENEW_AFTER_MS))) == 50, "by a clock that ran ahead"


def test_an_active_group_is_left_alone() -> None:
    for there in (None, ours(40), Committed(40)):
        verdict = judged(is_active=True, there=there)
        assert (verdict.outcome, verdict.commit) == (Outcome.ACTIVE, None)
        assert verdict.target_next == 50, "its checkpoint goes on"


@pytest.mark.parametrize("offset", [5, 20, 49, 50, 51, 99, 5_000])
@pytest.mark.parametrize("metadata", ["", "mine", '{"causeway":2}', '{"causeway":1}', "{", ours(52).metadata])
def test_a_group_that_has_moved_on_by_itself_is_never_pulled_anywhere(offset: int, metadata: str) -> None:
    for rules in (RULES, replace(RULES, follows_rewinds=True)):
        verdict = judged(rules, there=Committed(offset, metadata), last_checkpoint=Committed(offset + 1))
        assert (verdict.outcome, verdict.commit) == (Outcome.MOVED_ON, None)
        assert str(offset) in verdict.why


def test_what_says_the_same_as_the_last_checkpoint_is_a_mirrors_word() -> None:
    """MirrorMaker 2's commit, or one of a consumer that began there and has read nothing."""
    verdict = judged(there=Committed(40), last_checkpoint=Committed(40))
    assert (verdict.outcome, committed(verdict)) == (Outcome.SYNCED, 50)
    back = judged(there=Committed(60), last_checkpoint=Committed(60))
    assert (back.outcome, back.commit) == (Outcome.WENT_BACK, None)


@pytest.mark.parametrize("offset", [20, 50, 5_000])
@pytest.mark.parametrize("metadata", ["", "mine", failover_mark("run")])
def test_what_it_held_when_it_returned_is_replaced_and_nothing_else(offset: int, metadata: str) -> None:
    left = Committed(offset, metadata)
    verdict = judged(there=left, left=left)
    assert (verdict.outcome, committed(verdict), verdict.stands_as_it_left) == (Outcome.SYNCED, 50, True)
    for since in (replace(left, offset=offset + 1), replace(left, metadata="since")):
        own = judged(there=since, left=left)
        assert (own.outcome, own.commit, own.stands_as_it_left) == (Outcome.MOVED_ON, None, False)
    active = judged(there=left, left=left, is_active=True)
    assert (active.outcome, active.commit) == (Outcome.ACTIVE, None)


@pytest.mark.parametrize("offset", [51, 99, 101])
@pytest.mark.parametrize("metadata", ["", "mine", failover_mark("run")])
def test_what_it_held_when_it_returned_is_never_moved_back(offset: int, metadata: str) -> None:
    """A rollback of the homecoming may have put back the source's offsets already."""
    left = Committed(offset, metadata)
    for rules in (RULES, replace(RULES, follows_rewinds=True)):
        for translation in (PLACE.translation, BOUND):
            verdict = judged(rules, there=left, left=left, translation=translation)
            assert (verdict.outcome, verdict.commit) == (Outcome.WENT_BACK, None)
            assert f"offset {offset} there" in verdict.why


@pytest.mark.parametrize("offset", [20, 50, 99, 5_000])
def test_whose_homecoming_may_have_been_rolled_back_is_left_alone_and_that_is_reported(offset: int) -> None:
    left = Committed(offset, failover_mark("run"))
    verdict = judged(there=left, left=left, left_unsure="nobody may read it")
    assert (verdict.outcome, verdict.commit) == (Outcome.REFUSED, None)
    assert "nobody may read it" in verdict.why
    synced = judged(there=ours(40), left=ours(40), left_unsure="nobody may read it")
    assert (synced.outcome, committed(synced)) == (Outcome.SYNCED, 50), (
        "what a sync wrote is a sync's to move"
    )


def test_what_a_failover_has_placed_is_no_mirrors_word() -> None:
    """Even where it equals the last checkpoint, as `--at latest` does."""
    there = Committed(40, failover_mark("run"))
    verdict = judged(there=there, last_checkpoint=Committed(40))
    assert (verdict.outcome, verdict.commit) == (Outcome.MOVED_ON, None)


def test_a_rewind_is_followed_only_if_the_flow_says_so() -> None:
    there = ours(80, 180)
    left = judged(there=there)
    assert (left.outcome, left.commit) == (Outcome.WENT_BACK, None)
    assert "from 180 to 150" in left.why
    followed = judged(replace(RULES, follows_rewinds=True), there=there)
    assert (followed.outcome, committed(followed)) == (Outcome.SYNCED, 50)


def test_nothing_goes_back_if_the_group_did_not() -> None:
    """What is read of the mirror is old: its end lies before where it was."""
    older = TargetRange(log_start=TargetOffset(10), end=TargetOffset(70), log_end=TargetOffset(101))
    ahead = Translated(TargetOffset(70), ahead_by=20)
    for rules in (RULES, replace(RULES, follows_rewinds=True)):
        for translation in (ahead, Translated(TargetOffset(75))):
            verdict = judged(rules, there=ours(80, 150), translation=translation, range=older)
            assert (verdict.outcome, verdict.commit) == (Outcome.WENT_BACK, None)


@pytest.mark.parametrize("source_next", [150, 140])
def test_what_lies_past_unread_records_since_the_log_was_written_again_is_mended(source_next: int) -> None:
    """The target lost its tail and got it back, at lower offsets: a reader from there would miss some."""
    verdict = judged(there=ours(80, source_next))
    assert (verdict.outcome, committed(verdict)) == (Outcome.SYNCED, 50)


def test_what_lies_past_all_that_is_mirrored_is_mended() -> None:
    """The target lost its tail: a reader from there would miss what is appended next."""
    verdict = judged(there=ours(120, 150))
    assert (verdict.outcome, committed(verdict)) == (Outcome.SYNCED, 50)


def test_ahead_of_the_mirror_is_the_mirrors_end() -> None:
    verdict = judged(translation=Translated(TargetOffset(100), ahead_by=7))
    assert (verdict.outcome, committed(verdict)) == (Outcome.AHEAD, 100)
    assert verdict.why.startswith("7 source offsets")
    still = judged(translation=Translated(TargetOffset(100), ahead_by=9), there=ours(100, 150))
    assert (still.outcome, still.commit) == (Outcome.AHEAD, None)


def test_never_past_what_is_mirrored_and_never_below_the_log_start() -> None:
    assert committed(judged(translation=Translated(TargetOffset(101)))) == 100
    assert committed(judged(translation=Translated(TargetOffset(9)))) == 10
    emptied = TargetRange(log_start=TargetOffset(120), end=TargetOffset(100), log_end=TargetOffset(120))
    assert committed(judged(range=emptied)) == 120
    assert judged(range=emptied, there=ours(120)).commit is None


@pytest.mark.parametrize(
    "outcome", [Outcome.OLDER, Outcome.NEVER, Outcome.OTHER_GENERATION, Outcome.NOT_IN_FLOW, Outcome.MISSING]
)
def test_what_can_not_be_translated_says_why(outcome: Outcome) -> None:
    verdict = judged(translation=Untranslated(outcome, "facts"), there=ours(40))
    assert (verdict.outcome, verdict.commit, verdict.target_next) == (outcome, None, None)
    assert verdict.why == "facts"


def test_without_sync_there_is_a_place_and_no_commit() -> None:
    verdict = judged(replace(RULES, syncs=False), is_active=True)
    assert (verdict.outcome, verdict.target_next, verdict.commit) == (Outcome.TRANSLATED, 50, None)


def test_the_groups_own_words_travel_and_no_stamp_lies_in_a_stamp() -> None:
    def words(metadata: str) -> str:
        verdict = judged(committed=Committed(150, metadata))
        assert verdict.commit is not None
        assert len(verdict.commit.metadata) <= 4_096
        stamp = parse_stamp(verdict.commit.metadata)
        assert stamp is not None
        return stamp.metadata

    assert words("") == ""
    assert words("AgAAAX") == "AgAAAX"
    assert words(judged(committed=Committed(1, "inner")).commit.metadata) == "inner"  # type: ignore[union-attr]
    assert words("x" * 4_090) == "", "too long beside the stamp: left behind"


BOUND = Translated(TargetOffset(50), is_lower_bound=True)


def test_a_lower_bound_is_committed_and_called_by_its_name() -> None:
    verdict = judged(translation=BOUND)
    assert (verdict.outcome, committed(verdict)) == (Outcome.LOWER_BOUND, 50)
    assert "before the takeover" in verdict.why
    looked = judged(replace(RULES, syncs=False), translation=BOUND)
    assert (looked.outcome, looked.target_next, looked.commit) == (Outcome.LOWER_BOUND, 50, None)


def test_of_two_lower_bounds_the_nearer_stays() -> None:
    """MirrorMaker 2 had committed it when it knew more syncs."""
    verdict = judged(translation=BOUND, there=Committed(60), last_checkpoint=Committed(60))
    assert (verdict.outcome, verdict.target_next, committed(verdict)) == (Outcome.LOWER_BOUND, 60, 60)
    assert committed(judged(translation=BOUND, there=ours(60))) is None
    back = judged(translation=BOUND, there=ours(60, 200))
    assert back.outcome is Outcome.WENT_BACK, "the group itself went back"


def test_a_group_that_moved_on_by_itself_after_the_takeover_is_left_alone() -> None:
    assert judged(translation=BOUND, there=Committed(60)).outcome is Outcome.MOVED_ON
