"""Move groups to where a plan says, and make sure that they stand there at the end.

A broker takes a plain commit from anybody while the group is empty. A group sync proves right before each
send that no fence stands, but it may be held up after its last look at the clock. What slips in so is found
by one more look, as long after the last move as such a proof lasts; it is named, kept, and put right. What
any other program has committed by then is left alone, and reported.

Known limit: a whole machine that is suspended in that very instant, and wakes later than this look with its
connection alive.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from causeway.brokers.wire.consumer_groups import ConsumerGroups
from causeway.core.copy.ports import Proof, Refused
from causeway.core.failover.request import Active
from causeway.core.groups.sync_rules import Held
from causeway.core.journal.journal import FailoverRun
from causeway.core.journal.remaining_work import Remaining, left_to_apply, moved_elsewhere
from causeway.core.journal.written_records import slipped_record
from causeway.core.kernel.acl_vocabulary import Operation
from causeway.core.kernel.errors import BadInput
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import error_name
from causeway.core.model.flow import Flow
from causeway.usecases.journal.store import write_journal
from causeway.usecases.run_lock.write_proof import outlive_others
from causeway.usecases.session.source_may_be_gone import FlowSession, committed_by

_MOST_LOOKS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    offsets: int = 0
    """That this try committed; those of an earlier try aren't among them."""
    left_alone: tuple[str, ...] = ()
    refused: frozenset[str] = frozenset()
    """Groups that the coordinator didn't commit for: they are among those left alone."""
    astray: frozenset[tuple[str, TopicPartition]] = frozenset()
    """So are these, which somebody had moved before."""


async def move_planned(flow: Flow, run: FailoverRun, groups: ConsumerGroups) -> Moved:
    """Once, and without a proof: groups that nobody else knows of."""
    return await _apply(flow, run, groups, left_to_apply(run, await committed_by(groups, run)), None)


async def move_for_good(flow: Flow, sides: FlowSession, run: FailoverRun, by: str, proof: Proof) -> Moved:
    """:raises BadInput: a consumer began on the target just now; once it has stopped, the run goes on."""
    groups = ConsumerGroups(sides.target.wire)
    remaining = left_to_apply(run, await committed_by(groups, run))
    moved = Moved()
    for _ in range(_MOST_LOOKS):
        if remaining.late:
            await proof.renew()  # who takes the run back has put these back: that isn't what slipped in
            await _keep_slipped(flow, sides, run, remaining, by)
        moved = _together(moved, await _apply(flow, run, groups, remaining, proof))
        await outlive_others(sides.network)
        held = await committed_by(groups, run)
        remaining = _of_others(left_to_apply(run, held, was_moved=True), moved.refused)
        if not remaining.to_commit:
            return _with_those_elsewhere(moved, run, held)
    raise BadInput(
        f"failover {run.run} of {flow.name}",
        rule=f"was put right {_MOST_LOOKS} times, and {remaining.late[0].group} was committed for again",
        remedy=f"stop the program that syncs groups of {flow.name} after its fence (an older Causeway?), "
        "then run the same command again: it goes on",
    )


async def _keep_slipped(flow: Flow, sides: FlowSession, run: FailoverRun, found: Remaining, by: str) -> None:
    """Before it is put right: a try that dies in between leaves it recorded."""
    lines = [
        f"{late.group} on {late.target}: somebody who had been held up committed {late.at} after the fence; "
        f"moved again to {run.shifts[late.group][late.target].after}"
        for late in found.late
    ]
    generation = (await sides.target.flow_state(flow.name)).generation
    said = slipped_record(
        flow.name, run.run, lines, by=by, at_ms=sides.network.time_ms(), generation=generation
    )
    await write_journal(sides, [said])


def _with_those_elsewhere(moved: Moved, run: FailoverRun, held: Held) -> Moved:
    """By the last look, what isn't recorded already."""
    said = [
        str(each)
        for each in moved_elsewhere(run, held)
        if each.group not in moved.refused and (each.group, each.target) not in moved.astray
    ]
    return replace(moved, left_alone=(*moved.left_alone, *said))


def _together(before: Moved, again: Moved) -> Moved:
    return Moved(
        offsets=before.offsets + again.offsets,
        left_alone=(*before.left_alone, *again.left_alone),
        refused=before.refused | again.refused,
        astray=before.astray | again.astray,
    )


def _of_others(found: Remaining, refused: frozenset[str]) -> Remaining:
    """What is to be put right; whoever has read on by itself since it was moved has begun as it should."""
    to_commit = {group: offsets for group, offsets in found.to_commit.items() if group not in refused}
    late = tuple(each for each in found.late if each.group not in refused)
    return replace(found, to_commit=to_commit, late=late, astray=())


async def _apply(
    flow: Flow, run: FailoverRun, groups: ConsumerGroups, remaining: Remaining, proof: Proof | None
) -> Moved:
    left = [
        f"{astray.group} on {astray.target} has moved since the plan was made, to {astray.at}"
        for astray in remaining.astray
    ]
    wanted = {group: dict(offsets) for group, offsets in remaining.to_commit.items()}
    answers = await groups.commit(wanted, proof)
    refuse_denied(groups, answers, Operation.READ)
    refused = {group: why for group, answer in answers.items() if (why := refusal(answer))}
    if refused and run.wish.active is Active.REFUSE:
        group, why = next(iter(refused.items()))
        more = f"and {len(refused) - 1} more " if len(refused) > 1 else ""
        raise BadInput(
            f"group {group}",
            rule=f"{more}can't be moved: {why}; the flow is fenced",
            remedy=f"stop its consumers on {flow.target}, then run the same command again: it goes on; "
            f"`causeway failover {flow.name} --rollback {run.run}` takes back what was moved",
        )
    left += [f"{group}: {why}" for group, why in refused.items()]
    committed = sum(len(o) for g, o in remaining.to_commit.items() if g not in refused)
    astray = frozenset((each.group, each.target) for each in remaining.astray)
    return Moved(offsets=committed, left_alone=tuple(left), refused=frozenset(refused), astray=astray)


def refuse_denied(groups: ConsumerGroups, answers: Mapping[str, object], operation: Operation) -> None:
    """:raises NotAuthorized: a right was taken away in the middle; with it again the same command goes on."""
    for group, answer in answers.items():
        if denied := groups.denied(group, answer, operation):
            raise denied


def refusal(answer: object) -> str:
    """Why a coordinator didn't commit; empty: it did."""
    if isinstance(answer, Refused):
        return str(answer)
    assert isinstance(answer, dict)
    return next((error_name(code) for code in answer.values() if code), "")
