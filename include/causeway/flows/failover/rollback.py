"""Take a failover back: every group stands where the snapshot says, and the fence that it raised is lifted.

Its own and no other: one that stood before, or that somebody has raised since, stays. Killed at any point
and run again, it ends in the same state.

The failover may still live, and so may another rollback. So the journal is told first; from then on nobody
else's proof holds. What is on its way on an older proof is outlived, and what came late all the same is put
back again. The fence is lifted last, when the journal has it that all is back. A try that ends before it
could put anybody back takes its word back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from uuid import uuid4

from causeway.brokers.consumer_groups import ConsumerGroups
from causeway.brokers.lagging_nodes import gone_topics
from causeway.brokers.offset_deletion import forget_offsets
from causeway.core.counting import some
from causeway.core.endpoint import ClusterEndpoint
from causeway.core.errors import BadInput, CausewayError, ClusterUnreachable, UnknownName
from causeway.core.failback.plan import FailbackRun
from causeway.core.failover.episodes import is_left_behind
from causeway.core.failover.journal import FailoverRun, Journal, Status
from causeway.core.failover.progress import Astray, Remaining, left_to_roll_back
from causeway.core.failover.rights import forgetting_rights, journal_rights, moving_rights, turn_rights
from causeway.core.failover.rollback_records import claim_asked, claim_record, rolled_back_record
from causeway.core.flow import Flow
from causeway.core.instants import rfc3339
from causeway.core.remedies import next_command
from causeway.core.rights import Operation
from causeway.flows.clusters import state_on
from causeway.flows.failover.logbook import proved_journal, read_journal, write_journal
from causeway.flows.failover.moving import refusal, refuse_denied
from causeway.flows.failover.sides import (
    Sides,
    held_by,
    open_target_side,
    told_if_interrupted,
    trouble_of,
)
from causeway.flows.fence import open_for
from causeway.flows.lacking import refuse_without
from causeway.flows.ownership import Say
from causeway.flows.proof import AskedProof, outlive_others

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


@dataclass(slots=True)
class _Try:
    by: str
    at_ms: int = 0
    token: str = field(default_factory=lambda: uuid4().hex[:12])
    is_claimed: bool = False
    """Its word is in the journal, or may be."""
    is_proved: bool = False
    """Somebody may have been put back since, or the journal have it that all is."""

    def claim(self, run: FailoverRun, *, withdrawn: bool = False) -> tuple[bytes, bytes]:
        return claim_record(run, self.token, by=self.by, at_ms=self.at_ms, withdrawn=withdrawn)


def roll_back(
    flow: Flow, target: ClusterEndpoint, run: str, *, by: str, consent: Consent, say: Say
) -> RolledBack:
    """Needs the target only.

    :raises UnknownName: no such run. | :raises BadInput: a later one stands, or a group is active.
    :raises NotAuthorized: a right is missing; nothing was put back.
    """
    with open_target_side(target) as sides, trouble_of(flow):
        known = sides.network.run(lambda: _find(flow, sides, run))
        if known.rollback is not None and known.status is Status.ROLLING_BACK:
            by_whom = f"{known.rollback.by} at {rfc3339(known.rollback.at_ms)}"
            say(f"{flow.name}: going on with the rollback that was begun by {by_whom}")
        remaining = sides.network.run(lambda: _remaining(known, sides))
        if known.status is not Status.ROLLED_BACK:
            sides.network.run(lambda: _refuse_without_rights(flow, sides, remaining))
            consent(known, remaining)
        left = f"rollback of {run} may not be finished: the same command goes on with it"
        done, own = f"the rollback of {run} is done", _Try(by)
        with _withdrawn_if_idle(flow, target, known, own, say), told_if_interrupted(left, after=done):
            return sides.network.run(lambda: _roll_back(flow, sides, known, own, say))


@contextmanager
def _withdrawn_if_idle(
    flow: Flow, target: ClusterEndpoint, run: FailoverRun, own: _Try, say: Say
) -> Iterator[None]:
    """The claim of a try that has put nobody back would stop the failover, and any failback, for nothing."""
    try:
        yield
    except BaseException as stop:  # Ctrl-C too: the loop that it broke isn't used again
        is_withdrawn = own.is_claimed and not own.is_proved and _withdraw(flow, target, run, own, say)
        if is_withdrawn and isinstance(stop, KeyboardInterrupt):
            raise KeyboardInterrupt(f"nobody was put back; failover {run.run} stands as before") from None
        raise


def _withdraw(flow: Flow, target: ClusterEndpoint, run: FailoverRun, own: _Try, say: Say) -> bool:
    """With a connection of its own. What it can't is said, and what ended the rollback counts."""
    try:
        with open_target_side(target) as anew, trouble_of(flow):
            anew.network.run(lambda: write_journal(anew, [own.claim(run, withdrawn=True)]))
    except CausewayError as error:
        say(
            f"{flow.name}: nobody was put back, but failover {run.run} may count as being rolled back "
            f"({error.what}: {error.rule}): the same command goes on with that"
        )
        return False
    return True


