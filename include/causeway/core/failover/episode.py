"""Where a flow is in its episode, and the one command that comes next.

An episode is one failover with its failback. Everything is decided from what is kept: the state of the flow
and of the one that leads back, and the journal of either. What can't be asked is left out, never guessed: the
target alone tells all but how far a homecoming has come.
"""

from __future__ import annotations

from collections.abc import Callable

from causeway.core.counting import counted
from causeway.core.errors import CausewayError
from causeway.core.failback.plan import FailbackRun, Step
from causeway.core.failover.drill import at_work
from causeway.core.failover.episode_stage import Next, Seen, Stage
from causeway.core.failover.episodes import is_left_behind
from causeway.core.failover.journal import FailoverRun, Status
from causeway.core.failover.wish import Mode
from causeway.core.fences import Fence
from causeway.core.flow_state import FlowState
from causeway.core.instants import rfc3339
from causeway.core.remedies import lift_command, typed_in

_ALL_IS_HOME, _TAKEN_BACK = "`all is home`, exit code 0", "`rolled back`, exit code 0"


def what_next(seen: Seen) -> Next:
    """Harm comes first. Then the newest act decides: a failback, else a failover, else the mirror."""
    if seen.troubles:
        return _harmed(seen, seen.troubles[0])
    back = seen.journal.newest_failback(seen.names.flow)
    away = seen.journal.newest(seen.names.flow)
    if back is not None and back.is_under_way:
        return _back(seen, back)
    if away is not None and back is None and not _is_history(seen, away):
        return _away(seen, away)
    home = seen.homecoming
    if back is not None and home is not None and home.status is Status.ROLLING_BACK:
        return _away(seen, home)
    if back is not None and seen.is_taken_back:
        return _again(seen, back)
    return _mirroring(seen, back)


def _is_history(seen: Seen, away: FailoverRun) -> bool:
    """Somebody has opened the flow since, and it has mirrored on."""
    if is_left_behind(away, seen.state, seen.journal):
        return True
    return away.status is Status.DONE and away.is_overtaken(seen.state) and seen.state.resting is None


def _harmed(seen: Seen, trouble: CausewayError) -> Next:
    flow, command = seen.names.flow, typed_in(trouble.remedy)
    return Next(
        flow=flow,
        stage=Stage.HARMED,
        what=str(trouble),
        command=command or f"causeway status {flow}",
        success=f"no such line in `causeway status {flow}`",
        when="once all is done that the line above names before it"
        if command
        else f"after: {trouble.remedy}",
    )


# a failover


def _away(seen: Seen, away: FailoverRun) -> Next:
    names, flow = seen.names, seen.names.flow
    back_out = _back_out(away)
    stage, when, success = Stage.FAILED_OVER, "", _TAKEN_BACK
    if away.status is Status.BEGUN:
        stage, what, command = Stage.FAILING_OVER, "has begun and isn't finished", away.wish.command
        success = "`offsets read back as planned`, exit code 0"
        if away.is_agreed and away.is_overtaken(seen.state):
            what, command = "broke off while it moved groups, and the mirror has gone on since", back_out
            success = _TAKEN_BACK
    elif away.status is Status.ROLLING_BACK:
        stage, what, command = Stage.ROLLING_BACK, "is being rolled back, and that isn't finished", back_out
    elif seen.state.fence is None:
        what = "is done, and its fence was lifted: a run would mirror again"
        when, success = f"as long as applications are on {names.target}", "`fenced`, exit code 0"
        command = f'causeway fence {flow} --because "failover {away.run}"'
    elif not names.reverse:
        what = f"is done: applications belong on {names.target}; no flow of flows.yaml leads back"
        when, command = f"as long as nobody has written to {names.target}", back_out
    else:
        what = f"is done: applications belong on {names.target}"
        when, command = f"once {names.source} is back{_silent(seen)}", f"causeway failback {flow} --resume"
        success = "`has begun`, exit code 0"
    return Next(
        flow=flow,
        stage=stage,
        what=f"failover {away.run} {what}",
        command=command,
        success=success,
        since_ms=away.begun_ms,
        by=away.by,
        when=when,
    )


def _back_out(run: FailoverRun) -> str:
    return f"causeway failover {run.flow} --rollback {run.run}"


def _silent(seen: Seen) -> str:
    return f" ({seen.names.source} doesn't answer now)" if seen.source_is_silent else ""


# a failback


