"""`causeway recover FLOW`: go on after the flow's own topics were lost or written to by others."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from causeway.cli.request import Request, opened, reason_given, who
from causeway.core.kernel.plurals import counted
from causeway.core.state.repair_commands import next_command
from causeway.render.outcome import Outcome

if TYPE_CHECKING:
    from causeway.usecases.repair.recover import Recovered


def add_recover(add: Any) -> None:
    recovering = add(
        "recover",
        recover,
        "fence a flow whose own topic is lost, or skip an unreadable record",
    )
    recovering.add_argument(
        "--because", metavar="TEXT", required=True, help="the reason; Causeway keeps it and shows it"
    )
    recovering.add_argument(
        "--record",
        metavar="OFFSET",
        help="skip this record, as `causeway doctor` names it: OFFSET, or TOPIC-PARTITION:OFFSET",
    )


def recover(request: Request) -> Outcome:
    from causeway.usecases.repair.recover import recover_flow
    from causeway.usecases.repair.set_positions import Reason

    because = reason_given(request.options.because)
    _, flow, _, target = opened(request)
    done = recover_flow(flow, target, request.options.record, Reason(by=who(), because=because))
    lines = [_line(done), *(f"{flow.name}: {note}" for note in done.notes)]
    if done.changed and not done.record:
        lines.append(f"{flow.name}: next: {_next(done)}")
    return Outcome(payload=asdict(done), text="\n".join(lines))


def _next(done: Recovered) -> str:
    if done.rests:
        return next_command(done.flow)
    return f'`causeway lift {done.flow} --because "..."`, once it may write again'


def _line(done: Recovered) -> str:
    if done.record:
        how = "stepped over from now on" if done.changed else "was stepped over already; nothing to do"
        return (
            f"{done.flow}: record {done.record} is {how}"
            if done.changed
            else f"{done.flow}: record {done.record} {how}"
        )
    if not done.changed:
        again = f"; {counted(done.lanes_claimed, 'lane')} claimed again" if done.lanes_claimed else ""
        return f"{done.flow}: nothing is lost that could be recovered{again}"
    return (
        f"{done.flow}: fenced (generation {done.generation}); {counted(done.lanes_claimed, 'lane')} claimed; "
        f"{counted(len(done.topics), 'topic')} found again"
    )
