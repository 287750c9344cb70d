"""The exit codes of `causeway`, in words: `causeway --help` and docs/reference/exit-codes.md show them.

The numbers are given where an outcome is known: by the classes of core/kernel/errors.py, and by the verbs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExitCode:
    means: str
    do: str
    """What the operator does then."""


EXIT_CODES: Mapping[int, ExitCode] = {
    0: ExitCode("done", "Nothing."),
    1: ExitCode(
        "a check found something: a difference, an offset without translation, a drill not as planned",
        "Read what the command prints, and find out why before you go on.",
    ),
    2: ExitCode(
        "an option, a name, flows.yaml, a connection or a plan is wrong",
        "The message says what to write instead.",
    ),
    3: ExitCode(
        "a cluster can't be used: unreachable, wrong password, a missing right, too old",
        "Repair what the message names, then run the same command again.",
    ),
    4: ExitCode(
        "another run has the flow, or a fence stops it",
        "`causeway status FLOW` names who runs it and who raised each fence. Ask them before you "
        "take over or lift.",
    ),
    5: ExitCode(
        "something was left out: parked partitions, lanes in doubt, or groups; the rest is done",
        "`causeway status FLOW` shows each parked partition with the command that repairs it. "
        "`causeway groups FLOW` shows the groups.",
    ),
    6: ExitCode(
        "the clusters contradict the protocol, or Causeway has a defect: stop and look",
        "**Don't repeat the command.** Read the message: it may name `causeway recover`, a newer version, or "
        "lines to report.",
    ),
    130: ExitCode(
        "interrupted by Ctrl-C or SIGTERM",
        "The last line says what was done. Run the same command again, or `causeway next FLOW` during a "
        "failover or failback.",
    ),
}

GENERAL = frozenset({0, 2, 3, 6, 130})
"""Of every verb: it says nothing more about these, unless they mean something of its own there."""