def _back(seen: Seen, back: FailbackRun) -> Next:
    coming = _coming_home(seen, back)
    if back.closes_forward and seen.state.fence is None:
        return _left_open(seen, back)
    if back.step is not Step.RETURNING or _left_shut(seen, back):
        return _opening(seen, back)
    if coming is not None:
        taken_back = coming.status is Status.ROLLING_BACK
        return Next(
            flow=back.flow,
            stage=Stage.COMING_HOME,
            what=f"failback {back.run} comes home by failover {coming.run}, which is {coming.status}",
            command=_back_out(coming) if taken_back else back.command,
            success=_TAKEN_BACK if taken_back else _ALL_IS_HOME,
            since_ms=coming.begun_ms,
            by=coming.by,
            when="" if taken_back else f"with the writers on {seen.names.target} stopped",
        )
    fence = seen.reverse_state.fence if seen.reverse_state is not None else None
    if fence is not None and not fence.is_of_a_run:
        return _fenced(seen, back.reverse, fence, standing=seen.reverse_state)
    if seen.reverse_state is not None and seen.reverse_state.fences_of(back.stand_by_words):
        return _both_closed(seen, back)
    return _resting(seen, back)


def _opening(seen: Seen, back: FailbackRun) -> Next:
    return Next(
        flow=seen.names.flow,
        stage=Stage.FAILING_BACK,
        what=f"failback {back.run} has begun and hasn't opened the way back yet ({back.way}, {back.step})",
        command=f"causeway failback {back.flow} --{back.way}",
        success="`has begun` or `was begun already`, exit code 0",
        since_ms=back.begun_ms,
        by=back.by,
    )


def _left_open(seen: Seen, back: FailbackRun) -> Next:
    """Somebody has lifted what kept it closed until all is home."""
    flow = seen.names.flow
    return Next(
        flow=flow,
        stage=Stage.RESTING,
        what=f"failback {back.run}: {flow} should rest, and no fence keeps it closed: as long as "
        f"{back.reverse} is open, too, neither of the two mirrors",
        command=f'causeway fence {flow} --because "{back.fence_words}"',
        success="`fenced`, exit code 0",
        since_ms=back.at_ms,
        by=back.by,
    )


def _resting(seen: Seen, back: FailbackRun) -> Next:
    names, flow = seen.names, seen.names.flow
    leads = f"{back.reverse} leads {names.target} back to {names.source}"
    if seen.reverse_state is not None and seen.reverse_state.running is None:
        run = f"`causeway run {back.reverse} --until-caught-up`"
        leads += f", and no run of it is at work now: {run} brings its lag down"
    rests = f"{flow} rests: {leads}" if back.facts.get("parted") else f"{flow} goes on; {leads}"
    return Next(
        flow=flow,
        stage=Stage.RESTING,
        what=f"failback {back.run}: {rests}{_silent(seen)}",
        when=f"once {back.reverse} has little lag (`causeway status {back.reverse}`) and the writers on "
        f"{names.target} have stopped",
        command=back.command,
        success=_ALL_IS_HOME,
        since_ms=back.at_ms,
        by=back.by,
    )


def _both_closed(seen: Seen, back: FailbackRun) -> Next:
    """Its homecoming was rolled back after the groups had moved, and before it was home."""
    names = seen.names
    return Next(
        flow=back.flow,
        stage=Stage.COMING_HOME,
        what=f"failback {back.run} was coming home, and that was rolled back: groups are on {names.target}, "
        f"and nothing mirrors: {back.reverse} still stands by, and {back.flow} rests",
        command=back.command,
        success=_ALL_IS_HOME,
        since_ms=back.at_ms,
        by=back.by,
        when=f"with the writers on {names.target} stopped; where they go on, "
        f'`causeway lift {back.reverse} --because "..."` lets {back.reverse} lead first',
    )


def _again(seen: Seen, back: FailbackRun) -> Next:
    """Where new records were written since, that command names another one."""
    return Next(
        flow=back.flow,
        stage=Stage.COMING_HOME,
        what=f"failback {back.run} came home, and that was rolled back: groups are on {seen.names.target}",
        command=back.command,
        success=_ALL_IS_HOME,
        since_ms=back.at_ms,
        by=back.by,
        when=f"with the writers on {seen.names.target} stopped",
    )


def _left_shut(seen: Seen, back: FailbackRun) -> bool:
    """It was killed before it opened the way back."""
    parted = bool(back.facts.get("parted"))
    state = seen.reverse_state if parted else seen.state
    return state is not None and bool(state.fences_of(back.fence_words))


def _coming_home(seen: Seen, back: FailbackRun) -> FailoverRun | None:
    run = seen.homecoming
    if run is None or run.wish.mode is not Mode.HOME or run.begun_ms < back.begun_ms:
        return None
    return run if run.may_go_on or run.status is Status.ROLLING_BACK else None


# the mirror


