"""Of a flow that no failover and no failback holds: what is in its way, or what keeps its mirror well."""

from __future__ import annotations

from collections.abc import Callable

from causeway.core.episode.stage import Next, Seen, Stage
from causeway.core.failover.drill_run import at_work
from causeway.core.kernel.plurals import counted
from causeway.core.kernel.timestamps import how_long_ago, rfc3339
from causeway.core.state.repair_commands import lift_command, typed_in

RAN = "`caught up` or `time over`, exit code 0"
_RUNS_AGAIN_MS = 3_600_000
"""A run that ended less than this ago has a scheduler, as far as anybody can see: it starts the next one."""
_DRILLED_LATELY_MS = 30 * 24 * 3_600_000


def in_the_way(seen: Seen) -> Next | None:
    """None: nothing is."""
    rules: tuple[Callable[[Seen], Next | None], ...] = (_drill, _fenced_topics, _parked, _new)
    return next((found for rule in rules if (found := rule(seen)) is not None), None)


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


def _fenced_topics(seen: Seen) -> Next | None:
    """The newest fence that closes some topics; the others go on."""
    flow, standing = seen.names.flow, seen.state.standing
    fence = next((each for each in reversed(standing) if not each.stops_the_flow), None)
    if fence is None:
        return None
    return Next(
        flow=flow,
        stage=Stage.PARKED,
        what=f"fenced {fence}; the other topics go on",
        command=lift_command(flow, standing, fence),
        success="`lifted`, exit code 0; a run that works then ends, and the next one copies them",
        since_ms=fence.since_ms,
        by=fence.by,
        when="only if that command is dead: it lifts its fence itself"
        if fence.is_at_work
        else f"once {fence.by} says that they may be copied",
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


def mirror_runs(seen: Seen) -> Next:
    """Nothing is in its way: somebody may have to run it, or to rehearse a failover."""
    names, flow, drilled_ms = seen.names, seen.names.flow, _last_drill_ms(seen)
    last = "it was never rehearsed" if not drilled_ms else f"the last drill was at {rfc3339(drilled_ms)}"
    when, what = "", f"{_whose_run(seen)}; {last}"
    if seen.source_is_silent:
        when, what = f"if {names.source} is lost", f"{what}; {names.source} doesn't answer now"
        command, success = f"causeway failover {flow} --at latest --dry-run", "a sheet; nothing is written"
    elif not _is_run_by_somebody(seen):
        when, command, success = "unless a scheduler does", f"causeway run {flow}", RAN
    elif not drilled_ms or seen.now_ms - drilled_ms > _DRILLED_LATELY_MS:
        command, success = f"causeway drill {flow}", "as many AS PLANNED as OFFSETS, exit code 0"
    else:
        command = success = ""
    return Next(flow=flow, stage=Stage.MIRRORING, what=what, command=command, success=success, when=when)


def _is_run_by_somebody(seen: Seen) -> bool:
    return seen.state.running is not None or seen.now_ms - seen.state.last_sign_ms < _RUNS_AGAIN_MS


def _whose_run(seen: Seen) -> str:
    run, holds = seen.state.run, seen.state.running
    if holds is not None:
        return f"held by {holds.holder} since {rfc3339(holds.since_ms)}"
    if run is None:
        return "nobody holds it now"
    ended = how_long_ago(seen.state.last_sign_ms, seen.now_ms)
    return f"nobody holds it now; its last run ended {ended}, by {run.holder}"


def _last_drill_ms(seen: Seen) -> int:
    """0: never."""
    drills = seen.journal.drills.values()
    return max((d.at_ms for d in drills if d.flow == seen.names.flow and d.state == "done"), default=0)
