"""The steps of a failover. Each may be the last one before a kill; each can be made again, in any try.

The order is the promise. Offsets from before are kept ahead of everything else; the fence stands before
the plan is made once more and compared; only then is a group moved, and only if it stands where the
snapshot says; then one more look finds what slipped in (`moving.py`). How far a run came is read from what
is committed, and whether its plan held from the journal: behind the first move a plan can't be compared any
more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import uuid4

from causeway.core.errors import BadInput, FlowHeld, StalePlan, UnknownName
from causeway.core.failover.episodes import is_closed, is_left_behind
from causeway.core.failover.journal import (
    FailoverRun,
    Journal,
    Status,
    agreed_record,
    begun_record,
    ended_record,
)
from causeway.core.failover.offset_records import offset_records
from causeway.core.failover.plan import FailoverPlan
from causeway.core.failover.rights import closing_rights, journal_rights, moving_rights
from causeway.core.failover.rollback_records import failover_asked
from causeway.core.failover.wish import Wish
from causeway.core.flow import Flow
from causeway.core.flow_state import FlowState
from causeway.core.group_filter import FlowGroups
from causeway.core.instants import rfc3339
from causeway.flows.clusters import state_on
from causeway.flows.failover.drain import left_behind
from causeway.flows.failover.logbook import create_journal, proved_journal, read_journal, write_journal
from causeway.flows.failover.look import make_sheet
from causeway.flows.failover.moving import Moved, move_for_good
from causeway.flows.failover.sides import Sides
from causeway.flows.fence import close_for, open_for
from causeway.flows.lacking import refuse_without
from causeway.flows.log_health import refuse_unsound
from causeway.flows.proof import AskedProof, outlive_others, proved_state


async def earlier_run(flow: Flow, sides: Sides, wish: Wish) -> FailoverRun | None:
    """The run that this wish means to go on with, or that has done it all.

    :raises BadInput: another one has begun and isn't over, or the last one is being taken back.
    """
    journal = await read_journal(sides, flow.name)
    newest = journal.newest(flow.name)
    if newest is None:
        return None
    if newest.status is Status.ROLLING_BACK:
        if is_left_behind(newest, await state_on(sides.target, flow.name), journal):
            return None
        raise being_taken_back(newest)
    if newest.wish.key == wish.key:
        if newest.status is Status.BEGUN and not newest.is_agreed:
            await _give_way(flow, sides, journal, newest.run, newest.by, "and")
        state = await sides.flow_state(flow)
        # Where the mirror went on meanwhile, or all came home, that failover is history, and this is another
        # one, whoever has fenced the flow since.
        is_history = newest.is_overtaken(state) or is_closed(newest, state, journal)
        return (
            newest if newest.status is Status.BEGUN or (state.fence is not None and not is_history) else None
        )
    if newest.status is Status.BEGUN:
        raise _unfinished(newest, "with other parameters and")
    return None


def being_taken_back(run: FailoverRun) -> BadInput:
    assert run.rollback is not None, run
    return BadInput(
        f"failover {run.run} of {run.flow}",
        rule=f"is being rolled back: {run.rollback.by} has begun that at {rfc3339(run.rollback.at_ms)}",
        remedy=f"`causeway failover {run.flow} --rollback {run.run}` goes on with it; then begin another one",
    )


def _unfinished(run: FailoverRun, how: str) -> BadInput:
    if run.status is Status.ROLLING_BACK:
        return being_taken_back(run)
    return BadInput(
        f"failover {run.run} of {run.flow}",
        rule=f"was begun by {run.by} {how} isn't finished",
        remedy=f"`{run.wish.command}` goes on with it, `causeway failover {run.flow} --rollback {run.run}` "
        "takes it back",
    )


async def known_run(flow: Flow, sides: Sides, run: str) -> FailoverRun:
    """:raises UnknownName: there is none. | :raises BadInput: it was given up, or taken back."""
    return known_in(await read_journal(sides, flow.name), flow, run)


def known_in(journal: Journal, flow: Flow, run: str) -> FailoverRun:
    """As `known_run`."""
    known = journal.runs.get(run)
    if known is None or known.flow != flow.name:
        raise UnknownName("failover", value=run, rule=f"{flow.name} has no such run", remedy="begin again")
    if known.status is Status.ROLLING_BACK:
        raise being_taken_back(known)
    if not known.may_go_on:
        raise BadInput(
            f"failover {run} of {flow.name}",
            rule=f"was {known.status}, so there is nothing to go on with",
            remedy="begin another one, with a sheet of its own",
        )
    return known


async def refuse_without_rights(flow: Flow, sides: Sides, groups: Iterable[str]) -> None:
    """Before anybody is asked for a yes: what is begun is never refused in the middle.

    :raises NotAuthorized: the first right that is missing, with its grant.
    :raises ProtocolFault: a fence of the flow may be lost, or can't be read.
    """
    await refuse_unsound(flow, sides.target, await state_on(sides.target, flow.name))
    needed = (*closing_rights(flow), *journal_rights(), *moving_rights(groups))
    await refuse_without(needed, {"target": sides.target.wire})


async def keep_offsets(flow: Flow, sides: Sides, plan: FailoverPlan, by: str) -> FailoverRun:
    """From here on the run has begun, and can be rolled back.

    :raises BadInput: somebody else's began while this one's sheet was read; nothing was moved.
    """
    run = uuid4().hex[:12]
    await create_journal(flow, sides)
    await write_journal(sides, offset_records(flow.name, run, plan.moves))
    await write_journal(sides, [begun_record(run, plan, by=by, at_ms=sides.network.time_ms())])
    journal = await read_journal(sides, flow.name)
    await _give_way(flow, sides, journal, run, by, "a moment ago and")
    return await known_run(flow, sides, run)


async def _give_way(flow: Flow, sides: Sides, journal: Journal, run: str, by: str, how: str) -> None:
    """To one that began before it and isn't over. Whose try died before it said so, says so now.

    :raises BadInput: there is one; this run is given up, and has moved nothing.
    """
    state = await state_on(sides.target, flow.name)
    rivals = [each for each in journal.rivals_of(run) if not is_left_behind(each, state, journal)]
    if rivals:
        await _write_end(flow, sides, run, Status.GIVEN_UP, by)
        raise _unfinished(rivals[0], how)


async def close_flow(flow: Flow, sides: Sides, run: FailoverRun, by: str) -> None:
    """A fence of its own, beside whatever stands: people's, or a command's that goes away with it.

    :raises BadInput: it broke off while it moved groups, and the mirror has gone on since.
    """
    target, clock = sides.target, sides.network
    state = await target.flow_state(flow.name)
    _refuse_overtaken(run, state)
    try:
        await close_for(target, clock, flow, run.fence_words, by=by)
    except FlowHeld as fell:
        raise stale_plan(flow, f"{fell.what}, {fell.rule}") from fell
    await _open_if_over(flow, sides, run, by)


async def _open_if_over(flow: Flow, sides: Sides, run: FailoverRun, by: str) -> None:
    """Who slept before the fence may have raised it behind somebody who was done with the run. As long as it
    is being rolled back the fence is the rollback's, which lifts it last.
    """
    known = (await read_journal(sides, flow.name)).runs.get(run.run)
    if known is not None and known.status in (Status.ROLLED_BACK, Status.GIVEN_UP):
        words = {"by": by, "because": f"{run.fence_words} was {known.status}"}
        await open_for(sides.target, sides.network, flow, run.fence_words, **words)
        await known_run(flow, sides, run.run)


async def compare_and_move(
    flow: Flow, sides: Sides, run: FailoverRun, selection: FlowGroups, by: str
) -> Moved:
    """:raises StalePlan: something moved between sheet and fence; the run is given up, its own fence lifted.
    :raises BadInput: a consumer began on the target just now; once it has stopped, the run goes on.
    """
    state = await sides.target.flow_state(flow.name)
    if not state.fences_of(run.fence_words):
        raise _not_fenced(run)
    _refuse_overtaken(run, state)
    if not run.is_agreed:
        await outlive_others(sides.network)  # who asked before the fence stood has committed by then
        await _compare(flow, sides, run, selection, by)
    agreed = await known_run(flow, sides, run.run)

    async def refuse_any_more() -> None:
        now = await proved_state(sides.target, flow.name, "failover")
        await _refuse_over(flow, sides, agreed)
        if not now.fences_of(run.fence_words) or now.run != state.run:
            raise _not_fenced(run)

    return await move_for_good(flow, sides, run, by, AskedProof(sides.network, refuse_any_more))


async def _refuse_over(flow: Flow, sides: Sides, run: FailoverRun) -> None:
    """By proof, once it may move groups. :raises BadInput: somebody has taken it back, or begun to."""
    if run.is_agreed:
        known_in(await proved_journal(sides, flow.name, failover_asked(run)), flow, run.run)


def _not_fenced(run: FailoverRun) -> BadInput:
    return BadInput(
        f"failover {run.run} of {run.flow}",
        rule="moves no group while the flow isn't fenced by it",
        remedy="run it again from the fence on",
    )


def _refuse_overtaken(run: FailoverRun, state: FlowState) -> None:
    """What a plan said long ago isn't moved to without a new look."""
    if run.is_agreed and run.status is Status.BEGUN and run.is_overtaken(state):
        raise BadInput(
            f"failover {run.run} of {run.flow}",
            rule=f"broke off while it moved groups, begun by {run.by}, and the mirror has gone on since",
            remedy=f"`causeway failover {run.flow} --rollback {run.run}` first, then begin anew",
        )


