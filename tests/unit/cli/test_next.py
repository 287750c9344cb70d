"""The two lines of `causeway next`, which end `status` as well."""

from __future__ import annotations

from causeway.cli.commands.next import next_lines
from causeway.core.episode.stage import Next, Stage

IDLE = Next(flow="f", stage=Stage.MIRRORING, what="held by dag", command="", success="")
DRILL = Next(
    flow="f", stage=Stage.MIRRORING, what="held by dag", command="causeway drill f", success="exit code 0"
)


def test_the_last_line_names_the_command_and_how_success_looks() -> None:
    assert next_lines(DRILL) == [
        "f: MIRRORING: held by dag",
        "f: NEXT `causeway drill f`; success: exit code 0",
    ]


def test_where_nothing_has_to_be_done_no_command_is_named() -> None:
    assert next_lines(IDLE)[-1] == "f: NEXT nothing has to be done"
