"""Begin a failback: close both ways, keep the divergent tail, let the reverse flow begin.

`resume` begins where the two clusters parted. `rebuild` empties the old primary first and begins at the
beginning. With prefixes a mirror is written by one flow only: nothing has diverged, and the forward flow just
goes on, with what the old primary still had.

Each step may be the last before a kill; the same command goes on. The order is the promise: both flows are
closed before anything is compared; nothing is dropped before the export was compared; the reverse flow is
opened last, and the forward flow stays closed until all is home.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from causeway import interruption
from causeway.brokers.admin.topics import ClusterAdmin
from causeway.core.failback.divergence import FailbackMode, FailbackPlan, FailbackRun, Step
from causeway.core.failback.rebuild_impact import refuse_rebuild
from causeway.core.journal.journal import Journal, Status
from causeway.core.kernel.errors import BadInput, StalePlan
from causeway.core.state.flow_state import FlowState
from causeway.usecases.failback.adopt_all import adopt_all, hand_over, where_they_parted
from causeway.usecases.failback.divergence import FailbackSession, find_divergence
from causeway.usecases.failback.export import export_tails
from causeway.usecases.failback.journal_store import (
    FlowPair,
    begin_run,
    journal_of,
    newest_failback_on,
    opened_back,
    still_mirrors,
    told,
)
from causeway.usecases.failback.permissions import refuse_without_rights
from causeway.usecases.failback.rebuild import BothFences, empty_old, positions_after_rebuild
from causeway.usecases.failback.rebuild_impact import find_rebuild_impact
from causeway.usecases.failover.refusals import being_taken_back
from causeway.usecases.journal.store import read_journal
from causeway.usecases.repair.set_positions import NewPosition, Reason, at_work
from causeway.usecases.run_lock.command_fence import CommandFence
from causeway.usecases.run_lock.fence import close_for, left_closed, open_for
from causeway.usecases.run_lock.internal_topics import create_internal_topics
from causeway.usecases.run_lock.ownership import Say
from causeway.usecases.session.blocking import blocking
from causeway.usecases.session.both_clusters import Clusters
from causeway.usecases.session.source_may_be_gone import (
    FlowSession,
    noted_if_interrupted,
    run_in_target_session,
)

Consent = Callable[[FailbackPlan], None]
"""Shows the plan; raises if the answer isn't yes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    by: str
    consent: Consent
    say: Say
    expected_plan: str = ""
    accepts_loss: bool = False
    """A rebuild may let records go that the new primary doesn't have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedBack:
    run: FailbackRun
    was_done: bool
    plan: FailbackPlan | None = None
    """None: this try went on with what an earlier one had begun, or found all done."""


def preview_failback(ways: FlowPair, way: FailbackMode, *, for_real: bool = False) -> FailbackPlan:
    """Where they parted, and the price. Nothing is written. `for_real`: its rights are asked for, too."""

    async def work(sides: FlowSession) -> FailbackPlan:
        await _refuse_open(ways, sides)
        async with opened_back(ways, sides) as pairing:
            return await at_work(ways.reverse, pairing.clusters, _what(ways), partial(plan, pairing))

    async def plan(pairing: FailbackSession, *_: object) -> FailbackPlan:
        found = await look(pairing, way)
        if for_real:
            await refuse_without_rights(pairing, found)
        return found

    return run_in_target_session(ways.new, work)


async def look(pairing: FailbackSession, way: FailbackMode) -> FailbackPlan:
    plan = await find_divergence(pairing, way)
    return await find_rebuild_impact(pairing, plan) if way is FailbackMode.REBUILD else plan


def fail_back(ways: FlowPair, way: FailbackMode, operator: Operator) -> FailedBack:
    """:raises StalePlan: something moved between plan and fence; nothing was done.
    :raises NotAuthorized: a right is missing; nobody was asked for a yes.
    """

    async def work(sides: FlowSession) -> FailedBack:
        stood, _ = await newest_failback_on(sides, ways.forward)
        run = _earlier(stood, ways, way)
        if run is None:
            await _refuse_open(ways, sides)
        async with opened_back(ways, sides) as pairing:
            steps = _Steps(ways, way, pairing, operator, stood, run)
            return await at_work(ways.reverse, pairing.clusters, _what(ways), steps.take)

    return run_in_target_session(ways.new, work)


@dataclass(frozen=True, slots=True)
class _Steps:
    ways: FlowPair
    way: FailbackMode
    pairing: FailbackSession
    operator: Operator
    stood: FailbackRun | None
    """The newest one in the journal."""
    earlier: FailbackRun | None
    """The one to go on with."""

    async def take(self, _: Clusters, state: FlowState) -> FailedBack:
        ways, pairing, operator, run, plan = self.ways, self.pairing, self.operator, self.earlier, None
        if run is not None and run.step is Step.RETURNING:
            with noted_if_interrupted(_goes_on(run), after=_opened(run)):
                await _open(pairing, run, operator)
            return FailedBack(run=run, was_done=True)
        if run is None:
            plan = await look(pairing, self.way)
            await refuse_without_rights(pairing, plan)
            _agree(plan, operator)
            begins = f"the failback of {ways.forward.name} may have begun: the same command goes on with it"
            with noted_if_interrupted(begins), interruption.whole():
                run = await _begin(pairing, self.stood, plan, operator)
        else:
            operator.say(f"{ways.forward.name}: going on with {run}, begun by {run.by}")
        with noted_if_interrupted(_goes_on(run), after=_opened(run)):
            done = await _carry_out(pairing, ways, state, run, operator)
        return FailedBack(run=done, was_done=False, plan=plan)


def _goes_on(run: FailbackRun) -> str:
    return f"failback {run.run} of {run.flow} isn't finished: the same command goes on with it"


def _opened(run: FailbackRun) -> str:
    opened = f"failback {run.run} of {run.flow} has opened the way back"
    return f"{opened}; `causeway next {run.flow}` says what comes next"


async def _begin(
    pairing: FailbackSession, stood: FailbackRun | None, plan: FailbackPlan, operator: Operator
) -> FailbackRun:
    """Two people at one question: the second would close, and begin again, what the first has opened.

    :raises BadInput: a failback has begun, or gone on, since this one's plan was read; or the failover is
        being rolled back.
    """
    flow = pairing.forward.name
    before = await read_journal(journal_of(pairing), flow)
    found = before.newest_failback(flow)
    if found is not None and found != stood:
        raise _begun_by(found)
    _refuse_taken_back(before, flow)
    facts = {"accepts_loss": True} if operator.accepts_loss else {}
    own = await begin_run(pairing, plan, operator.by, **facts)
    after = await read_journal(journal_of(pairing), flow)
    first = next(run for run in after.failbacks_of(flow) if run.run not in before.failbacks)
    if first.run != own.run:  # both looked in the same moment; the journal has an order
        await told(pairing, own, Step.HOME, given_up=True)
        raise _begun_by(first)
    try:
        _refuse_taken_back(after, flow)
    except BadInput:
        await told(pairing, own, Step.HOME, given_up=True)
        raise
    return own


def _refuse_taken_back(journal: Journal, flow: str) -> None:
    """:raises BadInput: somebody puts the groups back on one side; the data can't return on the other."""
    away = journal.newest(flow)
    if away is not None and away.status is Status.ROLLING_BACK:
        raise being_taken_back(away)


