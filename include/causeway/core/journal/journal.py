"""What is kept of failovers: the records of `causeway-failovers.internal`, and what they add up to.

One partition, compacted, plain records. A run of a failover is recorded in this order:

    offsets   of each group, before and after, some partitions to a record
    begun     who, when, which wish, which plan; how many records of offsets come before it
    agreed    after the fence the plan was still the same; only then is a group moved. Recorded once more,
    under a key of its own, whenever something slipped in after that, before it is put right done      the
    groups stand where the plan says, read back; or given up  nothing was moved, because the state had changed
    under the plan, or another run was first rolling back  somebody takes it back; each try says so under a
    key of its own, and the newest one counts rolled back   the offsets from before are back; only then is its
    fence lifted

A failback is one record, written again at each step: the newest counts. What groups that return have
committed on the new primary is in records of offsets, as of a run that never begins. A drill is one record.

Invariants
    A. A run counts from its `begun` on, and then all its offsets are there: what died before never was.
    B. Offsets before are written before any group is moved, so a rollback never has to guess.
    C. Nothing here decides who may write data: that is the fence's, which names the run that raised it.
    D. Who may write the topic may also write nonsense into it. That is left out, and reported; it stops
       nobody.
    E. Two people may carry out one run: of `agreed` and `given up` the first one counts, so that nobody gives
       up what another has begun to move.
    F. From `rolling back` on nothing counts that the failover itself says, however late it wakes, and of two
       rollbacks only the end of the newest one. None begins under a later failover, but one that has begun
       may go on until that one moves groups; one that ends before it could put anybody back, as where it
       finds a failback under way, takes its word back, under the same key.
    G. A key that ends with `asked` says nothing: who wrote it read the journal up to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

from causeway.core.failback.divergence import FailbackRun, Step, parse_failback
from causeway.core.failover.drill_run import DrillRun, parse_drill
from causeway.core.failover.plan import agreement_of
from causeway.core.failover.request import FailoverRequest, parse_request
from causeway.core.groups.sync_rules import Committed
from causeway.core.journal.journal_format import (
    FAILOVERS_TOPIC,
    VERSION,
    flow_of_key,
    journal_record,
    only_asks,
    parse_ours,
)
from causeway.core.kernel.errors import ProtocolFault
from causeway.core.kernel.identity import TargetOffset, TopicPartition
from causeway.core.kernel.json_fields import whole_number
from causeway.core.kernel.plurals import counted
from causeway.core.state.flow_state import FlowState
from causeway.core.state.repair_commands import recover_record_command

OFFSETS, AGREED, FAILBACK, DRILL = "offsets", "agreed", "failback", "drill"


class Status(StrEnum):
    BEGUN = "begun"
    DONE = "done"
    GIVEN_UP = "given up"
    ROLLING_BACK = "rolling back"
    ROLLED_BACK = "rolled back"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """One group on one partition: before and after."""

    before: Committed | None
    after: TargetOffset


Shifts = Mapping[str, Mapping[TopicPartition, Shift]]
"""By group."""


class RollbackClaim(NamedTuple):
    """Of one try to take a run back."""

    token: str
    by: str
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FailoverRun:
    run: str
    flow: str
    wish: FailoverRequest
    plan_hash: str
    by: str
    begun_ms: int
    status: Status
    shifts: Shifts = field(default_factory=dict)
    left_alone: tuple[str, ...] = ()
    """What its sheet showed stays as it is: the first of it, for whoever goes on."""
    left_count: int = 0
    """How much that is in all."""
    is_agreed: bool = False
    """After the fence the plan was found to be the one that an operator agreed to."""
    generation: int = -1
    """The flow's newest turn when that was last recorded, or that all is done; -1: neither was."""
    ended_ms: int = 0
    slipped: tuple[str, ...] = ()
    """What somebody who had been held up committed after the fence, before it was moved again."""
    facts: Mapping[str, object] = field(default_factory=dict)
    claims: tuple[RollbackClaim, ...] = ()
    """Of rollbacks, that weren't taken back."""

    @property
    def rollback(self) -> RollbackClaim | None:
        """The newest: it is the one that goes on."""
        return self.claims[-1] if self.claims else None

    @property
    def may_go_on(self) -> bool:
        """Nobody has given it up, or begun to take it back."""
        return self.status in (Status.BEGUN, Status.DONE)

    @property
    def agreement(self) -> str:
        return agreement_of(self.wish, self.shifts, self.plan_hash)

    @property
    def fence_words(self) -> str:
        """Why the flow is fenced: how a later try knows its own fence again."""
        return fence_words(self.run)

    def is_overtaken(self, state: FlowState) -> bool:
        """The mirror has gone on since: what this run moved, or was about to, is history."""
        return state.run is not None and state.run.generation > self.generation


