"""`causeway drill FLOW`: a rehearsal on clones; `--history` shows those that were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from causeway.cli.request import Request, opened, who
from causeway.core.kernel.plurals import counted
from causeway.core.kernel.timestamps import rfc3339
from causeway.render.outcome import Outcome
from causeway.render.tables import table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from causeway.core.failover.drill_run import DrillRun

NOT_AS_PLANNED = 1
_HEADERS = ("AT", "GROUPS", "OFFSETS", "AS PLANNED", "READ", "RTO s", "RPO s", "LOST", "READ AGAIN")


def add_drill(add: Any) -> None:
    drill = add("drill", drill_flow, "rehearse a failover on clones of the groups; mirroring continues")
    drill.add_argument("--history", action="store_true", help="show earlier drills; rehearse nothing")
    drill.add_argument("--svg", metavar="FILE", help="plot RTO and RPO of all drills into this file")


def drill_flow(request: Request) -> Outcome:
    from causeway.usecases.failover.drill import drill, history
    from causeway.usecases.report_files import asked_path

    svg = asked_path("--svg", request.options.svg)
    deployment, flow, source, target = opened(request)
    done = None
    if not request.options.history:
        done = drill(flow, source, target, deployment.groups[flow.name], by=who(), say=request.progress)
    runs = history(flow, target)
    if svg is not None:
        _keep_plot(svg, runs)
    payload = {"flow": flow.name, "drills": [{"run": run.run, **run.as_dict()} for run in runs]}
    text = (
        f"{table(_HEADERS, [_drill_row(run) for run in runs])}\n\n{flow.name}: {counted(len(runs), 'drill')}"
    )
    wrong = "" if done is None else done.wrong
    if wrong:
        text += f"\n{flow.name}: {wrong}"
    return Outcome(payload=payload, text=text, exit_code=NOT_AS_PLANNED if wrong else 0)


def _drill_row(run: DrillRun) -> tuple[object, ...]:
    return (
        rfc3339(run.at_ms),
        run.groups,
        run.offsets,
        run.as_planned,
        run.read,
        f"{run.rto_ms / 1000:.1f}",
        run.rpo_seconds,
        run.lost_records,
        run.rereads,
    )


def _keep_plot(path: Path, runs: Sequence[DrillRun]) -> None:
    from causeway.render.drill_svg import plot
    from causeway.usecases.report_files import write_file

    write_file(plot(runs), path, "--svg")
