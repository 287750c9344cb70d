"""What happens to one group on one partition: which offset the target should hold for it, or why none.

Reads are old by the time they are judged, so a verdict leans to the side where nothing is skipped:

    A. Never past what is mirrored: an offset ahead of the mirror becomes the mirror's end, where no record
       that is there has still to be read.
    B. Never below the target's log start: what retention took there nobody can read.
    C. Never backwards, unless the group itself went back on the source and the flow follows rewinds, or
       the target's log lost its tail: then an offset of ours may lie past its end, or, once it was written
       again, past records that the group hasn't read.
    D. A group that is active on the target, or has committed there by itself, is left alone: it may have been
       failed over, and its own progress is the only one that counts. So is one that a failover has placed.
       What it held there when it returned to the source is over: that, and nothing else, is replaced; but not
       while it isn't known whether the return was rolled back, and never by an earlier offset.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from causeway.core.groups.stamp import Stamp, own_words, stamp_beside, stamped
from causeway.core.kernel.identity import SourceOffset, TargetOffset, TopicPartition

RENEW_AFTER_MS = 24 * 3_600_000


class Outcome(StrEnum):
    """The words of the why report."""

    SYNCED = "synced"
    TRANSLATED = "translated"
    """A checkpoint only: the flow doesn't sync offsets."""
    AHEAD = "ahead of the mirror"
    LOWER_BOUND = "lower bound"
    """Its place is known by MirrorMaker 2's offset syncs only: some of what it has read it reads again."""
    NO_COMMITS = "no commits"
    ACTIVE = "active on the target"
    MOVED_ON = "moved on by itself"
    WENT_BACK = "went back on the source"
    OLDER = "older than the map"
    NEVER = "never mirrored"
    OTHER_GENERATION = "other generation"
    MISSING = "partition missing"
    NOT_IN_FLOW = "topic not in the flow"
    EXCLUDED = "excluded"
    REFUSED = "refused"


IS_WELL = frozenset({Outcome.SYNCED, Outcome.TRANSLATED, Outcome.AHEAD})
"""Where a consumer that starts on the target now begins at the right record."""
NOBODYS_BUSINESS = frozenset({Outcome.NO_COMMITS, Outcome.NOT_IN_FLOW})
"""Nothing of the flow is concerned."""


@dataclass(frozen=True, slots=True)
class Committed:
    """What a coordinator holds for a group and a partition."""

    offset: int
    metadata: str = ""


Offsets = dict[TopicPartition, Committed]
"""Of one group."""


@dataclass(frozen=True, slots=True)
class Translated:
    """The target offset of the first mirrored record that is still to be read, or the mirror's end."""

    at: TargetOffset
    ahead_by: int = 0
    """How many source offsets the group is ahead of the mirror."""
    is_lower_bound: bool = False
    """The record may lie further on; none that is still to be read lies in front."""