def fence_words(run: str) -> str:
    return f"failover {run}"


@dataclass(frozen=True, slots=True)
class Journal:
    runs: Mapping[str, FailoverRun] = field(default_factory=dict)
    """In the order in which they began."""
    loose: Mapping[str, Shifts] = field(default_factory=dict)
    """Offsets of runs that haven't begun, or never will."""
    failbacks: Mapping[str, FailbackRun] = field(default_factory=dict)
    """In the order in which they began."""

    drills: Mapping[str, DrillRun] = field(default_factory=dict)
    """In the order in which they were."""
    foreign: tuple[int, ...] = ()
    """Offsets of records that somebody else has written there: left out."""

    @property
    def note(self) -> str:
        """For whoever fails over, or might; empty: nothing is odd."""
        if not self.foreign:
            return ""
        return (
            f"{counted(len(self.foreign), 'record')} of {FAILOVERS_TOPIC} left out, the first at offset "
            f"{self.foreign[0]}: Causeway didn't write it, and nobody else may write there"
        )

    def of_flow(self, flow: str) -> list[FailoverRun]:
        return [run for run in self.runs.values() if run.flow == flow]

    def newest(self, flow: str) -> FailoverRun | None:
        """The last one that has moved anything, or was about to, and was not taken back."""
        live = [run for run in self.of_flow(flow) if run.may_go_on or run.status is Status.ROLLING_BACK]
        return live[-1] if live else None

    def rivals_of(self, run: str) -> list[FailoverRun]:
        """Those of the same flow that began before it and aren't over: only one at a time moves groups."""
        ahead = list(self.runs.values())[: list(self.runs).index(run)]
        flow, unfinished = self.runs[run].flow, (Status.BEGUN, Status.ROLLING_BACK)
        return [each for each in ahead if each.flow == flow and each.status in unfinished]

    def failbacks_of(self, flow: str) -> list[FailbackRun]:
        """Those that weren't given up."""
        return [run for run in self.failbacks.values() if run.flow == flow and not run.is_given_up]

    def newest_failback(self, flow: str) -> FailbackRun | None:
        """None also where the last one was completed, and another failover has come since."""
        found = self.failbacks_of(flow)
        last, away = found[-1] if found else None, self.newest(flow)
        if last is not None and last.step is Step.HOME and away is not None and away.begun_ms > last.at_ms:
            return None
        return last


def fold(journal: Journal, offset: int, key: bytes | None, value: bytes | None) -> Journal:
    """The journal after one more record: somebody else's is left out and counted.

    :raises ProtocolFault: a newer version of this code may have written it.
    """
    if value is None:
        return journal
    parsed = parse_ours(key, value)
    if parsed is None:
        return replace(journal, foreign=(*journal.foreign, offset))
    try:
        return _with(journal, *parsed)
    except (AssertionError, ValueError, KeyError, TypeError, RecursionError) as cause:
        raise ProtocolFault(
            f"record {offset} of {FAILOVERS_TOPIC}",
            value=key,
            rule=f"must be version {VERSION} of Causeway's format",
            remedy="a newer Causeway may have written it: use that one. If nobody has one, "
            f"{recover_record_command(flow_of_key(key), journal_record(offset))} leaves it out, and what it "
            "tells of can't be rolled back",
        ) from cause


def _with(journal: Journal, key: list[Any], fields: dict[str, Any]) -> Journal:
    version, kind, flow, run, *_ = key
    assert (version, fields["v"]) == (VERSION, VERSION)
    if kind in (AGREED, Status.ROLLING_BACK) and only_asks(key):
        return journal
    if kind == OFFSETS:
        return _with_offsets(journal, run, fields)
    if kind == AGREED:
        return _with_agreement(journal, run, fields)
    if kind == FAILBACK:
        back = parse_failback(flow, run, fields)
        return replace(journal, failbacks={**journal.failbacks, run: back})
    if kind == DRILL:
        return replace(journal, drills={**journal.drills, run: parse_drill(flow, run, fields)})
    return _with_status(journal, flow, run, Status(kind), fields)


