"""One share of the work on groups: read, translate where the map is read, judge, emit, commit, tell.

The order of reading is part of the promise: what groups have committed on the source, then the map, then the
flow's positions, then what the target holds; so nothing is promised that isn't mirrored. Groups are committed
for right after the target was asked about them, some at a time, because between the two a consumer may begin.
A failover fences the flow and moves them: so right before each commit it is proved that no fence stands.
What a group held when it returned is replaced only as long as that wasn't rolled back, and that is asked
again in the same moment: where somebody has, these groups are judged once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from causeway.brokers.transport.connection import Wire
from causeway.brokers.wire.consumer_groups import ConsumerGroups
from causeway.brokers.wire.log_reader import WireLogReader
from causeway.brokers.wire.mm2_topics import Checkpoints, last_checkpoints, last_offset_syncs
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.ports import Refused, Unreachable
from causeway.core.groups.stamp import own_words
from causeway.core.groups.sync_rules import (
    Committed,
    GroupPlace,
    Offsets,
    Outcome,
    SyncRules,
    Translated,
    Untranslated,
    Verdict,
    judge_place,
    refused,
)
from causeway.core.groups.task import GroupTask, GroupTaskResult, due, last_synced, told
from causeway.core.kernel.acl_vocabulary import Operation
from causeway.core.kernel.identity import SourceOffset, TargetOffset, TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.records.mm2_formats import (
    Checkpoint,
    encode_checkpoint,
    encode_offset_sync,
    is_news,
)
from causeway.usecases.groups.mirror_state import NOT_BEGUN, NOTHING, MirrorSeen, read_mirrors
from causeway.usecases.journal.earlier_failbacks import Closed, ClosedEpisodes
from causeway.usecases.run_lock.ownership import refuse_fenced
from causeway.usecases.run_lock.write_proof import AskedProof, proved_state

Tell = Callable[[int, int], None]
"""How many groups are done, of how many."""
_GROUPS_AT_ONCE, _MOST_LOOKS = 100, 10
_WHO = "groups"


async def work_on_groups(
    task: GroupTask, source: WireLogReader, target: WireTarget, tell: Tell = lambda *_: None
) -> GroupTaskResult:
    work = _Work(task, source, target)
    await work.read(tell)
    await work.judge(tell)
    return await work.finish()


class _EpisodesChangedError(Exception):
    """A homecoming was rolled back since the groups were judged, or nobody can say any more whether."""


class _Work:
    def __init__(self, task: GroupTask, source: WireLogReader, target: WireTarget) -> None:
        self._task, self._source, self._target = task, source, target
        self._there = ConsumerGroups(target.wire)
        self._may_write = self._new_proof()
        self._pairs = {pair.source: pair for pair in task.pairs}
        self._mirrors: dict[TopicPartition, MirrorSeen | Untranslated] = {
            tp: Untranslated(outcome, facts) for tp, outcome, facts in task.unfit
        }
        self._rules = SyncRules(
            flow=task.flow,
            syncs=task.rules.sync_offsets,
            follows_rewinds=task.rules.follow_rewinds,
            now_ms=target.wire.network.time_ms(),
        )
        self._committed: dict[str, Offsets] = {}
        self._refused: dict[str, str] = {}
        self._checkpoints: Checkpoints = {}
        self._episodes = ClosedEpisodes(task.flow, target, source)
        self._left, self._rests_on_it = Closed(), False
        self._verdicts: list[Verdict] = []
        self._emitted = self._commits = self._syncs = 0

    # read

    async def read(self, tell: Tell) -> None:
        await self._read_commits(tell)
        targets = [pair.target for pair in self._pairs.values()]
        if self._task.rules.emit_checkpoints:
            topic = self._task.checkpoints_topic
            self._checkpoints = await last_checkpoints(self._target, topic, frozenset(targets))
        if self._rules.syncs:
            self._left = await self._episodes.read()
        self._mirrors |= await read_mirrors(self._task, self._target, self._committed)

    async def _read_commits(self, tell: Tell) -> None:
        groups = ConsumerGroups(self._source.wire)
        wanted = None if self._task.is_whole else _by_topic([*self._pairs, *self._mirrors])
        for names in _some(self._task.groups):
            for group, found in (await groups.committed(names, wanted)).items():
                if isinstance(found, Refused):
                    self._refused[group] = _said(found, group, self._source.wire, Operation.DESCRIBE)
                elif found:
                    self._committed[group] = found
            tell(0, len(self._task.groups))

    # judge

    async def judge(self, tell: Tell) -> None:
        groups, done = list(self._committed), 0
        for names in _some(groups):
            self._verdicts += await self._judge_some(names)
            done += len(names)
            tell(done, len(groups))

    async def _judge_some(self, names: Sequence[str]) -> list[Verdict]:
        for _ in range(_MOST_LOOKS):
            held = await self._held_on_target(names)
            verdicts = [
                verdict for group in names for verdict in self._judge_group(group, held.get(group, {}))
            ]
            if not self._task.writes:
                return verdicts
            self._may_write = self._new_proof()
            self._rests_on_it = any(each.commit and each.stands_as_it_left for each in verdicts)
            try:
                verdicts = await self._commit(verdicts)
                self._emitted += await self._emit(verdicts)
            except _EpisodesChangedError:
                continue
            return verdicts
        raise Unreachable(
            f"the groups that returned to {self._source.wire.endpoint} changed {_MOST_LOOKS} times"
        )

    async def _held_on_target(self, names: Sequence[str]) -> dict[str, Offsets | Refused]:
        if not self._rules.syncs:
            return {}
        targets = (pair.target for pair in self._pairs.values())
        return await self._there.committed(names, None if self._task.is_whole else _by_topic(targets))

    def _judge_group(self, group: str, held: Offsets | Refused) -> Iterator[Verdict]:
        checkpoints = self._checkpoints.get(group, {})
        for tp, committed in self._committed[group].items():
            mirror = self._mirrors.get(tp) or self._unknown(tp)
            if isinstance(mirror, MirrorSeen):
                target, readable = mirror.pair.target, mirror.range
                translation = mirror.translate(committed.offset)
            else:
                target, readable, translation = tp, NOTHING, mirror
            last = checkpoints.get(target)
            translation = _nearer(translation, last, committed.offset)
            place = GroupPlace(
                group=group,
                source=tp,
                target=target,
                committed=committed,
                translation=translation,
                range=readable,
                there=None if isinstance(held, Refused) else held.get(target),
                is_active=group in self._task.active,
                last_checkpoint=Committed(last.target_next, last.metadata) if last else None,
                left=self._left.held.get(group, {}).get(target),
                left_unsure=self._left.unsure,
            )
            verdict = judge_place(place, self._rules)
            if verdict.commit is not None and isinstance(held, Refused):
                verdict = refused(verdict, _said(held, group, self._target.wire, Operation.READ))
            yield verdict

    def _unknown(self, tp: TopicPartition) -> Untranslated:
        is_wanted = self._task.topics.matches(tp.topic)
        return NOT_BEGUN if is_wanted else Untranslated(Outcome.NOT_IN_FLOW)

    # write

    def _new_proof(self) -> AskedProof:
        return AskedProof(self._target.wire.network, self._refuse_fenced)

    async def _refuse_fenced(self) -> None:
        """:raises FlowFenced: nobody is moved. | :raises _EpisodesChangedError: they are judged once more."""
        refuse_fenced(self._task.flow, await proved_state(self._target, self._task.flow, _WHO))
        if self._rests_on_it:
            judged_by, self._left = self._left, await self._episodes.look_again()
            if self._left != judged_by:
                raise _EpisodesChangedError

    async def _commit(self, verdicts: list[Verdict]) -> list[Verdict]:
        wanted: dict[str, Offsets] = {}
        for verdict in verdicts:
            if verdict.commit is not None:
                wanted.setdefault(verdict.group, {})[verdict.target] = verdict.commit
        if not wanted:
            return verdicts
        answers = await self._there.commit(wanted, self._may_write)
        after = [
            _after_commit(verdict, answers.get(verdict.group), self._target.wire) for verdict in verdicts
        ]
        self._commits += sum(verdict.commit is not None for verdict in after)
        now_ms = self._rules.now_ms
        return [
            verdict if verdict.commit is None else replace(verdict, synced_ms=now_ms) for verdict in after
        ]

    async def _emit(self, verdicts: Sequence[Verdict]) -> int:
        if not self._task.rules.emit_checkpoints:
            return 0
        news = [
            checkpoint
            for verdict in verdicts
            if (checkpoint := self._checkpoint(verdict)) is not None
            and is_news(
                checkpoint,
                self._checkpoints.get(checkpoint.group, {}).get(checkpoint.target),
                is_exact=not verdict.is_ahead,
            )
        ]
        return await self._append(self._task.checkpoints_topic, list(map(encode_checkpoint, news)))

    async def _append(self, topic: str, records: list[tuple[bytes, bytes]]) -> int:
        if records:
            await self._may_write.renew()
        return await self._target.append_many(topic, records)

    def _checkpoint(self, verdict: Verdict) -> Checkpoint | None:
        if verdict.target_next is None:
            return None
        is_its_own = verdict.outcome is Outcome.MOVED_ON or (
            verdict.stands_as_it_left and verdict.commit is None
        )
        if is_its_own and verdict.target_next == verdict.before:
            return None  # else its own commit would look like what a mirror has committed
        committed = self._committed[verdict.group][verdict.source]
        return Checkpoint(
            group=verdict.group,
            target=verdict.target,
            source_next=SourceOffset(committed.offset),
            target_next=TargetOffset(verdict.target_next),
            metadata=own_words(committed.metadata),
        )

    async def finish(self) -> GroupTaskResult:
        if self._task.writes and self._task.rules.emit_offset_syncs:
            self._syncs = await self._emit_syncs()
        counts, rows = told(self._verdicts, self._task.most_rows)
        return GroupTaskResult(
            counts=counts,
            rows=rows,
            due=due(self._verdicts),
            synced_ms=last_synced(self._verdicts),
            refused=self._refused,
            checkpoints=self._emitted,
            offset_syncs=self._syncs,
            commits=self._commits,
        )

    async def _emit_syncs(self) -> int:
        """The last mirrored record of each partition, where it has changed: sparse, and enough."""
        topic = self._task.syncs_topic
        last = await last_offset_syncs(self._target, topic)
        news = [
            sync
            for tp, mirror in self._mirrors.items()
            if isinstance(mirror, MirrorSeen)
            and (sync := mirror.last_sync) is not None
            and last.get(tp) != sync
        ]
        return await self._append(topic, list(map(encode_offset_sync, news)))


def _nearer(
    found: Translated | Untranslated, last: Checkpoint | None, offset: int
) -> Translated | Untranslated:
    """Of two lower bounds the greater: MirrorMaker 2's checkpoint was made of syncs that are gone."""
    if last is None or not isinstance(found, Translated) or not found.is_lower_bound:
        return found
    is_nearer = last.source_next <= offset and last.target_next > found.at
    return replace(found, at=last.target_next) if is_nearer else found


