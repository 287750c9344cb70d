"""What was asked of a command, and what its words mean: each command reads it, calls one use case, shapes the
answer.

Everything that costs time is imported inside a verb, so that `causeway --help` is instant and a verb needs
only what it uses. A verb returns an Outcome and prints nothing but progress.
"""

from __future__ import annotations

import getpass
import os
import socket
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from causeway.core.kernel.errors import BadInput
from causeway.render.outcome import Outcome

if TYPE_CHECKING:
    from causeway.config.flows_file.deployment import Deployment
    from causeway.core.kernel.endpoint import ClusterEndpoint
    from causeway.core.model.flow import Flow

_LONGEST_REASON = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked, and from where. `progress` always shows; `say` only with --verbose."""

    options: Namespace
    environ: Mapping[str, str] = field(repr=False)
    directory: Path
    progress: Callable[[str], None]
    say: Callable[[str], None]


Verb = Callable[[Request], Outcome]


def deployment_of(request: Request) -> Deployment:
    from causeway.cli.locate import find_flows_file, shown_path
    from causeway.config.flows_file.load import load_flows

    path = find_flows_file(request.options.file, request.environ, request.directory)
    shown = shown_path(path, request.directory)
    request.say(f"reading {shown}")
    return load_flows(path, shown_as=shown)


def run_for_seconds(text: str | None) -> float | None:
    """:raises BadInput: not a duration of at least a second."""
    from causeway.config.values.refusal import Refusal
    from causeway.config.values.units import parse_duration_seconds

    if text is None:
        return None
    try:
        seconds = parse_duration_seconds(text)
    except Refusal as refusal:
        raise BadInput("--run-for", value=text, rule=refusal.rule, remedy=refusal.remedy) from None
    if not 1 <= seconds <= 86_400:
        raise BadInput("--run-for", value=text, rule="must be 1s to 24h", remedy="write 10m")
    return seconds


def reason_given(text: str) -> str:
    """Who comes after reads it in `status`, perhaps in the middle of a night.

    :raises BadInput: nothing that a person could read.
    """
    reason = text.strip()
    if not reason or len(reason) > _LONGEST_REASON or not reason.isprintable():
        rule = f"must be 1 to {_LONGEST_REASON} characters on one line"
        raise BadInput(
            "--because", value=text[:40], rule=rule, remedy='write --because "moving to nyc, ticket 123"'
        )
    return reason


LARGEST_OFFSET = (1 << 63) - 1


LARGEST_PARTITION = (1 << 31) - 1


def topics_named(request: Request) -> frozenset[str] | None:
    """None: all of the flow's. `plan` has no such option, `run --dry-run` does."""
    given = getattr(request.options, "topics", None)
    return None if given is None else frozenset(names_in(given))


def names_in(given: str | None) -> tuple[str, ...]:
    names = tuple(name.strip() for name in (given or "").split(",") if name.strip())
    if given is not None and not names:
        raise BadInput("--topics", value=given, rule="must name one topic or more", remedy="a,b")
    return names


def opened(
    request: Request, name: str | None = None
) -> tuple[Deployment, Flow, ClusterEndpoint, ClusterEndpoint]:
    """The flow (the one that was asked for) and its clusters' endpoints; nothing has been connected yet."""
    from causeway.cli.locate import cluster_endpoint

    deployment = deployment_of(request)
    flow = deployment.flow(name or request.options.flow)
    source, target = (
        cluster_endpoint(deployment, alias, request.environ, request.directory, request.say)
        for alias in (flow.source, flow.target)
    )
    return deployment, flow, source, target


def who() -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container may run as a number that has no name
        user = f"uid {os.getuid()}"
    return f"{user}@{socket.gethostname()}"


def number(name: str, text: str, *, most: int = LARGEST_OFFSET) -> int:
    """:raises BadInput: no number that Kafka could have."""
    digits = text.lstrip("0") or text[:1]
    is_number = text.isascii() and text.isdigit()
    if not is_number or len(digits) > len(str(most)) or int(digits) > most:
        rule = f"must be a whole number from 0 to {most}"
        raise BadInput(name, value=text[:40], rule=rule, remedy="write it in digits")
    return int(digits)


def partition_number(text: str) -> int:
    return number("PARTITION", text, most=LARGEST_PARTITION)
