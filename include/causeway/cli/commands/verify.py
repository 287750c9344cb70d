"""`causeway verify FLOW`: compare source and target, record by record, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from causeway.cli.request import (
    Request,
    opened,
)
from causeway.core.kernel.errors import BadInput
from causeway.core.kernel.plurals import counted
from causeway.render.outcome import Outcome

if TYPE_CHECKING:
    pass


def verify(request: Request) -> Outcome:
    from causeway.render.verify import verdict_text, verdicts
    from causeway.usecases.verify.flow import verify_mirror

    _, flow, source, target = opened(request)
    last: list[int] = [0]

    def tell(progress: object) -> None:
        from causeway.usecases.verify.partitions import VerifyProgress

        assert isinstance(progress, VerifyProgress)
        if progress.partitions_done > last[0]:
            last[0] = progress.partitions_done
            request.progress(
                f"{flow.name}: {progress.partitions_done} of "
                f"{counted(progress.partitions_total, 'partition')}, "
                f"{counted(progress.records_equal, 'record')} equal"
            )

    whole = request.options.all
    if whole and flow.failback_of:
        raise BadInput(
            f"--all of {flow.name}",
            rule=f"can't be used with the reverse flow of {flow.failback_of}: exports would count as extra",
            remedy=f"`causeway verify {flow.failback_of} --all` compares both directions",
        )
    report = verify_mirror(flow, source, target, on_progress=tell, across_failbacks=whole)
    return Outcome(
        payload=verdicts(flow.name, report),
        text=verdict_text(flow.name, report, forward=flow.failback_of),
        exit_code=report.exit_code,
    )
