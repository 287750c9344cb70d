"""Begin a failback: close both ways, keep the divergent tail, let the reverse flow begin where they parted.

With prefixes a mirror is written by one flow only: nothing has diverged, and the forward flow just goes on,
with what the old primary still had.

Each step may be the last before a kill; the same command goes on. The order is the promise: both flows are
closed before anything is compared; nothing goes on before the export was compared; the reverse flow is opened
last, and the forward flow stays closed until all is home.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from uuid import uuid4

from causeway.brokers.admin import ClusterAdmin
from causeway.core.endpoint import ClusterEndpoint
from causeway.core.errors import BadInput, StalePlan
from causeway.core.failback.plan import Cut, FailbackPlan, FailbackRun, Step, Way
from causeway.core.failover.journal import failback_record
from causeway.core.flow import Flow
from causeway.core.flow_state import FlowState
from causeway.core.identity import Pair
from causeway.flows.by_hand import Beginning, Reason, at_both_clusters
from causeway.flows.clusters import state_on
from causeway.flows.failback.adoption import adopt_all, hand_over
from causeway.flows.failback.export import export_tails
from causeway.flows.failback.parting import Pairing, look_where_they_parted
from causeway.flows.failover.logbook import create_journal, read_journal, write_journal
from causeway.flows.failover.sides import Sides, open_target_side, trouble_of
from causeway.flows.fence import write_and_claim
from causeway.flows.internal_topics import create_internal_topics
from causeway.flows.ownership import Say, write_lift

Consent = Callable[[FailbackPlan], None]
"""Shows the plan; raises if the answer isn't yes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    by: str
    consent: Consent
    say: Say
    expected_plan: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedBack:
    run: FailbackRun
    was_done: bool
    plan: FailbackPlan | None = None
    """None: this try went on with what an earlier one had begun, or found all done."""


@dataclass(frozen=True, slots=True)
class Ways:
    """Both flows, and both clusters: `old` is the forward flow's source, `new` its target."""

    forward: Flow
    reverse: Flow
    old: ClusterEndpoint
    new: ClusterEndpoint


def look_before_failback(ways: Ways, way: Way) -> FailbackPlan:
    """Where they parted, and the price. Nothing is written."""
    _refuse_open(ways)
    with at_both_clusters(ways.reverse, ways.new, ways.old, _what(ways)) as (clusters, _):
        pairing = Pairing(ways.forward, ways.reverse, clusters)
        return clusters.network.run(lambda: look_where_they_parted(pairing, way))


def fail_back(ways: Ways, way: Way, operator: Operator) -> FailedBack:
    """:raises StalePlan: something moved between plan and fence; nothing was done."""
    run, plan = _earlier(ways, way), None
    if run is None:
        _refuse_open(ways)
    with at_both_clusters(ways.reverse, ways.new, ways.old, _what(ways)) as (clusters, state):
        pairing = Pairing(ways.forward, ways.reverse, clusters)
        if run is not None and run.step is Step.RETURNING:
            opened = run
            clusters.network.run(lambda: _open(pairing, opened, operator.by))
            return FailedBack(run=run, was_done=True)
        if run is None:
            found = plan = clusters.network.run(lambda: look_where_they_parted(pairing, way))
            _agree(found, operator)
            run = clusters.network.run(lambda: _begin(pairing, found, operator.by))
        else:
            operator.say(f"{ways.forward.name}: going on with {run}")
        done = _carry_out(pairing, ways, state, run, operator)
    return FailedBack(run=done, was_done=False, plan=plan)


def _what(ways: Ways) -> str:
    return f"failback of {ways.forward.name}"


def _agree(plan: FailbackPlan, operator: Operator) -> None:
    if operator.expected_plan not in ("", plan.hash):
        raise _stale(plan, f"it is {plan.hash} now, and {operator.expected_plan} was asked for")
    operator.consent(plan)


def _stale(plan: FailbackPlan, rule: str) -> StalePlan:
    return StalePlan(
        f"plan of the failback of {plan.flow}",
        rule=rule,
        remedy="stop whoever still writes to the old primary, then look again",
    )


def journal_of(pairing: Pairing) -> Sides:
    """The forward flow's target keeps the journal."""
    return Sides(pairing.clusters.network, pairing.new, None, "it isn't asked")


def newest_failback(ways: Ways) -> tuple[FailbackRun | None, bool]:
    """As the journal has it, and whether the forward flow is fenced. Needs the new primary only."""

    async def look(sides: Sides) -> tuple[FailbackRun | None, bool]:
        found = (await read_journal(sides)).newest_failback(ways.forward.name)
        return found, (await state_on(sides.target, ways.forward.name)).fence is not None

    with open_target_side(ways.new) as sides, trouble_of(ways.forward):
        return sides.network.run(lambda: look(sides))