def _mirroring(seen: Seen, back: FailbackRun | None) -> Next:
    state = seen.state
    if back is not None and state.fences_of(back.fence_words):
        return _back_home_but_shut(seen, back)
    if state.fence is not None:
        return _fenced(seen, seen.names.flow, state.fence, standing=state)
    rules: tuple[Callable[[Seen], Next | None], ...] = (_drill, _parked, _new)
    for rule in rules:
        found = rule(seen)
        if found is not None:
            return found
    if back is not None and not _ran_since(state, back):
        return _not_running(seen, back)
    return _runs(seen)


def _back_home_but_shut(seen: Seen, back: FailbackRun) -> Next:
    return Next(
        flow=seen.names.flow,
        stage=Stage.COMING_HOME,
        what=f"failback {back.run} came home, and the flow isn't open again yet",
        command=back.command,
        success=_ALL_IS_HOME,
        since_ms=back.at_ms,
        by=back.by,
    )


def _fenced(seen: Seen, fenced: str, fence: Fence, *, standing: FlowState | None) -> Next:
    assert standing is not None
    others = sum(each.stops_the_flow for each in standing.standing) - 1
    more = f"; {counted(others, 'fence')} more" if others else ""
    whose = "" if fenced == seen.names.flow else f"{fenced} is "
    return Next(
        flow=seen.names.flow,
        stage=Stage.FENCED,
        what=f"{whose}fenced by {fence.by}: {fence.because}{more}",
        when="only if that command is dead: it lifts its fence itself"
        if fence.is_at_work
        else f"once {fence.by} says that it may run",
        command=lift_command(fenced, standing.standing, fence),
        success="`lifted`, exit code 0",
        since_ms=fence.since_ms,
        by=fence.by,
    )


def _drill(seen: Seen) -> Next | None:
    drills = at_work(seen.journal.drills.values(), seen.names.flow, seen.now_ms)
    if not drills:
        return None
    drill = drills[0]
    return Next(
        flow=seen.names.flow,
        stage=Stage.DRILL,
        what=f"drill {drill.run} is at work; mirroring goes on",
        when="once it has ended",
        command=f"causeway drill {seen.names.flow} --history",
        success="a line of this drill, exit code 0",
        since_ms=drill.at_ms,
        by=drill.by,
    )


def _parked(seen: Seen) -> Next | None:
    if not seen.parked:
        return None
    flow, (first, why) = seen.names.flow, min(seen.parked.items())
    parked = seen.state.parked
    return Next(
        flow=flow,
        stage=Stage.PARKED,
        what=f"{counted(len(seen.parked), 'partition')} parked, the others go on; the first: {first}: "
        f"{why.reason}",
        command=typed_in(why.remedy) or f"causeway status {flow}",
        success=f"no PARKED line of it in `causeway status {flow}` after the next run",
        since_ms=None if parked is None else parked.at_ms,
    )


def _new(seen: Seen) -> Next | None:
    if seen.state.run is not None or seen.state.pairs:
        return None
    flow = seen.names.flow
    return Next(
        flow=flow,
        stage=Stage.NEW,
        what="it has never run",
        command=f"causeway run {flow} --until-caught-up",
        success="`lag 0`, exit code 0",
    )


def _ran_since(state: FlowState, back: FailbackRun) -> bool:
    return state.running is not None or (state.run is not None and state.run.since_ms > back.at_ms)


def _not_running(seen: Seen, back: FailbackRun) -> Next:
    flow = seen.names.flow
    return Next(
        flow=flow,
        stage=Stage.HOME_NOT_RUNNING,
        what=f"failback {back.run} is home, and nothing mirrors since",
        command=f"causeway run {flow}",
        success=f"`held by` in `causeway status {flow}`; in Airflow: unpause its DAG",
        since_ms=back.at_ms,
        by=back.by,
    )


def _runs(seen: Seen) -> Next:
    flow, run, holds = seen.names.flow, seen.state.run, seen.state.running
    drills = [each for each in seen.journal.drills.values() if each.flow == flow and each.state == "done"]
    last = f"the last drill was at {rfc3339(drills[-1].at_ms)}" if drills else "it was never rehearsed"
    when, what = "", f"{'nobody holds it now' if holds is None else f'held by {holds.holder}'}; {last}"
    if seen.source_is_silent:
        when, what = f"if {seen.names.source} is lost", f"{what}; {seen.names.source} doesn't answer now"
        command, success = f"causeway failover {flow} --at latest --dry-run", "a sheet; nothing is written"
    elif holds is None:
        command, success = (
            f"causeway run {flow}",
            f"`held by` in `causeway status {flow}`, or its DAG is green",
        )
    else:
        command, success = f"causeway drill {flow}", "as many AS PLANNED as OFFSETS, exit code 0"
    return Next(
        flow=flow,
        stage=Stage.MIRRORING,
        what=what,
        command=command,
        success=success,
        since_ms=None if run is None else run.since_ms,
        by="" if run is None else run.holder,
        when=when,
    )