def _begun_by(other: FailbackRun) -> BadInput:
    return BadInput(
        str(other),
        rule=f"was begun, or goes on, by {other.by} while this one's plan was read",
        remedy=f"`causeway failback {other.flow} --{other.way}` goes on with it",
    )


def _what(ways: FlowPair) -> str:
    return f"failback of {ways.forward.name}"


def _agree(plan: FailbackPlan, operator: Operator) -> None:
    if plan.rebuild is not None:
        refuse_rebuild(plan.rebuild, accepts_loss=operator.accepts_loss)
    refuse_another_plan(plan, operator.expected_plan)
    operator.consent(plan)


def refuse_another_plan(plan: FailbackPlan, expected: str) -> None:
    """:raises StalePlan: somebody has agreed to another one."""
    if expected not in ("", plan.hash):
        raise _stale(plan, f"it is {plan.hash} now, and {expected} was asked for")


def _stale(plan: FailbackPlan, rule: str) -> StalePlan:
    return StalePlan(
        f"plan of the failback of {plan.flow}",
        rule=rule,
        remedy="stop whoever still writes to the old primary, then look again",
    )


async def _refuse_open(ways: FlowPair, sides: FlowSession) -> None:
    """:raises BadInput: there was no failover."""
    if not (await newest_failback_on(sides, ways.forward))[1]:
        raise still_mirrors(ways.forward)


def _earlier(found: FailbackRun | None, ways: FlowPair, way: FailbackMode) -> FailbackRun | None:
    """`found` is the newest; the run to go on with, or that has opened the way back. None: there is none, or
    it was completed, or one that went another way has only begun.

    :raises BadInput: it went another way.
    """
    if found is None or found.step is Step.HOME:
        return None
    is_same = found.way is way and found.reverse == ways.reverse.name
    if not is_same and found.step is Step.BEGUN:
        return None
    if not is_same:
        raise BadInput(
            str(found),
            rule=f"goes the way `{found.way}` by flow {found.reverse}",
            remedy=f"`causeway failback {found.flow} --{found.way}` goes on with it",
        )
    return found


