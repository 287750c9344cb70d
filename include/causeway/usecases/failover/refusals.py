"""What stops a failover, in which words: a run that is over, a missing right, a plan that is stale."""

from __future__ import annotations

from collections.abc import Iterable

from causeway.core.failover.request import FailoverRequest, Mode
from causeway.core.journal.journal import FailoverRun, Journal, Status
from causeway.core.kernel.errors import BadInput, StalePlan, UnknownName
from causeway.core.kernel.timestamps import rfc3339
from causeway.core.model.flow import Flow
from causeway.core.permissions.failover import closing_rights, journal_rights, moving_rights
from causeway.core.state.flow_state import FlowState
from causeway.core.state.repair_commands import fence_command
from causeway.usecases.journal.store import read_journal
from causeway.usecases.run_lock.missing_rights import refuse_without
from causeway.usecases.session.both_clusters import state_on
from causeway.usecases.session.flows_topic_health import refuse_unsound
from causeway.usecases.session.source_may_be_gone import FlowSession


async def known_run(flow: Flow, sides: FlowSession, run: str) -> FailoverRun:
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


def being_taken_back(run: FailoverRun) -> BadInput:
    assert run.rollback is not None, run
    return BadInput(
        f"failover {run.run} of {run.flow}",
        rule=f"is being rolled back: {run.rollback.by} has begun that at {rfc3339(run.rollback.at_ms)}",
        remedy=f"`causeway failover {run.flow} --rollback {run.run}` goes on with it; then begin another one",
    )


def unfinished(run: FailoverRun, how: str) -> BadInput:
    if run.status is Status.ROLLING_BACK:
        return being_taken_back(run)
    goes_on = "names what goes on with it" if run.wish.mode is Mode.HOME else "goes on with it"
    return BadInput(
        f"failover {run.run} of {run.flow}",
        rule=f"was begun by {run.by} {how} isn't finished",
        remedy=f"`{run.wish.command}` {goes_on}, `causeway failover {run.flow} --rollback {run.run}` "
        "takes it back",
    )


async def refuse_without_rights(flow: Flow, sides: FlowSession, groups: Iterable[str]) -> None:
    """Before anybody is asked for a yes: what is begun is never refused in the middle.

    :raises NotAuthorized: the first right that is missing, with its grant.
    :raises ProtocolFault: a fence of the flow may be lost, or can't be read.
    """
    await refuse_unsound(flow, sides.target, await state_on(sides.target, flow.name))
    needed = (*closing_rights(flow), *journal_rights(), *moving_rights(groups))
    await refuse_without(needed, {"target": sides.target.wire})


def not_fenced(run: FailoverRun) -> BadInput:
    return BadInput(
        f"failover {run.run} of {run.flow}",
        rule="moves no group while the flow isn't fenced by it",
        remedy="run it again from the fence on",
    )


def refuse_overtaken(run: FailoverRun, state: FlowState) -> None:
    """Causeway moves no group by an old plan without a new look."""
    if run.is_agreed and run.status is Status.BEGUN and run.is_overtaken(state):
        raise BadInput(
            f"failover {run.run} of {run.flow}",
            rule=f"broke off while it moved groups, begun by {run.by}, and the mirror has gone on since",
            remedy=f"`causeway failover {run.flow} --rollback {run.run}` first, then begin again",
        )


def stale_plan(flow: Flow, rule: str, wish: FailoverRequest) -> StalePlan:
    """A fence would stop a planned switch, which mirrors the rest itself."""
    moves = (
        "writers and consumers" if wish.is_planned else f"consumers, the mirror: {fence_command(flow.name)}"
    )
    return StalePlan(
        f"plan of {flow.name}",
        rule=rule,
        remedy=f"stop what still moves ({moves}), then look at a new sheet",
    )
