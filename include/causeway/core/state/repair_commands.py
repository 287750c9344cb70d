"""The exact command that continues where a partition is parked: all that is known is filled in."""

from __future__ import annotations

import re
from collections.abc import Sequence

from causeway.core.kernel.identity import TopicPartition
from causeway.core.state.fences import Fence

_WHY = '--because "..."'


def adopt_remedy(flow: str, source: TopicPartition) -> str:
    command = f"`causeway adopt {flow} {source.topic} {source.partition} OFFSET {_WHY}`"
    return f"{command} once you know where it should go on"


def adopt_command(flow: str, source: TopicPartition, offset: int) -> str:
    return f"`causeway adopt {flow} {source.topic} {source.partition} {offset} {_WHY}`"


def reconcile_remedy(flow: str, source: TopicPartition) -> str:
    command = f"`causeway reconcile {flow} {source.topic} {source.partition} {_WHY}`"
    return f"{command} finds where it stands and goes on"


def restart_remedy(flow: str, source_topic: str) -> str:
    return f"`causeway restart-topic {flow} {source_topic} {_WHY}` begins with the topic again"


def accept_gap_command(flow: str, source: TopicPartition, first: int, end: int) -> str:
    return f"`causeway accept-gap {flow} {source.topic} {source.partition} {first} {end} {_WHY}`"


def lift_command(flow: str, standing: Sequence[Fence], fence: Fence) -> str:
    """As it is typed; a fence is named where there are several."""
    named = "" if len(standing) == 1 else f" --fence {fence.generation}"
    return f"causeway lift {flow}{named} {_WHY}"


def fence_command(flow: str) -> str:
    return f"`causeway fence {flow} {_WHY}`"


def recover_command(flow: str) -> str:
    return f"`causeway recover {flow} {_WHY}`"


def recover_record_command(flow: str, record: int | str) -> str:
    return f"`causeway recover {flow} --record {record} {_WHY}`"


def lift_commands(flow: str, standing: Sequence[Fence]) -> list[str]:
    """One for each of all that stand. What a failover or a failback has raised isn't lifted by hand."""
    return [
        next_command(flow) if fence.is_of_a_run else f"`{lift_command(flow, standing, fence)}`"
        for fence in standing
    ]


def next_command(flow: str) -> str:
    return f"`causeway next {flow}`"


def open_again(flow: str, standing: Sequence[Fence]) -> str:
    """The commands that open a flow that these stop."""
    commands = dict(zip(standing, lift_commands(flow, standing), strict=True))
    stops = [fence for fence in standing if fence.stops_the_flow]
    if any(fence.is_of_a_run for fence in stops):
        return f"{next_command(flow)} says what comes next"
    opens = "opens" if len(stops) == 1 else "open"
    return f"{' and '.join(commands[fence] for fence in stops)} {opens} it again"


def typed_in(remedy: str) -> str:
    """The first command that a remedy names; empty: it names none."""
    found = re.search("`(causeway [^`]+)`", remedy)
    return "" if found is None else found[1]


def not_yet(flow: str, standing: Sequence[Fence]) -> str:
    """Of a flow that somebody has brought to where it could go on; several fences: the first is to be lifted
    first."""
    first = next(fence for fence in standing if fence.stops_the_flow)
    return f"{flow}: NOT YET: fenced {first}, `{lift_command(flow, standing, first)}`"


def fence_lines(flow: str, standing: Sequence[Fence]) -> list[str]:
    """Who raised each, since when and why, and how to lift it."""
    commands = lift_commands(flow, standing)
    return [
        f"fence {fence.generation}, {fence}: {command}"
        for fence, command in zip(standing, commands, strict=True)
    ]