def _after_commit(
    verdict: Verdict, answer: dict[TopicPartition, int] | Refused | None, wire: Wire
) -> Verdict:
    if verdict.commit is None or answer is None:
        return verdict
    code = answer.code if isinstance(answer, Refused) else answer.get(verdict.target, 0)
    if code in (
        Code.UNKNOWN_MEMBER_ID,
        Code.ILLEGAL_GENERATION,
        Code.STALE_MEMBER_EPOCH,
        Code.FENCED_MEMBER_EPOCH,
    ):
        return replace(verdict, outcome=Outcome.ACTIVE, commit=None, why="a consumer began there just now")
    return refused(verdict, _said(Refused(code), verdict.group, wire, Operation.READ)) if code else verdict


def _said(why: Refused, group: str, wire: Wire, needed: Operation) -> str:
    """A missing right comes with its grant."""
    if why.code != Code.GROUP_AUTHORIZATION_FAILED:
        return str(why)
    return str(wire.not_authorized(why.code, group, needed))


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    grouped: dict[str, list[int]] = {}
    for tp in partitions:
        grouped.setdefault(tp.topic, []).append(tp.partition)
    return grouped


def _some(groups: Sequence[str]) -> Iterator[Sequence[str]]:
    for first in range(0, len(groups), _GROUPS_AT_ONCE):
        yield groups[first : first + _GROUPS_AT_ONCE]