def _refuse_open(ways: Ways) -> None:
    """:raises BadInput: there was no failover."""
    forward = ways.forward
    if not newest_failback(ways)[1]:
        raise BadInput(
            f"flow {forward.name}",
            rule=f"isn't fenced: it still mirrors {forward.source} to {forward.target}",
            remedy=f"`causeway failover {forward.name}` comes first",
        )


def _earlier(ways: Ways, way: Way) -> FailbackRun | None:
    """The run to go on with, or that has opened the way back; None: there is none, or all came home.

    :raises BadInput: it went another way.
    """
    found, _ = newest_failback(ways)
    if found is None or found.step is Step.HOME:
        return None
    if found.way is not way or found.reverse != ways.reverse.name:
        raise BadInput(
            str(found),
            rule=f"goes the way `{found.way}` by flow {found.reverse}",
            remedy=f"`causeway failback {found.flow} --{found.way}` goes on with it",
        )
    return found


async def _begin(pairing: Pairing, plan: FailbackPlan, by: str) -> FailbackRun:
    now_ms = pairing.clusters.network.time_ms()
    run = FailbackRun(
        run=uuid4().hex[:12],
        flow=plan.flow,
        reverse=plan.reverse,
        way=plan.way,
        step=Step.BEGUN,
        by=by,
        begun_ms=now_ms,
        at_ms=now_ms,
        facts={"plan": plan.hash},
    )
    await create_journal(pairing.forward, journal_of(pairing))
    await write_journal(journal_of(pairing), [failback_record(run)])
    return run


async def told(pairing: Pairing, run: FailbackRun, step: Step, **facts: object) -> FailbackRun:
    """The run at its next step, in the journal."""
    now_ms = pairing.clusters.network.time_ms()
    further = replace(run, step=step, at_ms=now_ms, facts={**run.facts, **facts})
    await write_journal(journal_of(pairing), [failback_record(further)])
    return further


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
    work(lambda: _close(pairing, run, by))
    say(f"{run.flow}: both ways are fenced")
    found = work(lambda: look_where_they_parted(pairing, run.way))
    if run.facts["plan"] != found.hash:
        work(lambda: told(pairing, run, Step.HOME, given_up=True))
        raise _stale(found, f"was {run.facts['plan']} and is {found.hash} behind the fences")
    exported = work(lambda: export_tails(pairing, found, run.begun_ms, say))
    if found.cuts:
        beginnings = [_beginning(cut) for cut in found.cuts]
        reason = Reason(by=by, because=run.fence_words)
        generation, _ = adopt_all(ways.reverse, pairing.clusters, ways.old, state, beginnings, reason)
        pairs = [each.pair for each in beginnings]
        there = (pairing.forward, pairing.new, pairing.reverse, pairing.old)
        runs = work(lambda: hand_over(*there, pairs, generation))
        say(f"{run.flow}: {run.reverse} begins where they parted; its map was told {runs:,} runs")
    facts = {"exports": exported, "tail": found.tail.as_dict(), "written": found.written.as_dict()}
    back = work(lambda: told(pairing, run, Step.RETURNING, parted=bool(found.cuts), **facts))
    work(lambda: _open(pairing, back, by))
    return back


def _beginning(cut: Cut) -> Beginning:
    pair = Pair(
        source=cut.new,
        target=cut.old,
        source_topic_id=cut.new_topic_id,
        target_topic_id=cut.old_topic_id,
    )
    return Beginning(pair=pair, source_next=cut.written_from, source_epoch=cut.epoch)


async def _close(pairing: Pairing, run: FailbackRun, by: str) -> None:
    """In words that no rollback of a failover takes for its own."""
    clock, words = pairing.clusters.network, {"by": by, "because": run.fence_words}
    await write_and_claim(pairing.new, clock, pairing.forward, **words)
    if pairing.reverse.failback_of:  # one with prefixes writes no topic that anybody else writes
        await write_and_claim(pairing.old, clock, pairing.reverse, **words)


async def _open(pairing: Pairing, run: FailbackRun, by: str) -> None:
    """The reverse flow; where nothing has parted, the forward flow too."""
    parted = bool(run.facts.get("parted"))
    flow, target = (pairing.reverse, pairing.old) if parted else (pairing.forward, pairing.new)
    fence = (await target.flow_state(flow.name)).fence
    if fence is not None and fence.because == run.fence_words:
        words = {"by": by, "because": run.fence_words}
        await write_lift(target, pairing.clusters.network, flow, lifts=fence.generation, **words)
