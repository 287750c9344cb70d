"""Where a flow is in its episode, and the one command that comes next.

An episode is one failover with its failback. Everything is decided from what is kept: the state of the flow
and of its reverse flow, and the journal of either. What can't be asked is left out, never guessed: the target
alone tells all but how far a homecoming has come.
"""

from __future__ import annotations

from causeway.core.episode.episodes import is_closed, is_left_behind
from causeway.core.episode.mirror_step import RAN, in_the_way, mirror_runs
from causeway.core.episode.stage import Next, Seen, Stage
from causeway.core.failback.divergence import FailbackRun, Step
from causeway.core.failover.request import Mode
from causeway.core.journal.journal import FailoverRun, Status
from causeway.core.kernel.errors import CausewayError
from causeway.core.kernel.plurals import counted
from causeway.core.state.fences import Fence
from causeway.core.state.flow_state import FlowState
from causeway.core.state.repair_commands import lift_command, typed_in

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
    if away.wish.mode is Mode.HOME and away.status is Status.DONE:
        return is_closed(away, seen.state, seen.journal)
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
    broke_off = away.status is Status.BEGUN and away.is_agreed and away.is_overtaken(seen.state)
    if away.wish.mode is Mode.HOME and away.status is not Status.ROLLING_BACK and not broke_off:
        return _returning(seen, away)
    back_out = _back_out(away)
    stage, when, success = Stage.FAILED_OVER, "", _TAKEN_BACK
    if away.status is Status.BEGUN:
        stage, what, command = Stage.FAILING_OVER, "has begun and isn't finished", away.wish.command
        success = "`offsets read back as planned`, exit code 0"
        if broke_off:
            what, command = "broke off while it moved groups, and the mirror has gone on since", back_out
            success = _TAKEN_BACK
    elif away.status is Status.ROLLING_BACK:
        stage, what, command = Stage.ROLLING_BACK, "is being rolled back, and that isn't finished", back_out
    elif seen.state.fence is None:
        what = "is done, and its fence was lifted: a run would mirror again"
        when, success = f"as long as applications are on {names.target}", "`fenced`, exit code 0"
        command = f'causeway fence {flow} --because "failover {away.run}"'
    elif not names.reverse:
        what = f"is done: applications belong on {names.target}; flows.yaml has no reverse flow"
        when, command = f"as long as nobody has written to {names.target}", back_out
    else:
        what = f"is done: applications belong on {names.target}"
        when, command = _once_back(seen), f"causeway failback {flow} --resume"
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


def _returning(seen: Seen, away: FailoverRun) -> Next:
    """Asked of a flow that mirrors back under names of its own: its groups return for the other one."""
    names = seen.names
    return Next(
        flow=names.flow,
        stage=Stage.COMING_HOME,
        what=f"failover {away.run} returns the groups to {names.target} for the failback of "
        f"{names.reverse or 'the other flow'}, and that isn't completed",
        command=f"causeway failback {names.reverse} --home"
        if names.reverse
        else f"causeway status {names.flow}",
        success=_ALL_IS_HOME if names.reverse else "who has fenced it; exit code 0",
        since_ms=away.begun_ms,
        by=away.by,
        when=f"with the writers on {names.source} stopped" if names.reverse else "",
    )


def _back_out(run: FailoverRun) -> str:
    return f"causeway failover {run.flow} --rollback {run.run}"


def _once_back(seen: Seen) -> str:
    source = seen.names.source
    if seen.source_is_silent:
        return f"once {source} is back{_silent(seen)}"
    return f"when applications are to return: {source} answers"


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
            what=f"failback {back.run} is being completed by failover {coming.run}, which is {coming.status}",
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
    leads = f"{back.reverse} mirrors {names.target} back to {names.source}"
    if seen.reverse_state is not None and seen.reverse_state.running is None:
        run = f"`causeway run {back.reverse} --until-caught-up`"
        ran = _ran_since(seen.reverse_state, back)
        leads += (
            f"; its last run has ended: while its lag is large, repeat {run}"
            if ran
            else f"; first run it: {run}"
        )
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
        what=f"failback {back.run} was being completed, and that was rolled back: groups are on "
        f"{names.target}, and nothing mirrors: {back.reverse} still stands by, and {back.flow} rests",
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
        what=f"failback {back.run} was completed, and that was rolled back: groups are on "
        f"{seen.names.target}",
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
    found = in_the_way(seen)
    if found is not None:
        return found
    if back is not None and not _ran_since(state, back):
        return _not_running(seen, back)
    return mirror_runs(seen)


def _back_home_but_shut(seen: Seen, back: FailbackRun) -> Next:
    return Next(
        flow=seen.names.flow,
        stage=Stage.COMING_HOME,
        what=f"failback {back.run} is completed, and the flow isn't open again yet",
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


def _ran_since(state: FlowState, back: FailbackRun) -> bool:
    return state.running is not None or (state.run is not None and state.run.since_ms > back.at_ms)


def _not_running(seen: Seen, back: FailbackRun) -> Next:
    flow = seen.names.flow
    return Next(
        flow=flow,
        stage=Stage.HOME_NOT_RUNNING,
        what=f"failback {back.run} is home, and nothing mirrors since",
        command=f"causeway run {flow}",
        success=RAN,
        when="or start its scheduler again, not both (in Airflow: unpause its DAG); this line stays until "
        "its first run has begun",
        since_ms=back.at_ms,
        by=back.by,
    )
