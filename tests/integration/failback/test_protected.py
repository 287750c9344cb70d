"""Once home, groups are protected again: who isn't is named, priced, and never pulled from where it reads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from causeway.brokers.wire.consumer_groups import ConsumerGroups
from causeway.core.failover.impact_sheet import Sheet
from causeway.core.failover.request import FailoverRequest
from causeway.core.groups.sync_rules import Outcome
from causeway.core.groups.unprotected import Unprotected
from causeway.core.kernel.estimate import Bound
from causeway.usecases.failback import complete, kept_offsets
from causeway.usecases.failback.protect_groups import protect_again
from causeway.usecases.failover import rollback
from causeway.usecases.failover.execute import preview_failover
from causeway.usecases.failover.rollback import roll_back
from causeway.usecases.groups.unprotected import find_unprotected_groups
from causeway.usecases.session.both_clusters import state_on
from tests.integration.failback.circles import rules_of, sync
from tests.integration.failback.stage import FailbackStage
from tests.integration.failover.command_line import CommandLine
from tests.integration.groups.stage import outcomes
from tests.support.killing import killed_after, killed_in_front_of
from tests.support.meanwhile import meanwhile

pytestmark = pytest.mark.integration


def sheet_of(stage: FailbackStage, *, is_silent: bool = False) -> Sheet:
    source = stage.old.endpoint()
    if is_silent:
        source = replace(source, settings={**source.settings, "bootstrap.servers": "127.0.0.1:1"})
    wish = FailoverRequest(flow=stage.forward.flow.name, at_ms=None)
    return preview_failover(stage.forward.flow, source, stage.new.endpoint(), wish, rules_of(stage))


def unprotected(stage: FailbackStage) -> Unprotected:
    return find_unprotected_groups(
        stage.forward.flow, rules_of(stage), stage.old.endpoint(), stage.new.endpoint()
    )


def test_who_returned_is_protected_by_the_next_sync_and_who_reads_there_since_is_left_alone(
    parted: FailbackStage,
) -> None:
    stage = parted
    a, b = stage.group("a"), stage.group("b")
    stage.commit(stage.new, "a", stage.stem, {0: 9, 1: 9})
    assert unprotected(stage) == Unprotected(), "it is fenced, and says so"
    stage.resume()
    stage.reverse.run()
    stage.come_home()
    there = {name: stage.stands(stage.new, name, stage.stem) for name in "ab"}

    assert unprotected(stage) == Unprotected(waiting=(a, b))
    silent = sheet_of(stage, is_silent=True).plan
    assert {(m.group, m.target.partition): int(m.after) for m in silent.moves} == {
        (stage.group(name), p): at for name, places in there.items() for p, at in places.items()
    }
    assert silent.left_alone == ()
    assert {move.reasons for move in silent.moves} == {("as its place at the homecoming says",)}

    stage.commit(stage.new, "b", stage.stem, {0: 1})  # since it returned
    assert unprotected(stage) == Unprotected(waiting=(a,), own=(b,))
    (left,) = sheet_of(stage).plan.left_alone
    assert (left.group, left.target and left.target.partition) == (b, 0)
    assert left.price is not None
    read_since = [o for o, _ in stage.log(stage.new, stage.stem)[0] if 1 <= o < there["b"][0]]
    assert (left.price.rereads.exactly, left.price.skips.exactly) == (len(read_since), 0)
    assert left.price.seconds.bound is not Bound.UNKNOWN

    (line,) = protect_again(stage.ways, rules_of(stage), stage.said.append)
    assert line.startswith(f"NOT PROTECTED 1 group ({b}): ")
    assert unprotected(stage) == Unprotected(own=(b,))
    assert stage.stands(stage.new, "b", stage.stem)[0] == 1
    assert outcomes(sync(stage), b) == {Outcome.MOVED_ON: 1, Outcome.SYNCED: 1}


FLOWS = """\
clusters:
  sf: {{connection: kafka_sf}}
  nyc: {{connection: kafka_nyc}}
flows:
  {name}: {{source: sf, target: nyc, topics: ["{topic}"], {same}, sync.group.offsets.enabled: true}}
  {back}: {{source: nyc, target: sf, failback_of: {name}, {same}}}
