"""`causeway doctor FLOW`: both clusters of a flow, check by check, with a remedy for whatever isn't right."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from causeway.cli.request import Request, opened
from causeway.core.kernel.errors import UnknownName
from causeway.render.outcome import Outcome
from causeway.render.tables import one_line, table

if TYPE_CHECKING:
    from causeway.core.doctor.finding import Diagnosis
    from causeway.core.model.flow import Flow
    from causeway.core.takeover.mm2_mirror import MirrorMakerPlaces


def add_doctor(add: Any) -> None:
    doctor = add(
        "doctor", doctor_flow, "check both clusters of a flow, and rehearse a transaction on the target"
    )
    doctor.add_argument(
        "--read-only", action="store_true", help="write nothing: no rehearsal on a scratch topic"
    )
    doctor.add_argument(
        "--mm2",
        metavar="PROPERTIES",
        help="also check the rights for a takeover from this file's MirrorMaker 2",
    )


def doctor_flow(request: Request) -> Outcome:
    from causeway.usecases.doctor.examine import examine

    deployment, flow, source, target = opened(request)
    diagnosis = examine(
        flow,
        deployment.flows.values(),
        source,
        target,
        read_only=request.options.read_only,
        say=request.progress,
        groups=deployment.groups[flow.name],
        taken_over_from=_mirror_maker(request, flow),
    )
    return Outcome(
        payload=diagnosis.as_dict(), text=_diagnosis_text(diagnosis), exit_code=diagnosis.exit_code
    )


def _mirror_maker(request: Request, flow: Flow) -> MirrorMakerPlaces | None:
    from causeway.config.mm2_import.importer import read_mm2

    name = request.options.mm2
    if name is None:
        return None
    for theirs in read_mm2(Path(name), shown_as=name).flows:
        if (theirs.source, theirs.target) == (flow.source, flow.target):
            return theirs.places
    raise UnknownName(
        "flow",
        value=f"{flow.source}->{flow.target}",
        rule=f"isn't one of {name}",
        remedy="name the file of the MirrorMaker 2 that this flow takes over from",
    )


def _diagnosis_text(diagnosis: Diagnosis) -> str:
    """A table of all checks; what to do about those that aren't PASSED below it, in full."""
    from causeway.core.doctor.finding import Result

    rows = [(str(f.result), f.check, f.where, f.finding) for f in diagnosis.findings]
    lines = [table(("RESULT", "CHECK", "WHERE", "FINDING"), rows), ""]
    lines += [
        one_line(f"{f.result} {f.check} of {f.where}: {f.remedy}") for f in diagnosis.findings if f.remedy
    ]
    counts = ", ".join(f"{diagnosis.count(result)} {result}" for result in Result)
    return "\n".join([*lines, f"{diagnosis.flow}: {counts}"])
