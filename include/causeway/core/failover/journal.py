"""What is kept of failovers: the records of `causeway-failovers.internal`, and what they add up to.

One partition, compacted, plain records. A run of a failover is told in this order:

    offsets   of each group, before and after, some partitions to a record
    begun     who, when, which wish, which plan; how many records of offsets stand in front of it
    agreed    behind the fence the plan was still the same; only then is a group moved
    done      the groups stand where the plan says, read back; or
    given up  nothing was moved, because the state had changed under the plan, or another run was first
    rolled back   the offsets from before are back

A failback is one record, told anew at each step: the newest counts. A drill is one record.

Invariants
    A. A run counts from its `begun` on, and then all its offsets are there: what died before never was.
    B. Offsets before are written before any group is moved, so a rollback never has to guess.
    C. Nothing here decides who may write data: that is the fence's, which names the run that raised it.
    D. Two people may carry out one run: of `agreed` and `given up` the first one counts, so that nobody gives
       up what another has begun to move.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from causeway.core.errors import ProtocolFault
from causeway.core.failback.plan import FailbackRun, Step, failback_fields, parse_failback
from causeway.core.failover.drill import DrillRun, parse_drill
from causeway.core.failover.plan import FailoverPlan, Move, agreement_of
from causeway.core.failover.wish import Wish, parse_wish
from causeway.core.flow_state import FlowState
from causeway.core.group_sync import Committed
from causeway.core.identity import TargetOffset, TopicPartition

FAILOVERS_TOPIC = "causeway-failovers.internal"
_VERSION = 1
_PARTITIONS_PER_RECORD, _MOST_CHARACTERS = 200, 800_000
_MOST_LINES, _LONGEST_LINE = 20, 500
_OFFSETS, _AGREED, _FAILBACK, _DRILL = "offsets", "agreed", "failback", "drill"


class Status(StrEnum):
    BEGUN = "begun"
    DONE = "done"
    GIVEN_UP = "given up"
    ROLLED_BACK = "rolled back"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """One group on one partition: before and after."""

    before: Committed | None
    after: TargetOffset


Shifts = Mapping[str, Mapping[TopicPartition, Shift]]
"""By group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailoverRun:
    run: str
    flow: str
    wish: Wish
    plan_hash: str
    by: str
    begun_ms: int
    status: Status
    shifts: Shifts = field(default_factory=dict)
    left_alone: tuple[str, ...] = ()
    """What its sheet said stays as it is: the first of it, for whoever goes on."""
    is_agreed: bool = False
    """Behind the fence the plan was found to be the one that somebody said yes to."""
    generation: int = -1
    """The flow's newest turn when that was last told, or that all is done; -1: neither was."""
    ended_ms: int = 0
    facts: Mapping[str, object] = field(default_factory=dict)

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

    def of_flow(self, flow: str) -> list[FailoverRun]:
        return [run for run in self.runs.values() if run.flow == flow]

    def newest(self, flow: str) -> FailoverRun | None:
        """The last one that has moved anything, or was about to, and was not taken back."""
        live = [run for run in self.of_flow(flow) if run.status in (Status.BEGUN, Status.DONE)]
        return live[-1] if live else None

    def rival_of(self, run: str) -> FailoverRun | None:
        """One of the same flow that began in front of it and isn't over: only one at a time moves groups."""
        ahead = list(self.runs.values())[: list(self.runs).index(run)]
        flow = self.runs[run].flow
        return next((each for each in ahead if each.flow == flow and each.status is Status.BEGUN), None)

    def newest_failback(self, flow: str) -> FailbackRun | None:
        """None also where the last one came home, and another failover has come since."""
        found = [run for run in self.failbacks.values() if run.flow == flow]
        last, away = found[-1] if found else None, self.newest(flow)
        if last is not None and last.step is Step.HOME and away is not None and away.begun_ms > last.at_ms:
            return None
        return last


def fold(journal: Journal, offset: int, key: bytes | None, value: bytes | None) -> Journal:
    """The journal after one more record; what this version doesn't know is refused."""
    if value is None:
        return journal
    try:
        version, kind, flow, run, *_ = json.loads(key or b"")
        fields = json.loads(value)
        assert (version, fields["v"]) == (_VERSION, _VERSION)
        if kind == _OFFSETS:
            return _with_offsets(journal, run, fields)
        if kind == _AGREED:
            return _with_agreement(journal, run, fields)
        if kind == _FAILBACK:
            back = parse_failback(flow, run, fields)
            return replace(journal, failbacks={**journal.failbacks, run: back})
        if kind == _DRILL:
            return replace(journal, drills={**journal.drills, run: parse_drill(flow, run, fields)})
        return _with_status(journal, flow, run, Status(kind), fields)
    except (AssertionError, ValueError, KeyError, TypeError, RecursionError) as cause:
        raise ProtocolFault(
            f"record {offset} of {FAILOVERS_TOPIC}",
            value=key,
            rule=f"must be version {_VERSION} of Causeway's format",
            remedy="nobody else may write this topic; a newer Causeway may have: use that one. If it was "
            "somebody else, and no failback is under way, delete the topic: rollbacks of before go with it",
        ) from cause


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
    if known is None or known.status is Status.GIVEN_UP:
        return journal
    agreed = replace(known, is_agreed=True, generation=_generation(fields))
    return replace(journal, runs={**journal.runs, run: agreed})


