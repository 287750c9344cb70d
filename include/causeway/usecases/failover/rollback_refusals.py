"""What stops a rollback, in which words: another failover's turn, a failback, another rollback, consumers."""

from __future__ import annotations

from causeway.brokers.wire.consumer_groups import ConsumerGroups
from causeway.core.episode.episodes import is_left_behind
from causeway.core.failback.divergence import FailbackRun
from causeway.core.journal.journal import FailoverRun, Journal, Status
from causeway.core.journal.remaining_work import Remaining
from causeway.core.kernel.errors import BadInput, UnknownName
from causeway.core.kernel.plurals import some
from causeway.core.kernel.timestamps import rfc3339
from causeway.core.model.flow import Flow
from causeway.core.permissions.failover import forgetting_rights, journal_rights, moving_rights, turn_rights
from causeway.core.state.repair_commands import next_command
from causeway.usecases.run_lock.missing_rights import refuse_without
from causeway.usecases.session.both_clusters import state_on
from causeway.usecases.session.source_may_be_gone import FlowSession


def find_run(flow: Flow, journal: Journal, run: str) -> FailoverRun:
    """:raises UnknownName: there is no such run."""
    found = journal.runs.get(run)
    if found is not None and found.flow != flow.name:
        raise UnknownName(
            "failover",
            value=run,
            rule=f"is one of {found.flow}, not of {flow.name}",
            remedy=f"{next_command(flow.name)} says where {flow.name} is",
        )
    if found is None:
        known = ", ".join(each.run for each in journal.of_flow(flow.name)[-5:])
        raise UnknownName(
            "failover",
            value=run,
            rule=f"{flow.name} has no such run",
            remedy=f"the last ones are {known}; name the flow of that failover"
            if known
            else "there never was one",
        )
    return found


async def refuse_out_of_turn(flow: Flow, sides: FlowSession, journal: Journal, run: FailoverRun) -> None:
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


async def _gives_way(sides: FlowSession, journal: Journal, newest: FailoverRun, run: FailoverRun) -> bool:
    """Whether the newer one is given up before it moves anybody: it began after the claim of the older one,
    and that isn't history."""
    if run.status is not Status.ROLLING_BACK or newest.status is not Status.BEGUN or newest.is_agreed:
        return False
    return not is_left_behind(run, await state_on(sides.target, run.flow), journal)


def refuse_in_a_failback(journal: Journal, run: FailoverRun) -> None:
    """:raises BadInput: the groups would go back on one side, and the data return on the other."""
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
        rule=f"can't be taken back any more: failback {back.run} was completed at {rfc3339(back.at_ms)}",
        remedy=f"nothing to do; {next_command(run.flow)} says where the flow is",
    )


def refuse_taken_over(run: FailoverRun, token: str) -> None:
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


async def refuse_active(flow: Flow, sides: FlowSession, run: FailoverRun) -> None:
    listed = await ConsumerGroups(sides.target.wire).listed()
    active = sorted(group for group in run.shifts if group in listed and listed[group].is_active)
    if active:
        raise BadInput(
            "consumer groups with members on the target",
            value=some(active),
            rule="can't be put back while they read",
            remedy=f"stop their consumers on {flow.target}, then run the same command again",
        )


async def refuse_without_rights(flow: Flow, sides: FlowSession, remaining: Remaining) -> None:
    needed = (
        *turn_rights(flow),
        *journal_rights(),
        *moving_rights(remaining.to_commit),
        *forgetting_rights(remaining.to_forget),
    )
    await refuse_without(needed, {"target": sides.target.wire})