async def _carry_out(
    pairing: FailbackSession,
    ways: FlowPair,
    state: FlowState,
    run: FailbackRun,
    operator: Operator,
) -> FailbackRun:
    say = operator.say
    existing = frozenset(await pairing.old.wire.topics(None))
    await blocking(lambda: create_internal_topics(ways.reverse, ClusterAdmin(ways.old), existing))
    forward, reverse = await _close(pairing, run, operator.by)
    say(f"{run.flow}: both ways are fenced")
    found = await look(pairing, run.way)
    await _hold_to_plan(pairing, run, found, operator)
    kept = await export_tails(pairing, found, run.begun_ms, say, forward, _exports(run))
    if run.way is FailbackMode.REBUILD:
        assert reverse is not None  # with prefixes there is nothing to rebuild
        run = await empty_old(pairing, ways, run, found, kept, say, BothFences(forward, reverse))
        beginnings = await positions_after_rebuild(pairing, found)
    else:
        beginnings = [where_they_parted(cut) for cut in found.cuts]
    await _adopt(pairing, ways, state, run, beginnings, operator, reverse)
    facts = {"exports": dict(kept.exports), "tail": found.tail.as_dict(), "written": found.written.as_dict()}
    back = await told(pairing, run, Step.RETURNING, parted=bool(found.cuts), **facts)
    await _open(pairing, back, operator)
    return back


async def _hold_to_plan(
    pairing: FailbackSession, run: FailbackRun, found: FailbackPlan, operator: Operator
) -> None:
    """After the fences. Once something was dropped there is no giving up: then it is agreed to again.

    :raises StalePlan: it isn't the plan that an operator agreed to. | :raises BadInput: as `refuse_rebuild`.
    """
    if run.facts["plan"] == found.hash:
        refuse_another_plan(found, operator.expected_plan)
        if found.rebuild is not None:
            accepts = operator.accepts_loss or bool(run.facts.get("accepts_loss"))
            refuse_rebuild(found.rebuild, accepts_loss=accepts)
    elif run.step is Step.EXPORTED:
        _agree(found, operator)
    else:
        await told(pairing, run, Step.HOME, given_up=True)
        raise _stale(found, f"was {run.facts['plan']} and is {found.hash} after the fences")


def _exports(run: FailbackRun) -> dict[str, int]:
    """What an earlier try has compared."""
    held = run.facts.get("exports")
    return {name: int(count) for name, count in held.items()} if isinstance(held, Mapping) else {}


async def _adopt(
    pairing: FailbackSession,
    ways: FlowPair,
    state: FlowState,
    run: FailbackRun,
    beginnings: list[NewPosition],
    operator: Operator,
    own: CommandFence | None,
) -> None:
    """`own` is the reverse flow's fence."""
    if not beginnings:
        return
    assert own is not None
    await own.prove(pairing.old)  # somebody may have opened it by now
    reason = Reason(by=operator.by, because=run.fence_words)
    generation, _ = await adopt_all(ways.reverse, pairing.clusters, ways.old, state, beginnings, reason)
    if run.way is FailbackMode.REBUILD:  # what the forward flow's map tells lies in logs that are empty now
        operator.say(f"{run.flow}: {run.reverse} begins at the beginning")
        return
    pairs = [each.pair for each in beginnings]
    there = (pairing.forward, pairing.new, pairing.reverse, pairing.old)
    runs = await hand_over(*there, pairs, generation, own)
    operator.say(f"{run.flow}: {run.reverse} begins where they parted; its offset map got {runs:,} runs")


async def _close(
    pairing: FailbackSession, run: FailbackRun, by: str
) -> tuple[CommandFence, CommandFence | None]:
    """Both ways, in place of the failover that led here: its rollback opens neither."""
    clock, owner = pairing.clusters.network, run.fence_words
    forward = await close_for(pairing.new, clock, pairing.forward, owner, by=by, takes_over=True)
    if not pairing.reverse.failback_of:  # one with prefixes writes no topic that anybody else writes
        return forward, None
    return forward, await close_for(pairing.old, clock, pairing.reverse, owner, by=by, takes_over=True)


async def _open(pairing: FailbackSession, run: FailbackRun, operator: Operator) -> None:
    """The reverse flow; where nothing has parted, the forward flow too."""
    parted = bool(run.facts.get("parted"))
    flow, target = (pairing.reverse, pairing.old) if parted else (pairing.forward, pairing.new)
    words = {"by": operator.by, "because": run.fence_words}
    state = await open_for(target, pairing.clusters.network, flow, run.fence_words, **words)
    for line in left_closed(flow, state):
        operator.say(line)
