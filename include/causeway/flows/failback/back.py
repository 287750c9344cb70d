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

from causeway import interruption
from causeway.brokers.admin import ClusterAdmin
from causeway.core.errors import BadInput, StalePlan
from causeway.core.failback.plan import Cut, FailbackPlan, FailbackRun, Step, Way
from causeway.core.failback.rebuild import refuse_rebuild
from causeway.core.failover.journal import Journal, Status
from causeway.core.flow_state import FlowState
from causeway.flows.by_hand import Beginning, Reason, at_both_clusters
from causeway.flows.failback.adoption import adopt_all, hand_over
from causeway.flows.failback.export import export_tails
from causeway.flows.failback.logbook import (
    Ways,
    begin_run,
    journal_of,
    newest_failback,
    still_mirrors,
    told,
)
from causeway.flows.failback.parting import Pairing, look_where_they_parted
from causeway.flows.failback.pricing import price_rebuild
from causeway.flows.failback.rebuild import BothFences, beginnings_anew, empty_old, turned_pair
from causeway.flows.failback.rights import refuse_without_rights
from causeway.flows.failover.logbook import read_journal
from causeway.flows.failover.sides import told_if_interrupted
from causeway.flows.failover.steps import being_taken_back
from causeway.flows.fence import close_for, left_closed, open_for
from causeway.flows.internal_topics import create_internal_topics
from causeway.flows.own_fence import OwnFence
from causeway.flows.ownership import Say

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


def look_before_failback(ways: Ways, way: Way, *, for_real: bool = False) -> FailbackPlan:
    """Where they parted, and the price. Nothing is written. `for_real`: its rights are asked for, too."""
    _refuse_open(ways)
    with at_both_clusters(ways.reverse, ways.new, ways.old, _what(ways)) as (clusters, _):
        pairing = Pairing(ways.forward, ways.reverse, clusters)
        plan = clusters.network.run(lambda: look(pairing, way))
        if for_real:
            clusters.network.run(lambda: refuse_without_rights(pairing, plan))
        return plan


async def look(pairing: Pairing, way: Way) -> FailbackPlan:
    plan = await look_where_they_parted(pairing, way)
    return await price_rebuild(pairing, plan) if way is Way.REBUILD else plan


def fail_back(ways: Ways, way: Way, operator: Operator) -> FailedBack:
    """:raises StalePlan: something moved between plan and fence; nothing was done.
    :raises NotAuthorized: a right is missing; nobody was asked for a yes.
    """
    stood, _ = newest_failback(ways)
    run, plan = _earlier(stood, ways, way), None
    if run is None:
        _refuse_open(ways)
    with at_both_clusters(ways.reverse, ways.new, ways.old, _what(ways)) as (clusters, state):
        pairing = Pairing(ways.forward, ways.reverse, clusters)
        if run is not None and run.step is Step.RETURNING:
            opened = run
            with told_if_interrupted(_goes_on(opened), after=_opened(opened)):
                clusters.network.run(lambda: _open(pairing, opened, operator))
            return FailedBack(run=run, was_done=True)
        if run is None:
            found = plan = clusters.network.run(lambda: look(pairing, way))
            clusters.network.run(lambda: refuse_without_rights(pairing, found))
            _agree(found, operator)
            begins = f"the failback of {ways.forward.name} may have begun: the same command goes on with it"
            with told_if_interrupted(begins), interruption.whole():
                run = _begin(pairing, stood, found, operator)
        else:
            operator.say(f"{ways.forward.name}: going on with {run}, begun by {run.by}")
        with told_if_interrupted(_goes_on(run), after=_opened(run)):
            done = _carry_out(pairing, ways, state, run, operator)
    return FailedBack(run=done, was_done=False, plan=plan)


def _goes_on(run: FailbackRun) -> str:
    return f"failback {run.run} of {run.flow} isn't finished: the same command goes on with it"


def _opened(run: FailbackRun) -> str:
    opened = f"failback {run.run} of {run.flow} has opened the way back"
    return f"{opened}; `causeway next {run.flow}` says what comes next"


def _begin(
    pairing: Pairing, stood: FailbackRun | None, plan: FailbackPlan, operator: Operator
) -> FailbackRun:
    """Two people at one question: the second would close, and begin anew, what the first has opened.

    :raises BadInput: a failback has begun, or gone on, since this one's plan was read; or the failover is
        being rolled back.
    """
    work, flow = pairing.clusters.network.run, pairing.forward.name
    before = work(lambda: read_journal(journal_of(pairing), flow))
    found = before.newest_failback(flow)
    if found is not None and found != stood:
        raise _begun_by(found)
    _refuse_taken_back(before, flow)
    facts = {"accepts_loss": True} if operator.accepts_loss else {}
    own = work(lambda: begin_run(pairing, plan, operator.by, **facts))
    after = work(lambda: read_journal(journal_of(pairing), flow))
    first = next(run for run in after.failbacks_of(flow) if run.run not in before.failbacks)
    if first.run != own.run:  # both looked in the same moment; the journal has an order
        work(lambda: told(pairing, own, Step.HOME, given_up=True))
        raise _begun_by(first)
    try:
        _refuse_taken_back(after, flow)
    except BadInput:
        work(lambda: told(pairing, own, Step.HOME, given_up=True))
        raise
    return own


def _refuse_taken_back(journal: Journal, flow: str) -> None:
    """:raises BadInput: somebody puts the groups back on one side; the data can't go home on the other."""
    away = journal.newest(flow)
    if away is not None and away.status is Status.ROLLING_BACK:
        raise being_taken_back(away)


