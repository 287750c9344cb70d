"""`causeway fence FLOW` and `causeway lift FLOW`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from causeway.cli.request import (
    Request,
    names_in,
    number,
    opened,
    reason_given,
    who,
)
from causeway.core.kernel.plurals import counted
from causeway.render.outcome import Outcome

if TYPE_CHECKING:
    from causeway.usecases.run_lock.fence import FenceOutcome


def fence(request: Request) -> Outcome:
    from causeway.usecases.run_lock.fence import fence_flow

    because = reason_given(request.options.because)
    _, flow, _, target = opened(request)
    topics = names_in(request.options.topics)
    done = fence_flow(flow, target, by=who(), because=because, topics=topics)
    text = f"{flow.name}: {_fenced(flow.name, done)}"
    return Outcome(payload=_turned(done), text="\n".join([text, *_beside(flow.name, done)]))


def _beside(name: str, done: FenceOutcome) -> list[str]:
    """The fences of others, which stand as they were."""
    from causeway.core.state.repair_commands import fence_lines

    lines = zip(done.standing, fence_lines(name, done.standing), strict=True)
    return [f"{name}: beside it stands {line}" for fence, line in lines if fence != done.stands]


def _fenced(name: str, done: FenceOutcome) -> str:
    from causeway.core.state.repair_commands import lift_commands

    stands = done.stands
    is_first = done.changed or stands is None
    already = "" if stands is None else f"is fenced already, {stands}; that stays as it was"
    topics = None if stands is None else stands.topics
    what = f"fenced {', '.join(sorted(topics))}" if topics else "fenced"
    commands = dict(zip(done.standing, lift_commands(name, done.standing), strict=True))
    until = commands[stands] if stands is not None else f'`causeway lift {name} --because "..."`'
    return (
        f"{what if is_first else already} (generation {done.generation}); "
        f"{counted(done.lanes_claimed, 'lane')} claimed: nothing can be added"
        f"{' there' if topics else ''} until {until}"
    )


def lift(request: Request) -> Outcome:
    from causeway.core.state.repair_commands import fence_lines
    from causeway.usecases.failback.lift import lift_by_hand

    because = reason_given(request.options.because)
    _, flow, source, target = opened(request)
    wanted = request.options.fence
    chosen = None if wanted is None else number("--fence", wanted)
    done = lift_by_hand(flow, source, target, by=who(), because=because, number=chosen)
    state = "lifted" if done.changed else "no fence stood"
    left = [f"{flow.name}: {line}" for line in fence_lines(flow.name, done.standing)]
    text = f"{flow.name}: {state} (generation {done.generation})" + ("; others stand" if left else "")
    return Outcome(payload=_turned(done), text="\n".join([text, *left]))


def _turned(done: FenceOutcome) -> dict[str, object]:
    from causeway.render.flow_status import fence_as_dict, fence_words

    return {
        "flow": done.flow,
        "fenced": done.fenced,
        "generation": done.generation,
        "lanes_claimed": done.lanes_claimed,
        "changed": done.changed,
        "fence": fence_words(done.stands),
        "fences": [fence_as_dict(fence) for fence in done.standing],
    }