"""


def test_by_hand_it_is_red_until_home_is_whole(parted: FailbackStage, tmp_path: Path) -> None:
    stage, flow = parted, parted.forward.flow.name
    same = f'replication.policy: identity, lanes: 3, groups: ["{stage.stem}[.].*"]'
    flows = tmp_path / "flows.yaml"
    names = {"name": flow, "back": stage.reverse.flow.name, "topic": stage.stem}
    flows.write_text(FLOWS.format(**names, same=same))
    by_hand = CommandLine(tmp_path, flows, {"sf": stage.old, "nyc": stage.new})
    stage.resume()
    stage.reverse.run()
    stage.come_home()  # killed before its last step

    red = by_hand.run("status", flow)
    assert red.returncode == 5, red.stderr
    waiting = (
        f"NOT PROTECTED 2 groups ({stage.group('a')}, {stage.group('b')}): on the target each still holds"
    )
    assert waiting in red.stdout
    assert waiting in by_hand.run("groups", flow).stdout
    assert "not protected: 2 groups" in by_hand.run("doctor", flow, "--read-only").stdout

    assert by_hand.told("failback", flow, "--home")["unprotected"] == []
    assert by_hand.told("status", flow)["unprotected"] == {"waiting": [], "own": []}


def came_home(stage: FailbackStage) -> str:
    """Group `a` returned from 9, and has read there since what the mirror has; the homecoming's failover."""
    stage.commit(stage.new, "a", stage.stem, {0: 9, 1: 9})
    stage.resume()
    stage.reverse.run()
    moved = stage.come_home().moved
    assert moved is not None
    stage.write_evenly(stage.old, 20)
    stage.forward.run()
    ends = {p: messages[-1][0] + 1 for p, messages in stage.log(stage.old, stage.stem).items()}
    stage.commit(stage.old, "a", stage.stem, ends)
    return moved.run


def take_back(stage: FailbackStage, run: str) -> None:
    target = stage.old.endpoint()
    roll_back(stage.reverse.flow, target, run, by="a test", consent=lambda *_: None, say=lambda _: None)


def test_a_homecoming_that_is_rolled_back_while_a_sync_works_moves_nobody(
    parted: FailbackStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sync has read both journals; its commit comes once the rollback is done."""
    run, real = came_home(parted), ConsumerGroups.commit

    async def late(*arguments: Any, **named: Any) -> Any:
        monkeypatch.setattr(ConsumerGroups, "commit", real)
        meanwhile(lambda: take_back(parted, run))
        return await real(*arguments, **named)

    monkeypatch.setattr(ConsumerGroups, "commit", late)
    assert outcomes(sync(parted), parted.group("a")) == {Outcome.MOVED_ON: 2}
    assert parted.stands(parted.new, "a", parted.stem) == {0: 9, 1: 9}


def test_what_is_committed_there_once_the_groups_were_moved_is_their_own(parted: FailbackStage) -> None:
    """Killed in between; a consumer comes back to the new primary, and goes on reading."""
    stage = parted
    stage.commit(stage.new, "a", stage.stem, {0: 9, 1: 9})
    stage.resume()
    with killed_in_front_of(complete, "_let_reverse_stand_by"):
        stage.come_home()
    stage.commit(stage.new, "a", stage.stem, {0: 10})
    stage.come_home()
    assert outcomes(sync(stage), stage.group("a")) == {Outcome.MOVED_ON: 1, Outcome.SYNCED: 1}
    assert stage.stands(stage.new, "a", stage.stem)[0] == 10


def test_what_is_committed_there_while_somebody_else_has_moved_the_groups_is_their_own(
    parted: FailbackStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two carry out one homecoming; one is held up at its fence, and saw the run before they were moved."""
    stage, real = parted, state_on

    def moved_by_somebody_else() -> None:
        with killed_in_front_of(complete, "_let_reverse_stand_by"):
            stage.come_home()
        stage.commit(stage.new, "a", stage.stem, {0: 10})

    async def late(*arguments: Any) -> Any:
        monkeypatch.setattr(kept_offsets, "state_on", real)
        meanwhile(moved_by_somebody_else)
        return await real(*arguments)

    stage.commit(stage.new, "a", stage.stem, {0: 9, 1: 9})
    stage.resume()
    monkeypatch.setattr(kept_offsets, "state_on", late)
    stage.come_home()
    assert outcomes(sync(stage), stage.group("a")) == {Outcome.MOVED_ON: 1, Outcome.SYNCED: 1}
    assert stage.stands(stage.new, "a", stage.stem)[0] == 10


def test_a_rollback_that_broke_off_moves_nobody_back(parted: FailbackStage) -> None:
    """The offsets at home are put back, and the journal tells only that somebody has begun to."""
    run = came_home(parted)
    with killed_after(rollback, "_restore"):
        take_back(parted, run)
    assert outcomes(sync(parted), parted.group("a")) == {Outcome.MOVED_ON: 2}
    assert parted.stands(parted.new, "a", parted.stem) == {0: 9, 1: 9}


def test_a_homecoming_that_was_rolled_back_leaves_groups_where_they_read(parted: FailbackStage) -> None:
    stage = parted
    stage.commit(stage.new, "a", stage.stem, {0: 9, 1: 9})
    stage.resume()
    stage.reverse.run()
    moved = stage.come_home().moved
    assert moved is not None
    run, target = moved.run, stage.old.endpoint()
    roll_back(stage.reverse.flow, target, run, by="a test", consent=lambda *_: None, say=lambda _: None)
    assert outcomes(sync(stage), stage.group("a")) == {Outcome.MOVED_ON: 2}
    assert stage.stands(stage.new, "a", stage.stem) == {0: 9, 1: 9}
    assert len(sheet_of(stage).plan.left_alone) == 4
    assert unprotected(stage) == Unprotected(own=(stage.group("a"), stage.group("b")))