def _begun_by(other: FailbackRun) -> BadInput:
    return BadInput(
        str(other),
        rule=f"was begun, or goes on, by {other.by} while this one's plan was read",
        remedy=f"`causeway failback {other.flow} --{other.way}` goes on with it",
    )


def _what(ways: Ways) -> str:
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


def _refuse_open(ways: Ways) -> None:
    """:raises BadInput: there was no failover."""
    if not newest_failback(ways)[1]:
        raise still_mirrors(ways.forward)


def _earlier(found: FailbackRun | None, ways: Ways, way: Way) -> FailbackRun | None:
    """`found` is the newest; the run to go on with, or that has opened the way back. None: there is none, or
    all came home, or one that went another way has only begun.

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


def _carry_out(
    pairing: Pairing,
    ways: Ways,
    state: FlowState,
    run: FailbackRun,
    operator: Operator,
) -> FailbackRun:
    work, by, say = pairing.clusters.network.run, operator.by, operator.say
    existing = frozenset(work(lambda: pairing.old.wire.topics(None)))
    create_internal_topics(ways.reverse, ClusterAdmin(ways.old), existing)
    forward, reverse = work(lambda: _close(pairing, run, by))
    say(f"{run.flow}: both ways are fenced")
    found = work(lambda: look(pairing, run.way))
    _hold_to_plan(pairing, run, found, operator)
    kept = work(lambda: export_tails(pairing, found, run.begun_ms, say, forward, _exports(run)))
    if run.way is Way.REBUILD:
        assert reverse is not None  # with prefixes there is nothing to rebuild
        run = empty_old(pairing, ways, run, found, kept, say, BothFences(forward, reverse))
        beginnings = work(lambda: beginnings_anew(pairing, found))
    else:
        beginnings = [_where_they_parted(cut) for cut in found.cuts]
    _adopt(pairing, ways, state, run, beginnings, operator, reverse)
    facts = {"exports": dict(kept.exports), "tail": found.tail.as_dict(), "written": found.written.as_dict()}
    back = work(lambda: told(pairing, run, Step.RETURNING, parted=bool(found.cuts), **facts))
    work(lambda: _open(pairing, back, operator))
    return back


def _hold_to_plan(pairing: Pairing, run: FailbackRun, found: FailbackPlan, operator: Operator) -> None:
    """Behind the fences. Once something was dropped there is no giving up: then it is agreed to anew.

    :raises StalePlan: it isn't the plan that somebody said yes to. | :raises BadInput: as `refuse_rebuild`.
    """
    if run.facts["plan"] == found.hash:
        refuse_another_plan(found, operator.expected_plan)
        if found.rebuild is not None:
            accepts = operator.accepts_loss or bool(run.facts.get("accepts_loss"))
            refuse_rebuild(found.rebuild, accepts_loss=accepts)
    elif run.step is Step.EXPORTED:
        _agree(found, operator)
    else:
        pairing.clusters.network.run(lambda: told(pairing, run, Step.HOME, given_up=True))
        raise _stale(found, f"was {run.facts['plan']} and is {found.hash} behind the fences")


def _exports(run: FailbackRun) -> dict[str, int]:
    """What an earlier try has compared."""
    held = run.facts.get("exports")
    return {name: int(count) for name, count in held.items()} if isinstance(held, Mapping) else {}


def _adopt(
    pairing: Pairing,
    ways: Ways,
    state: FlowState,
    run: FailbackRun,
    beginnings: list[Beginning],
    operator: Operator,
    own: OwnFence | None,
) -> None:
    """`own` is the reverse flow's fence."""
    if not beginnings:
        return
    assert own is not None
    pairing.clusters.network.run(lambda: own.prove(pairing.old))  # somebody may have opened it by now
    reason = Reason(by=operator.by, because=run.fence_words)
    generation, _ = adopt_all(ways.reverse, pairing.clusters, ways.old, state, beginnings, reason)
    if run.way is Way.REBUILD:  # what the forward flow's map tells lies in logs that are empty now
        operator.say(f"{run.flow}: {run.reverse} begins at the beginning")
        return
    pairs = [each.pair for each in beginnings]
    there = (pairing.forward, pairing.new, pairing.reverse, pairing.old)
    runs = pairing.clusters.network.run(lambda: hand_over(*there, pairs, generation, own))
    operator.say(f"{run.flow}: {run.reverse} begins where they parted; its offset map got {runs:,} runs")


def _where_they_parted(cut: Cut) -> Beginning:
    return Beginning(
        pair=turned_pair(cut),
        source_next=cut.written_from,
        source_epoch=cut.epoch,
        target_end=cut.old_end,
    )


async def _close(pairing: Pairing, run: FailbackRun, by: str) -> tuple[OwnFence, OwnFence | None]:
    """Both ways, in place of the failover that led here: its rollback opens neither."""
    clock, owner = pairing.clusters.network, run.fence_words
    forward = await close_for(pairing.new, clock, pairing.forward, owner, by=by, takes_over=True)
    if not pairing.reverse.failback_of:  # one with prefixes writes no topic that anybody else writes
        return forward, None
    return forward, await close_for(pairing.old, clock, pairing.reverse, owner, by=by, takes_over=True)


async def _open(pairing: Pairing, run: FailbackRun, operator: Operator) -> None:
    """The reverse flow; where nothing has parted, the forward flow too."""
    parted = bool(run.facts.get("parted"))
    flow, target = (pairing.reverse, pairing.old) if parted else (pairing.forward, pairing.new)
    words = {"by": operator.by, "because": run.fence_words}
    state = await open_for(target, pairing.clusters.network, flow, run.fence_words, **words)
    for line in left_closed(flow, state):
        operator.say(line)
