"""A failover one step at a time, for a scheduler that shows each step as a task of its own.

The same steps as `apply.py`, in the same order; only the run's name goes from one to the next. Each asks anew
how far the run came, so whichever is made again ends in the same state.
"""

from __future__ import annotations

from collections.abc import Mapping

from causeway.brokers.consumer_groups import ConsumerGroups
from causeway.core.endpoint import ClusterEndpoint
from causeway.core.failover.journal import FailoverRun, Status
from causeway.core.failover.wish import Wish
from causeway.core.flow import Flow
from causeway.core.group_filter import FlowGroups
from causeway.flows.failover.checking import Verified, verify_run
from causeway.flows.failover.look import make_sheet
from causeway.flows.failover.moving import Moved
from causeway.flows.failover.planned import Switch
from causeway.flows.failover.sides import Sides, open_sides, open_target_side, trouble_of
from causeway.flows.failover.steps import (
    close_flow,
    compare_and_move,
    earlier_run,
    keep_offsets,
    known_run,
    record_done,
    refuse_without_rights,
    stale_plan,
)
from causeway.flows.ownership import Say


def find_earlier(flow: Flow, target: ClusterEndpoint, wish: Wish) -> FailoverRun | None:
    """As `earlier_run`."""
    with open_target_side(target) as sides, trouble_of(flow):
        return sides.network.run(lambda: earlier_run(flow, sides, wish))


def take_snapshot(
    flow: Flow,
    source: ClusterEndpoint,
    target: ClusterEndpoint,
    wish: Wish,
    selection: FlowGroups,
    *,
    plan: str,
    by: str,
    say: Say,
) -> FailoverRun:
    """Of the plan that was agreed to, and of no other; of a planned failover behind its last record.

    :raises StalePlan: it is another one by now; nothing was written.
    """
    with open_sides(source, target) as sides, trouble_of(flow):
        run = sides.network.run(lambda: earlier_run(flow, sides, wish))
        if run is not None:
            _refuse_other(flow, run.agreement, plan)
            return run
        sheet = sides.network.run(lambda: make_sheet(flow, sides, wish, selection))
        _refuse_other(flow, sheet.plan.agreement, plan)
        groups = sheet.plan.groups
        sides.network.run(lambda: refuse_without_rights(flow, sides, groups))
        if wish.is_planned:
            sheet = Switch(flow, source, target, selection, by, say).bring_to_its_end(sides, sheet)
        made = sheet.plan
        return sides.network.run(lambda: keep_offsets(flow, sides, made, by))


def raise_fence(flow: Flow, target: ClusterEndpoint, run: str, *, by: str) -> None:
    async def fence(sides: Sides) -> None:
        known = await known_run(flow, sides, run)
        if known.status is Status.BEGUN:
            await close_flow(flow, sides, known, by)

    with open_target_side(target) as sides, trouble_of(flow):
        sides.network.run(lambda: fence(sides))


def move_groups(
    flow: Flow,
    source: ClusterEndpoint,
    target: ClusterEndpoint,
    run: str,
    selection: FlowGroups,
    *,
    by: str,
) -> Moved:
    """:raises StalePlan: the run is given up, nothing was moved, and its own fence is lifted."""

    async def move(sides: Sides) -> Moved:
        known = await known_run(flow, sides, run)
        if known.status is Status.DONE:
            return Moved()
        return await compare_and_move(flow, sides, known, selection, by)

    with open_sides(source, target) as sides, trouble_of(flow):
        return sides.network.run(lambda: move(sides))


def verify(flow: Flow, target: ClusterEndpoint, run: str) -> Verified:
    async def look(sides: Sides) -> Verified:
        return await verify_run(await known_run(flow, sides, run), sides, ConsumerGroups(sides.target.wire))

    with open_target_side(target) as sides, trouble_of(flow):
        return sides.network.run(lambda: look(sides))


def record(
    flow: Flow, target: ClusterEndpoint, run: str, facts: Mapping[str, object], *, by: str
) -> FailoverRun:
    """:returns: the run as the journal has it from now on."""

    async def write(sides: Sides) -> FailoverRun:
        if (await known_run(flow, sides, run)).status is Status.BEGUN:
            await record_done(flow, sides, run, by, facts)
        return await known_run(flow, sides, run)

    with open_target_side(target) as sides, trouble_of(flow):
        return sides.network.run(lambda: write(sides))


def _refuse_other(flow: Flow, found: str, agreed: str) -> None:
    if found != agreed:
        raise stale_plan(flow, f"it is {found} now, and {agreed} was agreed to")