async def _find(flow: Flow, sides: Sides, run: str) -> FailoverRun:
    journal = await read_journal(sides, flow.name)
    found = journal.runs.get(run)
    if found is None or found.flow != flow.name:
        known = ", ".join(each.run for each in journal.of_flow(flow.name)[-5:])
        raise UnknownName(
            "failover",
            value=run,
            rule=f"{flow.name} has no such run",
            remedy=f"the last ones are {known}" if known else "there never was one",
        )
    await _refuse_out_of_turn(flow, sides, journal, found)
    try:
        _refuse_in_a_failback(journal, found)
    except BadInput:
        await _withdraw_others(sides, found)
        raise
    return found


async def _withdraw_others(sides: Sides, run: FailoverRun) -> None:
    """Claims of tries that died: nobody goes on with them any more, and whoever lives hears it."""
    stale = [
        claim_record(run, claim.token, by=claim.by, at_ms=claim.at_ms, withdrawn=True) for claim in run.claims
    ]
    if stale:
        await write_journal(sides, stale)


def _refuse_in_a_failback(journal: Journal, run: FailoverRun) -> None:
    """:raises BadInput: the groups would go back on one side, and the data go home on the other."""
    back = journal.newest_failback(run.flow)
    if run.status is Status.ROLLED_BACK or back is None:
        return
    if not back.is_under_way:
        _refuse_after_homecoming(back, run)
        return
    raise BadInput(
        f"failover {run.run}",
        rule=f"can't be taken back any more: {back.by} has begun failback {back.run} since ({back.step} at "
        f"{rfc3339(back.at_ms)})",
        remedy=f"`{back.command}` goes on with that",
    )


def _refuse_after_homecoming(back: FailbackRun, run: FailoverRun) -> None:
    """:raises BadInput: the episode is over. A rollback that broke off before may still come to its end."""
    if run.status is not Status.DONE or back.is_given_up:
        return
    raise BadInput(
        f"failover {run.run}",
        rule=f"can't be taken back any more: failback {back.run} has come home at {rfc3339(back.at_ms)}",
        remedy=f"nothing to do; {next_command(run.flow)} says where the flow is",
    )


async def _refuse_out_of_turn(flow: Flow, sides: Sides, journal: Journal, run: FailoverRun) -> None:
    newest = journal.newest(flow.name)
    may_begin_or_go_on = run.may_go_on or run.status is Status.ROLLING_BACK
    if (
        may_begin_or_go_on
        and newest is not None
        and newest.run != run.run
        and not await _gives_way(sides, journal, newest, run)
    ):
        raise BadInput(
            f"failover {run.run}",
            rule=f"failover {newest.run} came after it and keeps other offsets",
            remedy=f"`causeway failover {flow.name} --rollback {newest.run}` first",
        )
    if run.status is Status.GIVEN_UP:
        raise BadInput(
            f"failover {run.run}", rule="was given up before it moved anything", remedy="nothing to do"
        )


async def _gives_way(sides: Sides, journal: Journal, newest: FailoverRun, run: FailoverRun) -> bool:
    """Whether the newer one is given up before it moves anybody: it began behind the claim of the older one,
    and that isn't left behind."""
    if run.status is not Status.ROLLING_BACK or newest.status is not Status.BEGUN or newest.is_agreed:
        return False
    return not is_left_behind(run, await state_on(sides.target, run.flow), journal)


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
    gone = await gone_topics(sides.target.wire, {tp.topic for of in run.shifts.values() for tp in of})
    kept = {
        group: {tp: shift for tp, shift in shifts.items() if tp.topic not in gone}
        for group, shifts in run.shifts.items()
    }
    is_overtaken = run.is_overtaken(await state_on(sides.target, run.flow))
    return left_to_roll_back(replace(run, shifts=kept), held, is_overtaken=is_overtaken)


