"""Take a failover back: every group stands where the snapshot says, and the fence that it raised is lifted.

A fence that stood before, or that somebody has raised since, stays. Killed at any point and run again, it
ends in the same state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from causeway.brokers.consumer_groups import ConsumerGroups
from causeway.brokers.offset_deletion import forget_offsets
from causeway.core.endpoint import ClusterEndpoint
from causeway.core.errors import BadInput, ClusterUnreachable, UnknownName
from causeway.core.failover.journal import FailoverRun, Journal, Status, ended_record
from causeway.core.failover.progress import Astray, Remaining, left_to_roll_back
from causeway.core.failover.rights import forgetting_rights, journal_rights, moving_rights, turn_rights
from causeway.core.flow import Flow
from causeway.core.kafka_errors import KafkaErrorCode as Code
from causeway.core.ports import Unreachable
from causeway.core.rights import Operation
from causeway.flows.failover.logbook import read_journal, write_journal
from causeway.flows.failover.sides import (
    Sides,
    held_by,
    open_target_side,
    told_if_interrupted,
    trouble_of,
)
from causeway.flows.failover.steps import refusal, refuse_denied
from causeway.flows.lacking import refuse_without
from causeway.flows.ownership import Say, write_lift

Consent = Callable[[FailoverRun, Remaining], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledBack:
    run: str
    flow: str
    groups: int
    restored: int
    """Offsets that this try put back or took away."""
    read_on: tuple[Astray, ...]
    """Who had moved since the failover, and was put back all the same."""
    fence: str
    """What became of it."""
    was_done: bool


def roll_back(
    flow: Flow, target: ClusterEndpoint, run: str, *, by: str, consent: Consent, say: Say
) -> RolledBack:
    """Needs the target only.

    :raises UnknownName: no such run. | :raises BadInput: a later one stands, or a group is active.
    :raises NotAuthorized: a right is missing; nothing was put back.
    """
    with open_target_side(target) as sides, trouble_of(flow):
        known = sides.network.run(lambda: _find(flow, sides, run))
        remaining = sides.network.run(lambda: _remaining(known, sides))
        if known.status is not Status.ROLLED_BACK:
            sides.network.run(lambda: _refuse_without_rights(flow, sides, remaining))
            consent(known, remaining)
        with told_if_interrupted(f"rollback of {run} may not be finished: the same command goes on with it"):
            return sides.network.run(lambda: _roll_back(flow, sides, known, remaining, by=by, say=say))


async def _find(flow: Flow, sides: Sides, run: str) -> FailoverRun:
    journal = await read_journal(sides)
    found = journal.runs.get(run)
    if found is None or found.flow != flow.name:
        known = ", ".join(each.run for each in journal.of_flow(flow.name)[-5:])
        raise UnknownName(
            "failover",
            value=run,
            rule=f"{flow.name} has no such run",
            remedy=f"the last ones are {known}" if known else "there never was one",
        )
    _refuse_out_of_turn(flow, journal, found)
    return found


def _refuse_out_of_turn(flow: Flow, journal: Journal, run: FailoverRun) -> None:
    newest = journal.newest(flow.name)
    if run.status in (Status.BEGUN, Status.DONE) and newest is not None and newest.run != run.run:
        raise BadInput(
            f"failover {run.run}",
            rule=f"failover {newest.run} came after it and keeps other offsets",
            remedy=f"`causeway failover {flow.name} --rollback {newest.run}` first",
        )
    if run.status is Status.GIVEN_UP:
        raise BadInput(
            f"failover {run.run}", rule="was given up before it moved anything", remedy="nothing to do"
        )


async def _refuse_without_rights(flow: Flow, sides: Sides, remaining: Remaining) -> None:
    needed = (
        *turn_rights(flow),
        *journal_rights(),
        *moving_rights(remaining.to_commit),
        *forgetting_rights(remaining.to_forget),
    )
    await refuse_without(needed, {"target": sides.target.wire})


async def _remaining(run: FailoverRun, sides: Sides) -> Remaining:
    """Of topics that are still there: with one that was deleted its groups' offsets went, too."""
    held = await held_by(ConsumerGroups(sides.target.wire), run)
    topics = {tp.topic for shifts in run.shifts.values() for tp in shifts}
    described = await sides.target.wire.topics(sorted(topics))
    gone = {name for name, topic in described.items() if topic.error == Code.UNKNOWN_TOPIC_OR_PARTITION}
    kept = {
        group: {tp: shift for tp, shift in shifts.items() if tp.topic not in gone}
        for group, shifts in run.shifts.items()
    }
    return left_to_roll_back(replace(run, shifts=kept), held)


async def _roll_back(
    flow: Flow, sides: Sides, run: FailoverRun, remaining: Remaining, *, by: str, say: Say
) -> RolledBack:
    was_done, restored, fence = run.status is Status.ROLLED_BACK, 0, "left as it is"
    if not was_done:
        await _refuse_active(flow, sides, run)
        restored = await _restore(sides, remaining)
        say(f"{flow.name}: {restored} offsets put back")
        left = await _remaining(run, sides)
        if not left.is_nothing:
            raise Unreachable("not every offset could be read back as it was put back")
        fence = await _lift(flow, sides, run, by)
        at_ms = sides.network.time_ms()
        await write_journal(sides, [ended_record(flow.name, run.run, Status.ROLLED_BACK, by=by, at_ms=at_ms)])
    return RolledBack(
        run=run.run,
        flow=flow.name,
        groups=len(run.shifts),
        restored=restored,
        read_on=() if was_done else remaining.astray,
        fence=fence,
        was_done=was_done,
    )


async def _refuse_active(flow: Flow, sides: Sides, run: FailoverRun) -> None:
    listed = await ConsumerGroups(sides.target.wire).listed()
    active = sorted(group for group in run.shifts if group in listed and listed[group].is_active)
    if active:
        raise BadInput(
            "consumer groups with members on the target",
            value=", ".join(active[:5]),
            rule="can't be put back while they read",
            remedy=f"stop their consumers on {flow.target}, then run the same command again",
        )


async def _restore(sides: Sides, remaining: Remaining) -> int:
    groups = ConsumerGroups(sides.target.wire)
    answers = await groups.commit({group: dict(o) for group, o in remaining.to_commit.items()})
    refuse_denied(groups, answers, Operation.READ)
    refused = {group: why for group, answer in answers.items() if (why := refusal(answer))}
    for group, partitions in remaining.to_forget.items():
        answer = await forget_offsets(sides.target.wire, group, partitions)
        refuse_denied(groups, {group: answer}, Operation.DELETE)
        if answer is not None:
            refused[group] = str(answer)
    if refused:
        group, why_not = next(iter(refused.items()))
        more = f"and {len(refused) - 1} more " if len(refused) > 1 else ""
        raise ClusterUnreachable(
            f"group {group}",
            rule=f"{more}can't be put back: {why_not}",
            remedy="run the same command again once its consumers have stopped",
        )
    return sum(map(len, remaining.to_commit.values())) + sum(map(len, remaining.to_forget.values()))


async def _lift(flow: Flow, sides: Sides, run: FailoverRun, by: str) -> str:
    """Its own fence, and no other."""
    fence = (await sides.target.flow_state(flow.name)).fence
    if fence is None:
        return "no fence stood"
    if fence.because != run.fence_words:
        return f"the fence stays: raised by {fence.by}, {fence.because}"
    await write_lift(
        sides.target,
        sides.network,
        flow,
        lifts=fence.generation,
        by=by,
        because=f"rollback of {run.fence_words}",
    )
    return "lifted"
