"""`causeway doctor FLOW`: both clusters of a flow, check by check, with a remedy for whatever isn't right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from causeway.entrypoints.flow_verbs import opened
from causeway.entrypoints.tables import one_line, table
from causeway.entrypoints.verbs import Outcome, Request

if TYPE_CHECKING:
    from causeway.core.diagnosis.finding import Diagnosis


def add_doctor(add: Any) -> None:
    doctor = add(
        "doctor", doctor_flow, "examine both clusters of a flow; rehearse a transaction on the target"
    )
    doctor.add_argument(
        "--read-only", action="store_true", help="write nothing: no rehearsal on a scratch topic"
    )


def doctor_flow(request: Request) -> Outcome:
    from causeway.flows.doctor.examine import examine

    deployment, flow, source, target = opened(request)
    diagnosis = examine(
        flow,
        deployment.flows.values(),
        source,
        target,
        read_only=request.options.read_only,
        say=request.progress,
        groups=deployment.groups[flow.name],
    )
    return Outcome(payload=diagnosis.as_dict(), text=_text(diagnosis), exit_code=diagnosis.exit_code)


def _text(diagnosis: Diagnosis) -> str:
    """A table of all checks; what to do about those that aren't PASSED below it, in full."""
    from causeway.core.diagnosis.finding import Result

    rows = [(str(f.result), f.check, f.where, f.finding) for f in diagnosis.findings]
    lines = [table(("RESULT", "CHECK", "WHERE", "FINDING"), rows), ""]
    lines += [
        one_line(f"{f.result} {f.check} of {f.where}: {f.remedy}") for f in diagnosis.findings if f.remedy
    ]
    counts = ", ".join(f"{diagnosis.count(result)} {result}" for result in Result)
    return "\n".join([*lines, f"{diagnosis.flow}: {counts}"])
