"""Rehearse a failover while mirroring goes on: on clones of the groups, by the code of the real thing.

The plan is the one that a failover would have now. Clones stand where it says, are read back, and consumers
read from there. Nothing else is touched, and no flow is fenced. The clones go at the end, whatever happened,
and those that a killed drill has left go at the beginning of the next one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from causeway.brokers.consumer_groups import ConsumerGroups
from causeway.brokers.drill_reader import read_first
from causeway.brokers.scratch import delete_groups
from causeway.core.endpoint import ClusterEndpoint
from causeway.core.failover.drill import DrillRun, clone_of, clones_of
from causeway.core.failover.figure import Figure, total
from causeway.core.failover.journal import FailoverRun, Shift, Status, drill_record
from causeway.core.failover.rights import clone_rights, journal_rights
from causeway.core.failover.sheet import Sheet
from causeway.core.failover.wish import Active, Wish
from causeway.core.flow import Flow
from causeway.core.group_filter import FlowGroups
from causeway.core.identity import TopicPartition
from causeway.flows.failover.checking import verify_run
from causeway.flows.failover.logbook import create_journal, read_journal, write_journal
from causeway.flows.failover.look import make_sheet
from causeway.flows.failover.sides import Sides, open_sides, open_target_side, trouble_of
from causeway.flows.failover.steps import move_planned
from causeway.flows.lacking import refuse_without
from causeway.flows.ownership import Say

_PROBED_AT_MOST = 5
_READ_SECONDS = 60.0


def drill(
    flow: Flow, source: ClusterEndpoint, target: ClusterEndpoint, selection: FlowGroups, *, by: str, say: Say
) -> DrillRun:
    wish = Wish(flow=flow.name, at_ms=None, active=Active.LEAVE)
    with _ready(flow, source, target) as sides, _clones_removed(flow, target, say):
        began = sides.network.monotonic()
        sheet = sides.network.run(lambda: make_sheet(flow, sides, wish, selection))
        if left := sheet.plan.left_alone:
            say(f"{flow.name}: {len(left)} groups or partitions aren't rehearsed; the first: {left[0].why}")
        clones = _clones(sheet, uuid4().hex[:12], by, sides.network.time_ms())
        groups = ConsumerGroups(sides.target.wire)
        sides.network.run(lambda: move_planned(flow, clones, groups))
        verified = sides.network.run(lambda: verify_run(clones, sides, groups))
        say(f"{flow.name}: {verified.as_planned} of {verified.offsets} offsets of clones stand as planned")
        read = _read(target, clones)
        seconds = sides.network.monotonic() - began
        done = _result(clones, sheet, verified.as_planned, read, round(seconds * 1000))
        sides.network.run(lambda: _record(flow, sides, done))
    return done


def history(flow: Flow, target: ClusterEndpoint) -> list[DrillRun]:
    """Needs the target only."""
    with open_target_side(target) as sides, trouble_of(flow):
        journal = sides.network.run(lambda: read_journal(sides))
    return [run for run in journal.drills.values() if run.flow == flow.name]


@contextmanager
def _ready(flow: Flow, source: ClusterEndpoint, target: ClusterEndpoint) -> Iterator[Sides]:
    """:raises NotAuthorized: a right is missing, so that clones would be left, or nothing be kept of it."""
    needed = (*journal_rights(), *clone_rights(flow))
    with open_sides(source, target) as sides, trouble_of(flow):
        sides.network.run(lambda: refuse_without(needed, {"target": sides.target.wire}))
        yield sides


@contextmanager
def _clones_removed(flow: Flow, target: ClusterEndpoint, say: Say) -> Iterator[None]:
    """:raises ClusterTrouble: they can't be; the next drill tries again."""
    left = _remove(flow, target)
    if left:
        say(f"{flow.name}: removed {left} clones that an earlier drill had left")
    try:
        yield
    finally:
        _remove(flow, target)


def _remove(flow: Flow, target: ClusterEndpoint) -> int:
    """With connections of its own: it has to work whatever an interrupted drill left behind."""
    with open_target_side(target) as anew:
        groups = ConsumerGroups(anew.target.wire)
        listed = anew.network.run(groups.listed)
    names = sorted(name for name in listed if name.startswith(clones_of(flow.name)))
    delete_groups(target, names)
    return len(names)


def _clones(sheet: Sheet, run: str, by: str, at_ms: int) -> FailoverRun:
    plan = sheet.plan
    shifts: dict[str, dict[TopicPartition, Shift]] = {}
    for move in plan.moves:
        clone = clone_of(sheet.flow, run, move.group)
        shifts.setdefault(clone, {})[move.target] = Shift(before=None, after=move.after)
    return FailoverRun(
        run=run,
        flow=sheet.flow,
        wish=plan.wish,
        plan_hash=plan.hash,
        by=by,
        begun_ms=at_ms,
        status=Status.BEGUN,
        shifts=shifts,
    )


def _read(target: ClusterEndpoint, clones: FailoverRun) -> tuple[int, int]:
    """By consumers in the clones' names, those with the most partitions first.

    :returns: how many partitions they read from their places, and how many they were sent to.
    """
    chosen = sorted(clones.shifts, key=lambda clone: -len(clones.shifts[clone]))[:_PROBED_AT_MOST]
    count = probed = 0
    for clone in chosen:
        places = clones.shifts[clone]
        found = read_first(target, clone, list(places), timeout_seconds=_READ_SECONDS)
        count += sum(at is None or at >= places[place].after for place, at in found.items())
        probed += len(places)
    return count, probed


def _result(
    clones: FailoverRun, sheet: Sheet, as_planned: int, read: tuple[int, int], rto_ms: int
) -> DrillRun:
    seconds = [topic.lost_seconds for topic in sheet.topics]
    return DrillRun(
        run=clones.run,
        flow=clones.flow,
        by=clones.by,
        at_ms=clones.begun_ms,
        groups=len(clones.shifts),
        offsets=sum(map(len, clones.shifts.values())),
        as_planned=as_planned,
        read=read[0],
        probed=read[1],
        rto_ms=rto_ms,
        lost_records=sheet.lost.number,
        rpo_seconds=None if any(f.number is None for f in seconds) else _most(seconds),
        rereads=total(group.rereads for group in sheet.groups).number,
    )


def _most(figures: list[Figure]) -> int:
    return max((figure.number or 0 for figure in figures), default=0)


async def _record(flow: Flow, sides: Sides, run: DrillRun) -> None:
    await create_journal(flow, sides)
    await write_journal(sides, [drill_record(run)])