@dataclass(frozen=True, slots=True)
class Untranslated:
    why: Outcome
    facts: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetRange:
    """What can be read of a target partition."""

    log_start: TargetOffset
    end: TargetOffset
    """Of what is mirrored."""
    log_end: TargetOffset


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPlace:
    """All that is known of one group on one pair of partitions."""

    group: str
    source: TopicPartition
    target: TopicPartition
    committed: Committed
    """On the source."""
    translation: Translated | Untranslated
    range: TargetRange
    there: Committed | None
    """On the target."""
    is_active: bool
    """On the target."""
    last_checkpoint: Committed | None
    """What the last checkpoint says of this group on the target, whoever wrote it."""
    left: Committed | None = None
    """What it held on the target when it last returned to the source."""
    left_unsure: str = ""
    """Why it isn't known whether that homecoming was rolled back; empty: it wasn't."""

    @property
    def stands_as_it_left(self) -> bool:
        """Nothing has committed for it there since it returned to the source."""
        return self.there is not None and self.there == self.left


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    group: str
    source: TopicPartition
    target: TopicPartition
    outcome: Outcome
    source_next: int
    target_next: int | None = None
    """Where a reader of the target should begin; None: it isn't known."""
    before: int | None = None
    """What the target held."""
    commit: Committed | None = None
    """What to commit on the target now."""
    is_ahead: bool = False
    """Its place is the mirror's end, as far as it was seen; what the map gives is exact."""
    synced_ms: int | None = None
    """When this flow last committed what the target holds there; None: it didn't, or somebody came later."""
    why: str = ""
    stands_as_it_left: bool = False
    """On the target nothing has replaced yet what it held when it returned to the source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncRules:
    flow: str
    syncs: bool
    follows_rewinds: bool
    now_ms: int


def judge_place(place: GroupPlace, rules: SyncRules) -> Verdict:
    there = place.there
    stamp = None if there is None else stamp_beside(there.offset, there.metadata)
    verdict = _judged(place, rules, stamp)
    if stamp is None or stamp.flow != rules.flow:
        return verdict
    return replace(verdict, synced_ms=stamp.time_ms)


def _judged(place: GroupPlace, rules: SyncRules, stamp: Stamp | None) -> Verdict:
    translation = place.translation
    if isinstance(translation, Untranslated):
        return _verdict(place, translation.why, translation.facts)
    at = _within(translation.at, place.range)
    if not rules.syncs:
        return _verdict(place, _outcome(translation, Outcome.TRANSLATED), _translation_facts(translation), at)
    if place.is_active:
        return _verdict(place, Outcome.ACTIVE, "a consumer of this group is at work there", at)
    is_ours = stamp is not None and stamp.flow == rules.flow
    if place.there is None or (place.stands_as_it_left and not is_ours):
        return _judge_left(place, rules, at)
    if stamp is None and place.last_checkpoint != place.there:
        # What MirrorMaker 2 had committed equals the last checkpoint; so does the commit of a
        # consumer that has read nothing since it began there.
        why = (
            f"its own commit there is {place.there.offset}; delete it there if the mirror's word should count"
        )
        return _verdict(place, Outcome.MOVED_ON, why, at)
    return _judge_ours(place, translation, rules, at, stamp)


def _judge_left(place: GroupPlace, rules: SyncRules, at: TargetOffset) -> Verdict:
    """Its episode is over, unless the homecoming was rolled back; a rollback puts the source's offsets back
    before it says so. Or there never was one."""
    if place.there is None:
        return _commit(place, rules, at)
    before, way_out = place.there.offset, "delete it there if the mirror's word should count"
    if place.left_unsure:
        why = (
            f"offset {before} there is from when it returned to the source, and whether that was rolled "
            f"back isn't known: {place.left_unsure}; {way_out}"
        )
        return _verdict(place, Outcome.REFUSED, why, at)
    if at < before <= place.range.log_end:
        why = (
            f"offset {before} there is from when it returned to the source, and lies ahead of its place, {at}"
            f"; {way_out}"
        )
        return _verdict(place, Outcome.WENT_BACK, why, at)
    return _commit(place, rules, at)


def _judge_ours(
    place: GroupPlace, translation: Translated, rules: SyncRules, at: TargetOffset, stamp: Stamp | None
) -> Verdict:
    """The target holds what a mirror committed: may it be moved, and does it have to be?"""
    assert place.there is not None
    before = place.there.offset
    is_back = stamp is not None and place.committed.offset < stamp.source_next
    if translation.is_lower_bound and not is_back and at < before <= place.range.end:
        at = TargetOffset(before)  # the nearer of two lower bounds
    if at < before <= place.range.log_end and (why := _why_not_back(place, translation, rules, at, stamp)):
        return _verdict(place, Outcome.WENT_BACK, why, at)
    is_fresh = stamp is not None and abs(rules.now_ms - stamp.time_ms) < RENEW_AFTER_MS
    return _settled(place, at) if at == before and is_fresh else _commit(place, rules, at)


def _why_not_back(
    place: GroupPlace, translation: Translated, rules: SyncRules, at: TargetOffset, stamp: Stamp | None
) -> str:
    """Empty: back it goes."""
    assert place.there is not None
    before, source_next = place.there.offset, place.committed.offset
    if stamp is not None and source_next < stamp.source_next:
        told = f"from {stamp.source_next} to {source_next}; the flow doesn't follow (follow_rewinds)"
        return "" if rules.follows_rewinds else told
    is_exact = translation.at == at and not translation.ahead_by
    if stamp is not None and is_exact:  # the log was written again, and what lies between hasn't been read
        return ""
    return f"offset {before} there lies ahead of its place, {at}, though the group didn't go back"


def _commit(place: GroupPlace, rules: SyncRules, at: TargetOffset) -> Verdict:
    stamp = Stamp(
        flow=rules.flow,
        source_next=SourceOffset(place.committed.offset),
        target_next=at,
        time_ms=rules.now_ms,
        metadata=own_words(place.committed.metadata),
    )
    return _settled(place, at, Committed(at, stamped(stamp)))


def _settled(place: GroupPlace, at: TargetOffset, commit: Committed | None = None) -> Verdict:
    assert isinstance(place.translation, Translated)
    found = place.translation
    return _verdict(place, _outcome(found, Outcome.SYNCED), _translation_facts(found), at, commit)


def _outcome(translation: Translated, well: Outcome) -> Outcome:
    if translation.is_lower_bound:
        return Outcome.LOWER_BOUND
    return Outcome.AHEAD if translation.ahead_by else well


def _translation_facts(translation: Translated) -> str:
    if translation.is_lower_bound:
        return "it stands before the takeover, and MirrorMaker 2's offset syncs know no nearer place"
    if not translation.ahead_by:
        return ""
    return f"{translation.ahead_by:,} source offsets aren't mirrored yet: the mirror's end until they are"


def _within(at: TargetOffset, held: TargetRange) -> TargetOffset:
    """An empty range is a log that retention emptied: its start is its end."""
    return TargetOffset(max(min(at, held.end), held.log_start))


def is_mirrors_word(flow: str, held: Committed, checkpoint: int | None) -> bool:
    """Committed by a mirror, not by the group: by its stamp, or because it says what the checkpoint says."""
    stamp = stamp_beside(held.offset, held.metadata)
    return stamp.flow == flow if stamp is not None else held.offset == checkpoint


def refused(verdict: Verdict, why: str) -> Verdict:
    """The same after the target didn't take the commit."""
    return replace(verdict, outcome=Outcome.REFUSED, commit=None, why=why)


def _verdict(
    place: GroupPlace,
    outcome: Outcome,
    why: str,
    at: TargetOffset | None = None,
    commit: Committed | None = None,
) -> Verdict:
    return Verdict(
        group=place.group,
        source=place.source,
        target=place.target,
        outcome=outcome,
        source_next=place.committed.offset,
        target_next=at,
        before=None if place.there is None else place.there.offset,
        commit=commit,
        is_ahead=isinstance(place.translation, Translated) and place.translation.ahead_by > 0,
        why=why,
        stands_as_it_left=place.stands_as_it_left,
    )


Held = Mapping[str, Mapping[TopicPartition, Committed]]
"""What each group has committed on the target."""
