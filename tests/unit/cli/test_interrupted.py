"""What the last line of an interrupted verb says."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from causeway import interruption
from causeway.cli.interrupted import last_line, nothing_done_yet
from causeway.cli.parser import parser
from causeway.core.failback.divergence import Step
from causeway.core.journal.journal import Status
from causeway.usecases.failback import complete
from causeway.usecases.failback.complete_again import Earlier
from causeway.usecases.failover import execute
from causeway.usecases.failover.failover import Failover
from causeway.usecases.failover.verify import Verified


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("verify f", "nothing was written"),
        ("groups f", "nothing was written"),
        ("groups f --sync", "what was committed stays; the same command does the rest"),
        ("sync f --dry-run", "nothing was written"),
        ("failover f --at latest --dry-run", "nothing was written"),
        ("failover f --at latest", "`causeway next f` shows what was done, and how to go on"),
        ("doctor f", "nothing stays on the clusters"),
        ("run f", "what was committed stays, and the next run goes on from there"),
        ("fence f --because x", "`causeway status f` shows what was done; the same command goes on with it"),
    ],
)
def test_each_verb_says_whether_anything_was_done(typed: str, said: str) -> None:
    options = parser().parse_args(typed.split())
    assert last_line(KeyboardInterrupt(), options) == f"causeway: interrupted; {said}"


def test_what_the_use_case_knows_is_reported_instead() -> None:
    options = parser().parse_args(["failover", "f", "--at", "latest"])
    assert last_line(KeyboardInterrupt("a fence stands"), options) == "causeway: interrupted; a fence stands"


def test_before_a_verb_is_known_nothing_was_done() -> None:
    assert last_line(KeyboardInterrupt(), None) == "causeway: interrupted; nothing was done"


@pytest.mark.parametrize("typed", ["heartbeat f", "lab up", "import-mm2 x.properties", "failback f --home"])
def test_no_verb_that_writes_ends_without_a_word_of_what_was_done(typed: str) -> None:
    said = last_line(KeyboardInterrupt(), parser().parse_args(typed.split()))
    assert said.startswith("causeway: interrupted; ")
    assert "nothing" not in said


_STRUCK_WHILE_IT_SPEAKS = """
import os, signal, sys, time
from causeway import interruption, __main__
from causeway.core.kernel.errors import BadInput
from causeway.cli import screen
from causeway.cli.commands import flows
from causeway.cli.request import Outcome

def ends(request):
    if HOW == "answer":
        return Outcome(payload={}, text="groups were moved")
    if HOW == "error":
        raise BadInput("x", rule="groups were moved", remedy="z")
    raise ValueError("groups were moved")

def slowly(say):
    def struck(text):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.3)
        return say(text)
    return struck

HOW = sys.argv.pop()
interruption._LATEST_SECONDS = 0.05
flows.flows = ends
screen.note, screen.answer = slowly(screen.note), slowly(screen.answer)
sys.exit(__main__.main())
"""


@pytest.mark.parametrize(
    ("how", "code", "last"),
    [
        ("answer", 130, "causeway: interrupted when all was done: what is printed holds"),
        ("error", 2, "causeway: error: x: groups were moved; z"),
        ("defect", 6, "causeway: error: a defect of Causeway, not of what you wrote; please report"),
    ],
)
def test_who_asks_while_the_outcome_is_printed_does_not_hear_that_nothing_was_done(
    how: str, code: int, last: str
) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _STRUCK_WHILE_IT_SPEAKS, "flows", how],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "nothing was done" not in ended.stderr
    assert "groups were moved" in ended.stdout + ended.stderr
    assert (ended.returncode, ended.stderr.splitlines()[-1][: len(last)]) == (code, last)


_VERIFIED = Verified(offsets=5, as_planned=5, moved_on=0, sampled=2, at_the_end=0, earlier=())


@pytest.fixture
def struck_while_it_closes(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A failover that was begun, and does all; the signal comes when its connections are closed."""
    run = SimpleNamespace(run="r1", flow="f", by="anna", status=Status.BEGUN, shifts={})

    @contextmanager
    def open_sides(*_: object) -> Iterator[Any]:
        yield SimpleNamespace(network=SimpleNamespace(run=lambda step: asyncio.run(step())))
        raise KeyboardInterrupt

    def finding(found: object) -> Any:
        async def step(*_: object) -> object:
            return found

        return step

    done = execute.FailedOver(run="r1", flow="f", groups=2, moved=5, was_done=False, verified=_VERIFIED)
    monkeypatch.setattr(execute, "open_session", open_sides)
    monkeypatch.setattr(Failover, "find_earlier", finding(run))
    monkeypatch.setattr(execute, "refuse_without_rights", finding(None))
    monkeypatch.setattr(execute, "_finish", finding(done))
    flow: Any = SimpleNamespace(name="f")
    operator: Any = SimpleNamespace(by="anna", say=lambda _: None)
    nothing: Any = None

    def fail_over(home_of: Any = None) -> execute.FailedOver:
        return execute.fail_over(flow, nothing, nothing, nothing, nothing, operator, home_of=home_of)

    return fail_over


def test_a_failover_that_is_done_is_not_reported_as_nothing(struck_while_it_closes: Any) -> None:
    with (
        interruption.listening(),
        pytest.raises(KeyboardInterrupt, match=r"^failover r1 of f is done; `causeway next f` says"),
        nothing_done_yet("no group was moved"),
    ):
        struck_while_it_closes()


def test_groups_that_are_home_are_not_reported_as_nothing(struck_while_it_closes: Any) -> None:
    forward: Any = SimpleNamespace(name="g")
    with (
        interruption.listening(),
        pytest.raises(KeyboardInterrupt, match=r"^the way home of g isn't finished: the same command goes"),
        nothing_done_yet("no group was moved"),
    ):
        struck_while_it_closes(home_of=forward)


def test_what_comes_after_a_homecoming_is_not_reported_as_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    run: Any = SimpleNamespace(step=Step.HOME)
    monkeypatch.setattr(complete, "run_in_target_session", lambda *_: Earlier(run=run))
    monkeypatch.setattr(complete, "run_at_both", lambda *_: None)
    ways: Any = SimpleNamespace(forward=SimpleNamespace(name="g"), old=None, new=None)
    nothing: Any = None

    def protect_again() -> None:
        complete.complete_failback(ways, nothing, nothing)
        raise KeyboardInterrupt

    with (
        interruption.listening(),
        pytest.raises(KeyboardInterrupt, match=r"^groups and positions of g are home; the same command does"),
        nothing_done_yet("no group was moved"),
    ):
        protect_again()


def test_what_is_left_is_forgotten_with_the_command() -> None:
    with interruption.listening():
        interruption.leaves("a fence")
        assert interruption.left() == "a fence"
    with interruption.listening():
        assert interruption.left() == ""