async def _roll_back(flow: Flow, sides: Sides, run: FailoverRun, own: _Try, say: Say) -> RolledBack:
    stood = bool((await sides.target.flow_state(flow.name)).fences_of(run.fence_words))
    was_back = run.status is Status.ROLLED_BACK
    put_back, fence = _PutBack(), "left as it is"
    if not was_back:
        await _refuse_active(flow, sides, run)
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


async def _put_all_back(flow: Flow, sides: Sides, run: FailoverRun, own: _Try, say: Say) -> _PutBack:
    """Groups stand as before when this returns, and the journal says so."""
    await _claim(flow, sides, run, own)
    await outlive_others(sides.network)  # who asked before the claim has committed by then

    async def refuse_any_more() -> None:
        journal = await proved_journal(sides, flow.name, claim_asked(run, own.token))
        known = journal.runs[run.run]
        await _refuse_out_of_turn(flow, sides, journal, known)
        _refuse_in_a_failback(journal, run)
        _refuse_taken_over(known, own.token)
        own.is_proved = True

    proof = AskedProof(sides.network, refuse_any_more)
    done = await _put_back_for_good(flow, sides, run, proof, say)
    own.is_proved, at_ms = True, sides.network.time_ms()
    said = await proved_journal(sides, flow.name, rolled_back_record(run, own.token, by=own.by, at_ms=at_ms))
    if said.runs[run.run].status is not Status.ROLLED_BACK:
        _refuse_taken_over(said.runs[run.run], own.token)
    return done


async def _claim(flow: Flow, sides: Sides, run: FailoverRun, own: _Try) -> None:
    """From here on the failover moves nobody, and no other rollback puts anybody back."""
    own.is_claimed, own.at_ms = True, sides.network.time_ms()
    journal = await proved_journal(sides, flow.name, own.claim(run))
    found = journal.runs[run.run]
    await _refuse_out_of_turn(flow, sides, journal, found)
    _refuse_in_a_failback(journal, found)
    _refuse_taken_over(found, own.token)


def _refuse_taken_over(run: FailoverRun, token: str) -> None:
    """:raises BadInput: somebody else has rolled it back, or has begun to since."""
    if run.status is Status.ROLLED_BACK:
        raise BadInput(
            f"failover {run.run}",
            rule="was rolled back by somebody else meanwhile",
            remedy="nothing to do: its groups stand as they stood, or have gone on",
        )
    if run.rollback is None or run.rollback.token != token:
        other = "" if run.rollback is None else f": {run.rollback.by}, at {rfc3339(run.rollback.at_ms)}"
        raise BadInput(
            f"rollback of failover {run.run}",
            rule=f"was begun again by somebody else meanwhile{other}",
            remedy="leave it to them; if theirs was killed, the same command goes on with it",
        )


async def _put_back_for_good(
    flow: Flow, sides: Sides, run: FailoverRun, proof: AskedProof, say: Say
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


async def _refuse_active(flow: Flow, sides: Sides, run: FailoverRun) -> None:
    listed = await ConsumerGroups(sides.target.wire).listed()
    active = sorted(group for group in run.shifts if group in listed and listed[group].is_active)
    if active:
        raise BadInput(
            "consumer groups with members on the target",
            value=some(active),
            rule="can't be put back while they read",
            remedy=f"stop their consumers on {flow.target}, then run the same command again",
        )


async def _restore(sides: Sides, remaining: Remaining, proof: AskedProof) -> int:
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


async def _lift(flow: Flow, sides: Sides, run: FailoverRun, by: str) -> str:
    """Its own fence, and no other."""
    stood = (await sides.target.flow_state(flow.name)).fences_of(run.fence_words)
    words = {"by": by, "because": f"rollback of {run.fence_words}"}
    fence = (await open_for(sides.target, sides.network, flow, run.fence_words, **words)).fence
    if fence is None:
        return "lifted" if stood else "no fence stood"
    return f"{'its own is lifted; ' if stood else ''}the fence stays: raised by {fence.by}, {fence.because}"