async def record_done(flow: Flow, sides: Sides, run: str, by: str, facts: Mapping[str, object]) -> None:
    """:raises BadInput: somebody has taken it back, or begun to, at the latest while this was written."""
    await _refuse_over(flow, sides, await known_run(flow, sides, run))
    await _write_end(flow, sides, run, Status.DONE, by, facts)
    await known_run(flow, sides, run)


async def _write_end(
    flow: Flow, sides: Sides, run: str, status: Status, by: str, facts: Mapping[str, object] | None = None
) -> None:
    generation, at_ms = (await sides.target.flow_state(flow.name)).generation, sides.network.time_ms()
    said = ended_record(flow.name, run, status, by=by, at_ms=at_ms, generation=generation, facts=facts)
    await write_journal(sides, [said])


async def _compare(flow: Flow, sides: Sides, run: FailoverRun, selection: FlowGroups, by: str) -> None:
    try:
        again = await make_sheet(flow, sides, run.wish, selection, is_fenced=True, is_priced=False)
    except UnknownName as gone:
        return await _give_up(flow, sides, run, by, f"moves {gone.what} that are gone: {gone.value}")
    if again.plan.hash != run.plan_hash:
        silent = f"; {flow.source} can't be asked now" if sides.silent else ""
        rule = f"was {run.plan_hash} on the sheet and {again.plan.hash} behind the fence{silent}"
        return await _give_up(flow, sides, run, by, rule)
    if behind := await left_behind(flow, sides) if run.wish.is_planned else ():
        rule = f"has {len(behind)} partitions that were written to since: {behind[0]}"
        return await _give_up(flow, sides, run, by, rule)
    generation, at_ms = (await sides.target.flow_state(flow.name)).generation, sides.network.time_ms()
    agreed = agreed_record(flow.name, run.run, by=by, at_ms=at_ms, generation=generation)
    # Somebody who carries out the same run may have given it up, or somebody begun to take it back.
    known_in(await proved_journal(sides, flow.name, agreed), flow, run.run)
    return None


async def _give_up(flow: Flow, sides: Sides, run: FailoverRun, by: str, rule: str) -> None:
    """Nothing was moved; only the run's own fence is lifted. Unless somebody who carries out the same run
    found that the plan held, a moment before: then it isn't given up.

    :raises StalePlan: it was.
    """
    await _write_end(flow, sides, run.run, Status.GIVEN_UP, by)
    if (await read_journal(sides, flow.name)).runs[run.run].status is not Status.GIVEN_UP:
        await known_run(flow, sides, run.run)
        return
    words = {"by": by, "because": run.fence_words}
    await open_for(sides.target, sides.network, flow, run.fence_words, **words)
    raise stale_plan(flow, rule)


def stale_plan(flow: Flow, rule: str) -> StalePlan:
    return StalePlan(
        f"plan of {flow.name}",
        rule=rule,
        remedy="stop what still moves (consumers, the mirror: `causeway fence`), then look at a new sheet",
    )
