"""Take a failover back: every group stands where the snapshot says, and the fence that it raised is lifted.

Its own and no other: one that stood before, or that somebody has raised since, stays. Killed at any point
and run again, it ends in the same state.

The failover may still live, and so may another rollback. So the journal gets it first; from then on nobody
else's proof holds. What is on its way on an older proof is outlived, and what came late all the same is put
back again. The fence is lifted last, when the journal has it that all is back. A try that ends before it
could put anybody back takes its word back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from causeway.brokers.transport.lagging_nodes import gone_topics
from causeway.brokers.wire.consumer_groups import ConsumerGroups
from causeway.brokers.wire.delete_offsets import forget_offsets
from causeway.core.journal.journal import FailoverRun, Status
from causeway.core.journal.remaining_work import Astray, Remaining, left_to_roll_back
from causeway.core.journal.rollback_records import claim_asked, rolled_back_record
from causeway.core.kernel.acl_vocabulary import Operation
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import BadInput, ClusterUnreachable
from causeway.core.kernel.timestamps import rfc3339
from causeway.core.model.flow import Flow
from causeway.usecases.failover.completed_failback import CameFrom, refuse_home
from causeway.usecases.failover.move_groups import refusal, refuse_denied
from causeway.usecases.failover.rollback_claim import RollbackTry, withdraw_others, withdrawn_if_idle
from causeway.usecases.failover.rollback_refusals import (
    find_run,
    refuse_active,
    refuse_in_a_failback,
    refuse_out_of_turn,
    refuse_taken_over,
    refuse_without_rights,
)
from causeway.usecases.journal.store import proved_journal, read_journal
from causeway.usecases.run_lock.fence import open_for
from causeway.usecases.run_lock.ownership import Say
from causeway.usecases.run_lock.write_proof import AskedProof, outlive_others
from causeway.usecases.session.both_clusters import state_on
from causeway.usecases.session.source_may_be_gone import (
    FlowSession,
    committed_by,
    noted_if_interrupted,
    open_target_session,
    run_blocking,
    trouble_of,
)

_MOST_LOOKS = 10
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
    flow: Flow,
    target: ClusterEndpoint,
    run: str,
    *,
    by: str,
    consent: Consent,
    say: Say,
    came_from: CameFrom | None = None,
) -> RolledBack:
    """Needs the target only; of a homecoming that has moved its groups also where they came from, if that is
    given.

    :raises UnknownName: no such run. | :raises NotAuthorized: a right is missing; nothing was put back.
    :raises BadInput: a later one stands, all is home, or a group is active.
    """
    with open_target_session(target) as sides, trouble_of(flow):
        known, remaining = run_blocking(sides, lambda: _look(flow, sides, run, say))
        if known.status is not Status.ROLLED_BACK:
            refuse_home(known, came_from)
            consent(known, remaining)
            refuse_home(known, came_from)  # it may have been completed while the question stood
        left = f"rollback of {run} may not be finished: the same command goes on with it"
        done, own = f"the rollback of {run} is done", RollbackTry(by)
        with withdrawn_if_idle(flow, target, known, own, say), noted_if_interrupted(left, after=done):
            return run_blocking(sides, lambda: _roll_back(flow, sides, known, own, say))


async def _look(flow: Flow, sides: FlowSession, run: str, say: Say) -> tuple[FailoverRun, Remaining]:
    """The run, and what is left to put back. Whoever is asked next lacks no right for it."""
    known = await _find(flow, sides, run)
    if known.rollback is not None and known.status is Status.ROLLING_BACK:
        by_whom = f"{known.rollback.by} at {rfc3339(known.rollback.at_ms)}"
        say(f"{flow.name}: going on with the rollback that was begun by {by_whom}")
    remaining = await _remaining(known, sides)
    if known.status is not Status.ROLLED_BACK:
        await refuse_without_rights(flow, sides, remaining)
    return known, remaining


async def _find(flow: Flow, sides: FlowSession, run: str) -> FailoverRun:
    journal = await read_journal(sides, flow.name)
    found = find_run(flow, journal, run)
    await refuse_out_of_turn(flow, sides, journal, found)
    try:
        refuse_in_a_failback(journal, found)
    except BadInput:
        await withdraw_others(sides, found)
        raise
    return found


async def _remaining(run: FailoverRun, sides: FlowSession) -> Remaining:
    """Of topics that are still there: with one that was deleted its groups' offsets went, too."""
    held = await committed_by(ConsumerGroups(sides.target.wire), run)
    gone = await gone_topics(sides.target.wire, {tp.topic for of in run.shifts.values() for tp in of})
    kept = {
        group: {tp: shift for tp, shift in shifts.items() if tp.topic not in gone}
        for group, shifts in run.shifts.items()
    }
    is_overtaken = run.is_overtaken(await state_on(sides.target, run.flow))
    return left_to_roll_back(replace(run, shifts=kept), held, is_overtaken=is_overtaken)


