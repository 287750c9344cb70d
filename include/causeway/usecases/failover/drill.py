"""Rehearse a failover while mirroring goes on: on clones of the groups, by the code of the real thing.

The plan is the one that a failover would have now. Clones stand where it says, are read back, and consumers
read from there. Nothing else is touched, and no flow is fenced. The clones go at the end, whatever happened,
and those that a killed drill has left go at the beginning of the next one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from uuid import uuid4

from causeway import interruption
from causeway.brokers.admin.drill_reader import read_first
from causeway.brokers.admin.scratch import delete_groups
from causeway.brokers.transport.connection import Wire
from causeway.brokers.wire.consumer_groups import ConsumerGroups
from causeway.brokers.wire.delete_offsets import forget_offsets
from causeway.core.copy.ports import Refused, Unreachable
from causeway.core.failover.drill_run import (
    LONGEST_MS,
    DrillRun,
    at_work,
    clone_of,
    clones_of,
    without_result,
)
from causeway.core.failover.impact_sheet import Sheet
from causeway.core.failover.request import Active, FailoverRequest
from causeway.core.groups.commit_portions import in_portions
from causeway.core.journal.journal import FailoverRun, Shift, Status
from causeway.core.journal.written_records import drill_record
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import CausewayError, FlowHeld
from causeway.core.kernel.estimate import largest
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import error_name
from causeway.core.kernel.timestamps import rfc3339
from causeway.core.model.flow import Flow
from causeway.core.model.group_filter import FlowGroups
from causeway.core.permissions.failover import clone_rights, journal_rights
from causeway.usecases.failover.build_plan import make_sheet
from causeway.usecases.failover.move_groups import move_planned
from causeway.usecases.failover.verify import verify_run
from causeway.usecases.journal.store import create_journal, read_journal, write_journal
from causeway.usecases.run_lock.missing_rights import refuse_without
from causeway.usecases.run_lock.ownership import Say
from causeway.usecases.session.source_may_be_gone import (
    FlowSession,
    in_session,
    open_session,
    run_blocking,
    trouble_of,
)

_PROBED_AT_MOST = 5
_READ_SECONDS = 60.0


def drill(
    flow: Flow, source: ClusterEndpoint, target: ClusterEndpoint, selection: FlowGroups, *, by: str, say: Say
) -> DrillRun:
    """:raises FlowHeld: another drill of this flow is at work; one at a time."""
    wish = FailoverRequest(flow=flow.name, at_ms=None, active=Active.LEAVE)
    run = uuid4().hex[:12]
    with open_session(source, target) as sides, trouble_of(flow):
        began, sheet = run_blocking(sides, lambda: _prepare(flow, sides, wish, selection))
        with _its_turn(flow, sides, run, by), _clones_removed(flow, target, say, run):
            clones = _clones(sheet, run, by, sides.network.time_ms())
            done = _rehearse(flow, sides, sheet, clones, say, began)
            run_blocking(sides, lambda: _record(flow, sides, done))
    return done


async def _prepare(
    flow: Flow, sides: FlowSession, wish: FailoverRequest, selection: FlowGroups
) -> tuple[float, Sheet]:
    """When it began, by the clock that only goes on, and the sheet.

    :raises NotAuthorized: a right is missing, so that clones would be left, or nothing be kept of it.
    """
    await refuse_without((*journal_rights(), *clone_rights(flow)), {"target": sides.target.wire})
    began = sides.network.monotonic()
    return began, await make_sheet(flow, sides, wish, selection)


def _rehearse(
    flow: Flow, sides: FlowSession, sheet: Sheet, clones: FailoverRun, say: Say, began: float
) -> DrillRun:
    if left := sheet.plan.left_alone:
        say(f"{flow.name}: {len(left)} groups or partitions aren't rehearsed; the first: {left[0].why}")
    groups = ConsumerGroups(sides.target.wire)
    with interruption.whole():  # one that is on its way would stand after the clones are removed
        run_blocking(sides, lambda: move_planned(flow, clones, groups))
    verified = run_blocking(sides, lambda: verify_run(clones, sides, groups))
    say(f"{flow.name}: {verified.as_planned} of {verified.offsets} offsets of clones stand as planned")
    read = _read(sides.target.wire.endpoint, clones)
    seconds = sides.network.monotonic() - began
    return _result(clones, sheet, verified.as_planned, read, round(seconds * 1000))


def history(flow: Flow, target: ClusterEndpoint) -> list[DrillRun]:
    """Needs the target only."""
    journal = in_session(flow, None, target, lambda sides: read_journal(sides, flow.name))
    return [run for run in journal.drills.values() if run.flow == flow.name and run.state == "done"]


@contextmanager
def _its_turn(flow: Flow, sides: FlowSession, run: str, by: str) -> Iterator[None]:
    """Whoever began first goes on: a second one would remove the first one's clones.

    :raises FlowHeld: another one is at work; nothing was done.
    """
    begun = without_result(flow.name, run, by=by, at_ms=sides.network.time_ms(), state="begun")
    over = drill_record(replace(begun, state="over"))
    run_blocking(sides, lambda: _begin(flow, sides, begun, over))
    try:
        yield
    except BaseException:  # Ctrl-C too: the loop that it broke isn't used again
        in_session(flow, None, sides.target.wire.endpoint, lambda anew: write_journal(anew, [over]))
        raise


async def _begin(flow: Flow, sides: FlowSession, begun: DrillRun, over: tuple[bytes, bytes]) -> None:
    await create_journal(flow, sides)
    await write_journal(sides, [drill_record(begun)])
    drills = (await read_journal(sides, flow.name)).drills.values()
    first = at_work(drills, flow.name, sides.network.time_ms())[0]
    if first.run != begun.run:
        await write_journal(sides, [over])
        raise _held_by(first)


def _held_by(first: DrillRun) -> FlowHeld:
    begun_at, silent_at = rfc3339(first.at_ms), rfc3339(first.at_ms + LONGEST_MS)
    return FlowHeld(
        f"drill of {first.flow}",
        rule=f"drill {first.run} is at work, begun by {first.by} at {begun_at}; nothing was done",
        remedy=f"wait for it: `causeway drill {first.flow} --history` shows its end; if it was "
        f"killed, another one may begin at {silent_at}",
    )


async def _record(flow: Flow, sides: FlowSession, done: DrillRun) -> None:
    await _refuse_overtaken(flow, sides, done.run)
    await write_journal(sides, [drill_record(done)])


async def _refuse_overtaken(flow: Flow, sides: FlowSession, run: str) -> None:
    """:raises FlowHeld: it took so long that another one has begun, and removed its clones."""
    last = [
        each for each in (await read_journal(sides, flow.name)).drills.values() if each.flow == flow.name
    ][-1]
    if last.run != run and last.state != "over":
        raise FlowHeld(
            f"drill of {flow.name}",
            rule=f"took more than {LONGEST_MS // 1000} s, and {last.by} has begun drill {last.run} since",
            remedy=f"`causeway drill {flow.name} --history` shows how that one ended",
        )


@contextmanager
def _clones_removed(flow: Flow, target: ClusterEndpoint, say: Say, run: str) -> Iterator[None]:
    """All at the beginning, its own at the end.

    :raises ClusterTrouble: they can't be; the next drill tries again.
    """
    left = _remove(flow, target, clones_of(flow.name))
    if left:
        say(f"{flow.name}: removed {left} clones that an earlier drill had left")
    clones = clone_of(flow.name, run, "")
    try:
        yield
    except KeyboardInterrupt:
        try:
            _remove(flow, target, clones)
        except CausewayError as error:
            stays = f"clones stay ({error.what}: {error.rule})"
            goes_on = f"the next `causeway drill {flow.name}` removes them"
            raise KeyboardInterrupt(f"{stays}; {goes_on}") from None
        raise
    except BaseException:
        _remove(flow, target, clones)
        raise
    with interruption.whole():
        _remove(flow, target, clones)


def _remove(flow: Flow, target: ClusterEndpoint, prefix: str) -> int:
    """With connections of its own: it has to work whatever an interrupted drill left."""
    names = in_session(flow, None, target, lambda anew: _lighten(anew.target.wire, prefix))
    delete_groups(target, names)
    return len(names)


async def _lighten(wire: Wire, prefix: str) -> list[str]:
    """The clones that are there, none with more offsets than a coordinator deletes at once: a group's end
    is written as one batch with a record for each of its offsets.

    :raises ClusterTrouble: offsets of one can't be forgotten.
    """
    groups = ConsumerGroups(wire)
    names = sorted(name for name in await groups.listed() if name.startswith(prefix))
    for clone, held in (await groups.committed(names)).items():
        if isinstance(held, Refused):
            continue  # its deletion is refused as well, and reported
        for portion in list(in_portions(clone, dict.fromkeys(held, "")))[1:]:
            refused = await forget_offsets(wire, clone, portion)
            if refused is not None:
                raise Unreachable(f"offsets of {clone}: {error_name(refused.code)}")
    return names


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
        lost_records=sheet.lost.exactly,
        rpo_seconds=largest(topic.lost_seconds for topic in sheet.topics).exactly,
        rereads=sheet.rereads.exactly,
    )