def _with_status(
    journal: Journal, flow: str, run: str, status: Status, fields: Mapping[str, object]
) -> Journal:
    if status is Status.BEGUN:
        begun = FailoverRun(
            run=run,
            flow=flow,
            wish=parse_wish(fields["wish"]),
            plan_hash=str(fields["plan"]),
            by=str(fields["by"]),
            begun_ms=_int(fields["at_ms"]),
            status=status,
            shifts=journal.loose.get(run, {}),
            left_alone=_lines(fields.get("left", [])),  # not kept at first
        )
        return replace(journal, runs={**journal.runs, run: begun})
    known = journal.runs.get(run)
    if known is None or (status is Status.GIVEN_UP and known.is_agreed):
        return journal
    facts = fields.get("facts") or {}
    assert isinstance(facts, dict)
    generation = max(known.generation, _generation(fields))
    ended = replace(known, status=status, ended_ms=_int(fields["at_ms"]), facts=facts, generation=generation)
    return replace(journal, runs={**journal.runs, run: ended})


def offset_records(flow: str, run: str, moves: Iterable[Move]) -> Iterator[tuple[bytes, bytes]]:
    by_group: dict[str, list[list[object]]] = {}
    for move in moves:
        offset, metadata = (None, "") if move.before is None else (move.before.offset, move.before.metadata)
        row: list[object] = [move.target.topic, move.target.partition, offset, metadata, move.after]
        by_group.setdefault(move.group, []).append(row)
    for group, rows in by_group.items():
        first = 0
        for shifts in _portions(rows):
            yield _record([_OFFSETS, flow, run, group, first], {"group": group, "shifts": shifts})
            first += len(shifts)


def _portions(rows: Iterable[list[object]]) -> Iterator[list[list[object]]]:
    """Whatever groups wrote beside their offsets: six characters for one, where it isn't plain."""
    portion: list[list[object]] = []
    characters = 0
    for row in rows:
        more = len(json.dumps(row))
        if portion and (len(portion) == _PARTITIONS_PER_RECORD or characters + more > _MOST_CHARACTERS):
            yield portion
            portion, characters = [], 0
        portion.append(row)
        characters += more
    if portion:
        yield portion


def begun_record(run: str, plan: FailoverPlan, *, by: str, at_ms: int) -> tuple[bytes, bytes]:
    left = [str(each)[:_LONGEST_LINE] for each in plan.left_alone[:_MOST_LINES]]
    more = len(plan.left_alone) - len(left)
    value = {
        "wish": plan.wish.as_dict(),
        "plan": plan.hash,
        "by": by,
        "at_ms": at_ms,
        "left": [*left, *([f"and {more} more"] if more else [])],
    }
    return _record([str(Status.BEGUN), plan.wish.flow, run], value)


def agreed_record(flow: str, run: str, *, by: str, at_ms: int, generation: int) -> tuple[bytes, bytes]:
    return _record([_AGREED, flow, run], {"by": by, "at_ms": at_ms, "generation": generation})


def ended_record(
    flow: str,
    run: str,
    status: Status,
    *,
    by: str,
    at_ms: int,
    generation: int = -1,
    facts: Mapping[str, object] | None = None,
) -> tuple[bytes, bytes]:
    value = {"by": by, "at_ms": at_ms, "generation": generation, "facts": dict(facts or {})}
    return _record([str(status), flow, run], value)


def drill_record(run: DrillRun) -> tuple[bytes, bytes]:
    return _record([_DRILL, run.flow, run.run], run.as_dict())


def failback_record(run: FailbackRun) -> tuple[bytes, bytes]:
    return _record([_FAILBACK, run.flow, run.run], failback_fields(run))


def _record(key: list[object], value: dict[str, object]) -> tuple[bytes, bytes]:
    named = json.dumps([_VERSION, *key], separators=(",", ":"))
    return named.encode(), json.dumps({"v": _VERSION, **value}, separators=(",", ":")).encode()


def _lines(value: object) -> tuple[str, ...]:
    assert isinstance(value, list)
    return tuple(map(str, value))


def _generation(fields: Mapping[str, object]) -> int:
    return _int(fields.get("generation", -1))  # not kept at first


def _int(value: object) -> int:
    if type(value) is not int:
        raise TypeError(value)
    return value
