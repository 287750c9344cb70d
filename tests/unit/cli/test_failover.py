"""`causeway failover` as it is typed: what is refused before any cluster is asked, the question, the page."""

from __future__ import annotations

import io
import shlex
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from causeway.cli.commands import failover
from causeway.cli.commands import next as commands_next
from causeway.cli.commands.failover import _wish, ask, failed_over, failover_flow, plan_given
from causeway.cli.commands.next import Look
from causeway.cli.parser import parser
from causeway.cli.request import Request
from causeway.core.episode.stage import Next, Stage
from causeway.core.failover.impact_sheet import Loss, Sheet
from causeway.core.failover.plan import FailoverPlan, LeftAlone, Move
from causeway.core.failover.request import FailoverRequest, Mode
from causeway.core.failover.start_offset import Answer, Reason, StartOffset
from causeway.core.kernel.errors import BadInput
from causeway.core.kernel.estimate import at_least, exact, unknown
from causeway.core.kernel.identity import TargetOffset, TopicPartition
from causeway.render.failover_html import page
from causeway.render.failover_text import sheet_text
from causeway.usecases.failover.execute import FailedOver
from causeway.usecases.failover.verify import Verified
from tests.support.flows_yaml import ONE_FLOW

TP = TopicPartition("sf.orders", 0)
RequestOf = Callable[..., Request]


@pytest.fixture
def request_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RequestOf:
    (tmp_path / "flows.yaml").write_text(ONE_FLOW)

    def make(*arguments: str) -> Request:
        options: Namespace = parser().parse_args(
            ["failover", "sf_to_nyc", *arguments, "--file", str(tmp_path / "flows.yaml")]
        )
        return Request(
            options=options, environ={}, directory=tmp_path, progress=lambda _: None, say=lambda _: None
        )

    return make


def test_what_was_typed_becomes_a_wish(request_of: RequestOf) -> None:
    given = ("--at", "2025-11-18T04:03:00Z", "--safety", "30s", "--groups", "billing", "audit.*")
    wish = _wish(request_of(*given))
    assert wish.at_ms == 1_763_438_580_000
    assert wish.moment_ms == wish.at_ms - 30_000
    assert wish.groups == ("billing", "audit.*")
    assert _wish(request_of("--at", "latest")).at_ms is None
    planned = _wish(request_of("--planned"))
    assert (planned.at_ms, planned.is_planned) == (None, True)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "required"),
        (["--at", "2025-11-18T04:03:00"], "zone"),
        (["--at", "1763438580"], "no unit"),
        (["--at", "latest", "--safety", "30s"], "latest is each group's own place"),
        (["--at", "2025-11-18T04:03:00Z", "--safety", "30"], "--safety"),
        (["--at", "latest", "--groups", "a("], "--groups"),
        (["--at", "latest", "--active", "kill"], "active"),
        (["--at", "latest", "--rollback", "x"], "not allowed"),
        (["--at", "latest", "--planned"], "not allowed"),
        (["--planned", "--safety", "30s"], "latest is each group's own place"),
        (["--at", "latest", "--topics", "b["], "--topics"),
        (["--at", "2025-11-18T04:03:00.0000000001Z"], "--at"),
        (["--at", ""], "--at"),
    ],
)
def test_what_is_refused_before_any_cluster_is_asked(
    request_of: RequestOf, arguments: list[str], why: str
) -> None:
    with pytest.raises(BadInput) as refused:
        _wish(request_of(*arguments))
    assert why in str(refused.value)


