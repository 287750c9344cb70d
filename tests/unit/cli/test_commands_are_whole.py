"""A command that a message names can be typed as it stands, and does what the message promises."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import causeway
from causeway.cli.commands import verify
from causeway.config.flows_file.reverse_flow import flow_back
from causeway.core.failover.request import FailoverRequest, Mode
from causeway.core.journal.journal import FailoverRun, Status
from causeway.core.kernel.errors import BadInput
from causeway.core.kernel.identity import TopicPartition
from causeway.core.verify.report import PartitionVerdict, VerifyReport
from causeway.render.verify import verdict_text
from causeway.usecases.failback.divergence import _refuse_other_topics
from causeway.usecases.failback.journal_store import still_mirrors
from causeway.usecases.failover import refusals

FORWARD: Any = SimpleNamespace(
    name="sf_to_nyc", source="sf", target="nyc", failback_of="", failback="nyc_to_sf"
)
BACK: Any = SimpleNamespace(name="nyc_to_sf", source="nyc", target="sf", failback_of="sf_to_nyc", failback="")
ORDERS = TopicPartition("orders", 0)


def test_who_is_home_already_is_not_sent_away_again() -> None:
    refused = str(still_mirrors(FORWARD))
    assert "failover" not in refused
    assert "`causeway next sf_to_nyc`" in refused


def test_the_way_back_has_no_way_back_and_names_the_right_one() -> None:
    with pytest.raises(
        BadInput, match="name sf_to_nyc: `causeway next sf_to_nyc` says which step comes next"
    ):
        flow_back(SimpleNamespace(flows={}), BACK)  # type: ignore[arg-type]


def test_the_whole_is_proved_by_the_forward_flow(monkeypatch: pytest.MonkeyPatch) -> None:
    place = SimpleNamespace(partition=0, source_next=5, target_next=6)
    entry: Any = SimpleNamespace(
        places=(place,), how="adopt", by="amy", at_ms=0, because="failback b1", is_of_failback=True
    )
    report = VerifyReport((PartitionVerdict(source=ORDERS, target=ORDERS, set_by_hand=entry),))
    assert "`causeway verify sf_to_nyc --all`" in verdict_text("sf_to_nyc", report)
    assert "`causeway verify sf_to_nyc --all`" in verdict_text("nyc_to_sf", report, forward="sf_to_nyc")

    monkeypatch.setattr(verify, "opened", lambda _request: (None, BACK, None, None))
    request: Any = SimpleNamespace(options=SimpleNamespace(all=True))
    with pytest.raises(BadInput, match="`causeway verify sf_to_nyc --all` compares both directions"):
        verify.verify(request)


_NEEDS_A_REASON = re.compile(
    r"`causeway (?:fence|lift|adopt|accept-gap|restart-topic|reconcile|recover) [^`]*`"
)


def _texts(code: str) -> Iterator[str]:
    """All but docstrings; in braces what is filled in."""
    tree = ast.parse(code)
    skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    skipped |= {
        id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values
    }
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Constant):
            yield str(node.value)
        if isinstance(node, ast.JoinedStr):
            yield "".join(map(_part, node.values))


def _part(part: ast.expr) -> str:
    if isinstance(part, ast.FormattedValue):
        return f"{{{ast.unparse(part.value)}}}"
    return str(part.value) if isinstance(part, ast.Constant) else ""


def _without_reason(code: str) -> list[str]:
    found = [command for text in _texts(code) for command in _NEEDS_A_REASON.findall(text)]
    return [command for command in found if "--because" not in command and "_WHY" not in command]


def test_each_command_that_needs_a_reason_is_printed_with_it() -> None:
    """Typed without, it is refused."""
    code = {path.name: path.read_text() for path in Path(causeway.__file__).parent.rglob("*.py")}
    assert {name: bad for name, text in code.items() if (bad := _without_reason(text))} == {}
    assert sum(len(_NEEDS_A_REASON.findall(each)) for text in code.values() for each in _texts(text)) > 8


@pytest.mark.parametrize(
    ("code", "missing"),
    [
        ("remedy = f'`causeway lift {flow.name}` opens it'", 1),
        ("remedy = ('`causeway adopt f t 0 '\n    'OFFSET` once')", 1),
        ("remedy = f'`causeway adopt f t 0 5 {_WHY}`'", 0),
        ("remedy = '`causeway lift f --because \"...\"`'", 0),
        ("remedy = 'another one; then `causeway adopt`'", 0),
        ('def f():\n    """`causeway lift FLOW`."""', 0),
    ],
)
def test_one_without_would_be_found(code: str, missing: int) -> None:
    assert len(_without_reason(code)) == missing


def _stale(mode: Mode = Mode.UNPLANNED) -> str:
    wish = FailoverRequest(flow="sf_to_nyc", at_ms=None, mode=mode)
    return refusals.stale_plan(FORWARD, "is another one", wish).remedy


def test_a_plan_that_does_not_hold_names_a_fence_only_where_it_is_in_nobodys_way() -> None:
    assert "`causeway fence sf_to_nyc --because" in _stale()
    for mode in (Mode.PLANNED, Mode.HOME):
        assert "causeway fence" not in _stale(mode)
        assert "writers and consumers" in _stale(mode)


def test_an_unfinished_return_of_groups_is_no_failover_that_is_typed_again() -> None:
    run = FailoverRun(
        run="h1",
        flow="nyc_to_sf",
        wish=FailoverRequest(flow="nyc_to_sf", at_ms=None, mode=Mode.HOME),
        plan_hash="p",
        by="amy",
        begun_ms=1,
        status=Status.BEGUN,
    )
    assert "`causeway next nyc_to_sf` names what goes on with it" in str(refusals.unfinished(run, "and"))


def test_no_command_lets_the_mirror_write_where_applications_are() -> None:
    """`restart-topic` would: the source has nothing, and groups and writers are on the target."""
    pairing: Any = SimpleNamespace(forward=FORWARD)
    pair: Any = SimpleNamespace(source_topic="orders", source_topic_id=1, target_topic_id=2)
    old, new = (
        SimpleNamespace(name="orders", error=0, topic_id=9),
        SimpleNamespace(name="orders", error=0, topic_id=2),
    )
    with pytest.raises(BadInput, match="isn't the one that parted: was recreated") as refused:
        _refuse_other_topics(pairing, pair, old, new)  # type: ignore[arg-type]
    assert "`" not in refused.value.remedy
    assert "its applications stay on nyc" in refused.value.remedy
