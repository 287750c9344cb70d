"""What groups held on a flow's target when they returned, read without the rest of the journals.

A group sync asks it in each of its tasks, and a journal keeps the offsets of every failover: so only what
records failbacks of this flow is parsed, and where none was completed it is one look. Whether a homecoming
was rolled back is asked again before each commit that rests on it: then only what was appended since is read.

A record that can't be read, and that no `causeway recover --record` has named, stops nobody: nothing is sure
then, and that is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from causeway.brokers.wire.log_reader import WireLogReader
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.episode.episodes import closed_by, homecomings
from causeway.core.failback.divergence import FailbackRun
from causeway.core.groups.sync_rules import Held
from causeway.core.journal.journal import FAILBACK, OFFSETS, Journal, Status, fold
from causeway.core.journal.journal_format import FAILOVERS_TOPIC, journal_record, named_in
from causeway.core.kernel.acl_vocabulary import Operation
from causeway.core.kernel.errors import NotAuthorized, ProtocolFault
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.records.records import Record
from causeway.usecases.session.both_clusters import state_on

_IsWanted = Callable[[str, str, str], bool]
"""By kind, flow and run."""
_JOURNAL = TopicPartition(FAILOVERS_TOPIC, 0)
_BACK = (Status.ROLLING_BACK, Status.ROLLED_BACK)


@dataclass(frozen=True, slots=True)
class TakenBack:
    runs: frozenset[str] = frozenset()
    """Failovers of the other direction that were rolled back, or are being rolled back."""
    unsure: str = ""
    """Why there may be more of them; empty: these are all."""


@dataclass(frozen=True, slots=True)
class Closed:
    held: Held = field(default_factory=dict)
    unsure: str = ""
    """Why it isn't known whether those homecomings were rolled back, or were the last ones; empty: it is."""


class ClosedEpisodes:
    """Nothing where no group returned, or this user may not see the target's journal: then nothing is taken
    for closed."""

    def __init__(self, flow: str, target: WireTarget, source: WireLogReader | None) -> None:
        self._flow, self._target, self._source = flow, target, source
        self._journal, self._unread = Journal(), ""
        self._rollbacks = Rollbacks((), source)

    async def read(self) -> Closed:
        found, self._unread = await _folded(
            self._target, lambda kind, of, _run: kind == FAILBACK and of == self._flow
        )
        home = homecomings(found, self._flow)
        self._rollbacks = Rollbacks(home, self._source)
        runs = {run.run for run in home}
        if home:
            self._journal, unread = await _folded(
                self._target, lambda _, of, run: of == self._flow and run in runs
            )
            self._unread = self._unread or unread
        return await self.look_again()

    async def look_again(self) -> Closed:
        """The same homecomings. A failback is completed after a fence, which each commit is held to
        besides."""
        back = await self._rollbacks.look()
        return Closed(closed_by(self._journal, self._flow, back.runs), self._unread or back.unsure)


class Rollbacks:
    """Of homecomings, by the journal of the cluster that groups returned to. Asked again, it reads on."""

    def __init__(self, home: Collection[FailbackRun], source: WireLogReader | None) -> None:
        self._log = None if source is None else WireTarget(source.wire)
        self._moves = {str(run.facts["moved"]): run.reverse for run in home if "moved" in run.facts}
        self._journal, self._next = Journal(), 0

    async def look(self) -> TakenBack:
        if not self._moves:
            return TakenBack()
        if self._log is None:
            return TakenBack(unsure="the source isn't asked")
        described = (await self._log.wire.topics([FAILOVERS_TOPIC]))[FAILOVERS_TOPIC]
        if described.lacks(Operation.READ):
            return self._unsure(str(self._log.wire.lacks_right(FAILOVERS_TOPIC, Operation.READ)))
        if described.error != Code.UNKNOWN_TOPIC_OR_PARTITION:
            end = await self._log.end_of(_JOURNAL)
            if end < self._next:
                return self._unsure(
                    f"{FAILOVERS_TOPIC} of the source ended at {self._next}, and now at {end}"
                )
            try:
                await self._read_on(self._log, end)
            except (
                ProtocolFault,
                NotAuthorized,
            ) as unread:  # from there on; it may be named by the next look
                return self._unsure(str(unread))
        lost = sorted(self._moves.keys() - self._journal.runs.keys())
        where = f"{FAILOVERS_TOPIC} of the source"
        return self._unsure(f"{where} doesn't tell of failover {lost[0]}" if lost else "")

    async def _read_on(self, log: WireTarget, end: int) -> None:
        async for record in log.records(_JOURNAL, self._next, end):
            named = named_in(record.key)
            if named is not None and named[0] != OFFSETS and named[1] in self._moves.values():
                self._journal = await _with(self._journal, record, log)
            self._next = record.offset + 1
        self._next = end

    def _unsure(self, why: str) -> TakenBack:
        said = self._journal.runs
        back = {run for run in self._moves if run in said and said[run].status in _BACK}
        return TakenBack(frozenset(back), why)


async def closed_episodes(flow: str, target: WireTarget, source: WireLogReader | None) -> Closed:
    """`source` None: it is silent."""
    return await ClosedEpisodes(flow, target, source).read()


async def last_homecoming(flow: str, target: WireTarget) -> FailbackRun | None:
    """Of those that can be read."""
    found, _ = await _folded(target, lambda kind, of, _run: kind == FAILBACK and of == flow)
    home = homecomings(found, flow)
    return home[-1] if home else None


async def _folded(at: WireTarget, is_wanted: _IsWanted) -> tuple[Journal, str]:
    """What can be read, and why the first of the rest can't be; empty: there is no rest."""
    journal, unread = Journal(), ""
    described = (await at.wire.topics([FAILOVERS_TOPIC]))[FAILOVERS_TOPIC]
    if described.error == Code.UNKNOWN_TOPIC_OR_PARTITION or described.lacks(Operation.READ):
        return journal, unread
    async for record in at.visible_records(_JOURNAL):
        named = named_in(record.key)
        if named is None or not is_wanted(*named):
            continue
        try:
            journal = await _with(journal, record, at)
        except ProtocolFault as fault:
            unread = unread or str(fault)
    return journal, unread


async def _with(journal: Journal, record: Record, at: WireTarget) -> Journal:
    """:raises ProtocolFault: it can't be read, and nobody has named it.
    :raises NotAuthorized: whether somebody has may not be seen.
    """
    try:
        return fold(journal, record.offset, record.key, record.value)
    except ProtocolFault:
        await state_on(at, "")
        if journal_record(record.offset) not in at.stepped_over:
            raise
        return journal