def _with_offsets(journal: Journal, run: str, fields: Mapping[str, object]) -> Journal:
    group, shifts = str(fields["group"]), dict(_shifts(fields["shifts"]))
    of_run = journal.loose.get(run, {})
    return replace(
        journal, loose={**journal.loose, run: {**of_run, group: {**of_run.get(group, {}), **shifts}}}
    )


def _shifts(rows: object) -> Iterator[tuple[TopicPartition, Shift]]:
    assert isinstance(rows, list)
    for topic, partition, before, metadata, after in rows:
        committed = None if before is None else Committed(int(before), str(metadata))
        yield TopicPartition(topic, partition), Shift(before=committed, after=TargetOffset(int(after)))


def _with_agreement(journal: Journal, run: str, fields: Mapping[str, object]) -> Journal:
    known = journal.runs.get(run)
    if known is None or not known.may_go_on:
        return journal
    slipped = (*known.slipped, *_parse_lines(fields.get("slipped", [])))
    agreed = replace(known, is_agreed=True, generation=_generation(fields), slipped=slipped)
    return replace(journal, runs={**journal.runs, run: agreed})


def _with_status(
    journal: Journal, flow: str, run: str, status: Status, fields: Mapping[str, object]
) -> Journal:
    known = journal.runs.get(run)
    if status is Status.BEGUN:
        # Once; late, it came again.
        begun = _begun_run(journal, flow, run, fields) if known is None else known
        return replace(journal, runs={**journal.runs, run: begun})
    claim = str(fields.get("claim", ""))
    if known is None or not _counts(journal, known, status, claim):
        return journal
    if status is Status.ROLLING_BACK:
        return replace(journal, runs={**journal.runs, run: _claimed(known, claim, fields)})
    facts = fields.get("facts") or {}
    assert isinstance(facts, dict)
    generation = max(known.generation, _generation(fields))
    ended = replace(
        known, status=status, ended_ms=whole_number(fields["at_ms"]), facts=facts, generation=generation
    )
    return replace(journal, runs={**journal.runs, run: ended})


def _begun_run(journal: Journal, flow: str, run: str, fields: Mapping[str, object]) -> FailoverRun:
    left = _parse_lines(fields.get("left", []))  # not kept at first
    return FailoverRun(
        run=run,
        flow=flow,
        wish=parse_request(fields["wish"]),
        plan_hash=str(fields["plan"]),
        by=str(fields["by"]),
        begun_ms=whole_number(fields["at_ms"]),
        status=Status.BEGUN,
        shifts=journal.loose.get(run, {}),
        left_alone=left,
        left_count=whole_number(fields.get("left_count", len(left))),  # neither was this
    )


def _counts(journal: Journal, known: FailoverRun, status: Status, claim: str) -> bool:
    """Whether a record still says something of the run: it may have been written late."""
    if status is Status.DONE:
        return known.may_go_on
    if status is Status.GIVEN_UP:
        return known.may_go_on and not known.is_agreed
    if status is Status.ROLLED_BACK:  # an earlier version writes it without a claim
        return not claim or (known.rollback is not None and known.rollback.token == claim)
    newest = journal.newest(known.flow)
    return known.status is Status.ROLLING_BACK or (newest is not None and newest.run == known.run)


def _claimed(known: FailoverRun, token: str, fields: Mapping[str, object]) -> FailoverRun:
    assert token
    claims = tuple(each for each in known.claims if each.token != token)
    if not fields.get("withdrawn"):
        claims = (*claims, RollbackClaim(token, str(fields["by"]), whole_number(fields["at_ms"])))
    before = Status.DONE if known.ended_ms else Status.BEGUN
    return replace(known, claims=claims, status=Status.ROLLING_BACK if claims else before)


def _generation(fields: Mapping[str, object]) -> int:
    return whole_number(fields.get("generation", -1))  # not kept at first


def _parse_lines(value: object) -> tuple[str, ...]:
    assert isinstance(value, list)
    return tuple(map(str, value))
