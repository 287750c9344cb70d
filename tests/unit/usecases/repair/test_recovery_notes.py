"""What the journal tells somebody who has just recovered a flow: whether it may be opened again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from causeway.cli.commands.recover import _next
from causeway.core.failback.divergence import Step
from causeway.core.journal.journal import FailoverRun, Journal, Status
from causeway.core.offsets.lost_log import Evidence
from causeway.usecases.repair.recover import Recovered, notes_of
from tests.support import builders
from tests.support.episodes import COMING, FAILBACK, FAILOVER, HOME, journal

NEWEST = Evidence(generation=7, what="a position")
AGAIN = replace(FAILOVER, run="f2", begun_ms=900)


def said(kept: Journal, name: str = "sf_to_nyc") -> str:
    return " | ".join(notes_of(builders.flow(name), NEWEST, kept))


@pytest.mark.parametrize(
    ("kept", "told"),
    [
        (journal(), ""),
        (journal(FAILOVER), "failover f1 of amy isn't taken back"),
        (journal(replace(FAILOVER, status=Status.ROLLED_BACK)), ""),
        (
            journal(FAILOVER, replace(FAILBACK, step=Step.BEGUN, facts={})),
            "failover f1 of amy isn't taken back",
        ),
        (journal(FAILOVER, FAILBACK), "failback b1 of bob is under way: nyc_to_sf leads"),
        (journal(FAILOVER, HOME), ""),
        (journal(FAILOVER, HOME, AGAIN), "failover f2 of amy isn't taken back"),
    ],
)
def test_only_an_episode_that_is_open_keeps_the_flow_fenced(kept: Journal, told: str) -> None:
    assert told in said(kept)
    assert ("stays fenced until" in said(kept)) == bool(told)


def test_after_a_homecoming_the_flow_back_stays_fenced() -> None:
    """Its journal doesn't know of the failback, and its own fences are lost."""
    came_home: FailoverRun = replace(COMING, flow="nyc_to_sf")
    assert "stays fenced until a failback" in said(journal(came_home), "nyc_to_sf")


def test_no_lift_is_named_for_a_flow_that_rests() -> None:
    done = Recovered(flow="f", changed=True, generation=9)
    assert _next(done).startswith("`causeway lift f ")
    assert _next(replace(done, rests=True)) == "`causeway next f`"