async def _roll_back(
    flow: Flow, sides: FlowSession, run: FailoverRun, own: RollbackTry, say: Say
) -> RolledBack:
    stood = bool((await sides.target.flow_state(flow.name)).fences_of(run.fence_words))
    was_back = run.status is Status.ROLLED_BACK
    put_back, fence = _PutBack(), "left as it is"
    if not was_back:
        await refuse_active(flow, sides, run)
        put_back = await _put_all_back(flow, sides, run, own, say)
    if stood or not was_back:  # a try that was killed may have left it
        fence = await _lift(flow, sides, run, own.by)
    return RolledBack(
        run=run.run,
        flow=flow.name,
        groups=len(run.shifts),
        restored=put_back.offsets,
        read_on=put_back.read_on,
        fence=fence,
        was_done=was_back and not stood,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _PutBack:
    offsets: int = 0
    read_on: tuple[Astray, ...] = ()


async def _put_all_back(
    flow: Flow, sides: FlowSession, run: FailoverRun, own: RollbackTry, say: Say
) -> _PutBack:
    """Groups stand as before when this returns, and the journal says so."""
    await _claim(flow, sides, run, own)
    await outlive_others(sides.network)  # who asked before the claim has committed by then

    async def refuse_any_more() -> None:
        journal = await proved_journal(sides, flow.name, claim_asked(run, own.token))
        known = journal.runs[run.run]
        await refuse_out_of_turn(flow, sides, journal, known)
        refuse_in_a_failback(journal, run)
        refuse_taken_over(known, own.token)
        own.is_proved = True

    proof = AskedProof(sides.network, refuse_any_more)
    done = await _put_back_for_good(flow, sides, run, proof, say)
    own.is_proved, at_ms = True, sides.network.time_ms()
    said = await proved_journal(sides, flow.name, rolled_back_record(run, own.token, by=own.by, at_ms=at_ms))
    if said.runs[run.run].status is not Status.ROLLED_BACK:
        refuse_taken_over(said.runs[run.run], own.token)
    return done


async def _claim(flow: Flow, sides: FlowSession, run: FailoverRun, own: RollbackTry) -> None:
    """From here on the failover moves nobody, and no other rollback puts anybody back."""
    own.is_claimed, own.at_ms = True, sides.network.time_ms()
    journal = await proved_journal(sides, flow.name, own.claim(run))
    found = journal.runs[run.run]
    await refuse_out_of_turn(flow, sides, journal, found)
    refuse_in_a_failback(journal, found)
    refuse_taken_over(found, own.token)


async def _put_back_for_good(
    flow: Flow, sides: FlowSession, run: FailoverRun, proof: AskedProof, say: Say
) -> _PutBack:
    """:raises BadInput: somebody commits for these groups again and again."""
    restored, read_on = 0, dict[Astray, None]()
    remaining = await _remaining(run, sides)
    for _ in range(_MOST_LOOKS):
        restored += await _restore(sides, remaining, proof)
        read_on |= dict.fromkeys(remaining.astray)
        say(f"{flow.name}: {restored} offsets put back")
        await outlive_others(sides.network)
        remaining = await _remaining(run, sides)
        if remaining.is_nothing:
            return _PutBack(offsets=restored, read_on=tuple(read_on))
    raise BadInput(
        f"rollback of failover {run.run}",
        rule=f"put groups back {_MOST_LOOKS} times, and somebody committed for them again",
        remedy=f"stop whoever commits for them on {flow.target}, then run the same command again: it goes on",
    )


async def _restore(sides: FlowSession, remaining: Remaining, proof: AskedProof) -> int:
    groups = ConsumerGroups(sides.target.wire)
    answers = await groups.commit({group: dict(o) for group, o in remaining.to_commit.items()}, proof)
    refuse_denied(groups, answers, Operation.READ)
    refused = {group: why for group, answer in answers.items() if (why := refusal(answer))}
    for group, partitions in remaining.to_forget.items():
        answer = await forget_offsets(sides.target.wire, group, partitions, proof)
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


async def _lift(flow: Flow, sides: FlowSession, run: FailoverRun, by: str) -> str:
    """Its own fence, and no other."""
    stood = (await sides.target.flow_state(flow.name)).fences_of(run.fence_words)
    words = {"by": by, "because": f"rollback of {run.fence_words}"}
    fence = (await open_for(sides.target, sides.network, flow, run.fence_words, **words)).fence
    if fence is None:
        return "lifted" if stood else "no fence stood"
    return f"{'its own is lifted; ' if stood else ''}the fence stays: raised by {fence.by}, {fence.because}"