@pytest.mark.parametrize("typed", ["", "y\n", "yes\n", "nyc_to_sf\n"])
def test_only_the_flows_name_is_a_yes(
    request_of: RequestOf, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    with pytest.raises(BadInput, match="nothing was done"):
        ask(request_of("--at", "latest"), "sf_to_nyc", "fail over")
    monkeypatch.setattr("sys.stdin", io.StringIO("sf_to_nyc\n"))
    ask(request_of("--at", "latest"), "sf_to_nyc", "fail over")
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    ask(request_of("--at", "latest", "--yes"), "sf_to_nyc", "fail over")


def test_each_time_that_groups_are_named_counts(request_of: RequestOf) -> None:
    given = ("--at", "latest", "--groups", "a", "b", "--groups", "c", "--topics", "t", "--topics", "u")
    wish = _wish(request_of(*given))
    assert (wish.groups, wish.topics) == (("a", "b", "c"), ("t", "u"))
    assert _wish(request_of("--at", "latest")).groups == ()


@pytest.mark.parametrize(
    "given",
    [
        ("--at", "latest"),
        ("--planned",),
        ("--at", "2025-11-18T04:03:00.25Z", "--safety", "1500ms", "--clamp", "earliest"),
        ("--at", "latest", "--groups", "-dash", "team 7", "it's", "--active", "leave", "--topics", "a.*"),
    ],
)
def test_what_somebody_has_begun_is_reported_as_it_is_typed(
    request_of: RequestOf, given: tuple[str, ...]
) -> None:
    if "-dash" in given:
        given = (*given[:2], "--groups=-dash", "--groups", "team 7", "it's", *given[6:])
    wish = _wish(request_of(*given))
    _, verb, flow, *again = shlex.split(wish.command)
    assert (verb, flow) == ("failover", "sf_to_nyc")
    assert _wish(request_of(*again)) == wish


@pytest.mark.parametrize("closed", [None, io.TextIOWrapper(io.BytesIO(b"\xff\xfe\n"), encoding="utf-8")])
def test_nobody_there_to_type_and_no_text_are_no_yes(
    request_of: RequestOf, monkeypatch: pytest.MonkeyPatch, closed: object
) -> None:
    monkeypatch.setattr("sys.stdin", closed)
    with pytest.raises(BadInput, match="nothing was done"):
        ask(request_of("--at", "latest"), "sf_to_nyc", "fail over")


@pytest.mark.parametrize("still", ["0s", "999ms", "5", "61m", "999999999999d"])
def test_that_nobody_writes_isnt_seen_in_no_time(request_of: RequestOf, still: str) -> None:
    with pytest.raises(BadInput, match=f"--still = {still}: must be"):
        failover_flow(request_of("--planned", "--still", still))


def test_nobody_steps_back_before_kafkas_time_begins(request_of: RequestOf) -> None:
    with pytest.raises(BadInput, match="--safety = 31s: steps back before 1970"):
        _wish(request_of("--at", "1970-01-01T00:00:30Z", "--safety", "31s"))
    assert _wish(request_of("--at", "1970-01-01T00:00:30Z", "--safety", "30s")).moment_ms == 0


def test_a_plan_that_is_empty_agrees_to_nothing(request_of: RequestOf) -> None:
    with pytest.raises(BadInput, match=r"--plan = \(empty\)"):
        plan_given(request_of("--at", "latest", "--plan", ""))
    assert plan_given(request_of("--at", "latest", "--plan", "0123 ")) == "0123"
    assert plan_given(request_of("--at", "latest")) == ""


@pytest.mark.parametrize(
    "besides", [("--dry-run",), ("--groups", "a"), ("--topics", "t"), ("--plan", "x"), ("--safety", "1s")]
)
def test_a_rollback_takes_all_back_and_says_so_to_who_expects_less(
    request_of: RequestOf, besides: tuple[str, ...]
) -> None:
    with pytest.raises(BadInput, match=f"{besides[0]}: has no meaning beside --rollback"):
        failover_flow(request_of("--rollback", "r1", "--yes", *besides))


def moved(sheet: Sheet | None, groups: int, *left: str) -> FailedOver:
    found = Verified(offsets=groups, as_planned=groups, moved_on=0, sampled=0, at_the_end=0, earlier=())
    return FailedOver(
        run="r1",
        flow="sf_to_nyc",
        groups=groups,
        moved=groups,
        was_done=False,
        verified=found,
        left_alone=left,
        sheet=sheet,
    )


@pytest.mark.parametrize(
    ("stage", "is_named"),
    [
        (Stage.FAILED_OVER, True),
        (Stage.HARMED, True),
        (None, True),
        (Stage.FAILING_BACK, False),
        (Stage.RESTING, False),
        (Stage.FENCED, False),
    ],
)
def test_the_way_back_is_named_only_as_long_as_it_is_open(
    request_of: RequestOf, monkeypatch: pytest.MonkeyPatch, stage: Stage | None, is_named: bool
) -> None:
    """The same command again, after a failback has begun: nothing is left to do, and nothing to undo."""
    step = None
    if stage is not None:
        step = Next(flow="sf_to_nyc", stage=stage, what="w", command="c", success="s")
    monkeypatch.setattr(failover, "_fail_over", lambda *_: replace(moved(None, 1), was_done=True))
    monkeypatch.setattr(commands_next, "look_next", lambda _: Look("sf_to_nyc", step))
    text = failover_flow(request_of("--at", "latest")).text
    assert "was done already" in text
    assert ("--rollback r1" in text) is is_named


def test_a_name_cant_write_to_the_terminal_of_who_reads_what_was_left_alone() -> None:
    told = failed_over(moved(None, 1, *(f"\x1b[2J\ncauseway: done {n}" for n in range(50))))
    assert told.exit_code == 5
    assert "\x1b" not in told.text
    assert not [line for line in told.text.splitlines() if line.startswith("causeway: done")]
    assert "40 of 50 shown, 10 more left alone: --json has them all" in told.text


def test_what_slipped_in_and_was_put_right_is_reported_and_is_no_failure() -> None:
    done = replace(moved(None, 1), slipped=("billing on sf.orders-0: somebody\ncommitted 900",))
    told = failed_over(done)
    assert (told.exit_code, told.payload["slipped"]) == (0, list(done.slipped))
    (line,) = [line for line in told.text.splitlines() if line.startswith("PUT RIGHT")]
    assert "billing on sf.orders-0: somebody" in line


def test_a_failover_that_knows_no_group_isnt_done(sheet: Sheet) -> None:
    plans = [replace(sheet.plan, moves=(), left_alone=())]
    plans.append(replace(plans[0], wish=FailoverRequest(flow="sf_to_nyc", at_ms=None, mode=Mode.PLANNED)))
    codes = [failed_over(moved(replace(sheet, plan=plan), 0)).exit_code for plan in plans]
    assert codes == [5, 0], "a planned switch may be about writers alone"
    gone = replace(sheet, plan=replace(sheet.plan, left_alone=()), notes=("sf.orders isn't moved to: gone",))
    told = failed_over(moved(gone, 1))
    assert (told.exit_code, "LEFT ALONE sf.orders isn't moved to" in told.text) == (5, True)


@pytest.fixture
def sheet() -> Sheet:
    move = Move(
        group="<script>alert(1)</script>",
        target=TP,
        before=None,
        after=TargetOffset(41),
        reasons=(str(Reason.MARKER),),
        rereads=at_least(7, "it may have read on"),
        skips=exact(0),
    )
    plan = FailoverPlan(
        wish=FailoverRequest(flow="sf_to_nyc", at_ms=1_763_438_580_000, safety_ms=30_000),
        moves=(move,),
        left_alone=(LeftAlone(group="audit", target=None, why="it has members"),),
        topic_ids={"sf.orders": UUID(int=2)},
    )
    gone = unknown("the source can't be asked: \x1b[31mgone")
    loss = Loss(
        source=TopicPartition("orders", 0),
        target=TP,
        records=gone,
        size_bytes=gone,
        seconds=gone,
        mirrored_until_ms=1_763_438_579_000,
    )
    return Sheet(
        flow="sf_to_nyc",
        made_at_ms=1_763_438_600_000,
        source_silent="\x1b[31mgone",
        fenced="",
        losses=(loss,),
        plan=plan,
        places={
            TP: StartOffset(
                at=TargetOffset(41), index=Answer(at=TargetOffset(41)), source=Answer(why_not="dead")
            )
        },
    )


def test_the_sheet_on_a_terminal(sheet: Sheet) -> None:
    text = sheet_text(sheet)
    assert "failover to 2025-11-18T04:03:00Z (20 s ago), 30 s stepped back" in text
    assert "LEFT ALONE audit: it has members" in text
    assert "at least 7" in text
    assert "NOT SURE because the source can't be asked" in text
    assert "\x1b" not in text
    assert "unknown" in text


def test_the_sheet_as_a_page_runs_nothing_that_a_name_holds(sheet: Sheet) -> None:
    made = page(sheet)
    assert "<script" not in made
    assert "&lt;script&gt;" in made
    assert "\x1b" not in made
    assert "http" not in made.replace("http-equiv", ""), "nothing from elsewhere"
    assert 'name="viewport" content="width=device-width, initial-scale=1"' in made


def test_the_sheet_for_machines(sheet: Sheet) -> None:
    told = sheet.as_dict()
    assert told["lost_records"] == {
        "number": None,
        "bound": "unknown",
        "because": "the source can't be asked: \x1b[31mgone",
    }
    assert told["plan"] == sheet.plan.hash
    assert told["v"] == 1


@pytest.mark.parametrize(
    "said", ["", "failover r1 of sf_to_nyc isn't finished: the same command goes on with it"]
)
@pytest.mark.parametrize(
    "given", [["--at", "latest"], ["--at", "latest", "--dry-run"], ["--planned"], ["--rollback", "r1"]]
)
def test_ctrl_c_always_says_whether_anything_was_done(
    request_of: RequestOf, monkeypatch: pytest.MonkeyPatch, given: list[str], said: str
) -> None:
    def pressed(_request: Request) -> None:
        raise KeyboardInterrupt(*filter(None, [said]))

    monkeypatch.setattr(failover, "opened", pressed)
    with pytest.raises(KeyboardInterrupt) as stop:
        failover_flow(request_of(*given))
    nothing = "nothing was done: no group was moved, and no fence was raised or lifted"
    assert str(stop.value) == (said or nothing)
