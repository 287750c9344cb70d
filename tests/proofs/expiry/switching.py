"""Stories of a switch: failover, rollback, drill, failback and the way home, with a `ledger` that is quiet.

The ledger is a partition that was never copied by a run: somebody copied it by other means, and a person
adopted it, as after a takeover. Nothing but a place that was set tells where it stands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from causeway.core.failback.divergence import Divergence, FailbackMode, FailbackPlan, export_topic
from causeway.core.failover.impact_sheet import Sheet
from causeway.core.failover.request import FailoverRequest, Mode
from causeway.core.model.naming import IdentityNaming, NamingPolicy, PrefixNaming
from causeway.usecases.failback.start import preview_failback
from causeway.usecases.repair.adopt import adopt_partition
from tests.integration.failback.rebuilding import play_rebuild, same_on_both
from tests.integration.failback.stage import FailbackStage, next_value, read, values
from tests.integration.failback.trials import play
from tests.integration.failover.stage import BASE_MS, FailoverStage
from tests.integration.groups.stage import make_topic
from tests.proofs.expiry.life import Life, at, contents
from tests.proofs.expiry.stories import WHY
from tests.support.mirroring import make_flow

ORDERS, LEDGER = 0, 1
_LEDGER_RECORDS = 100
_GROUPS = ("ahead", "behind", "middle")


# failover


def _failover_stage(life: Life, naming: NamingPolicy) -> FailoverStage:
    """Two partitions, of which one is quiet from the first run on; groups that stand anywhere."""
    stem = f"failover-{life.name}"
    flow = make_flow(stem.replace("-", "_"), stem, naming=naming)
    stage = FailoverStage(life.old, life.new, stem, named=flow)
    life.leave(stage.mirror.close)
    life.flows.append((flow, life.new))
    for first in (0, 50):
        stage.write([BASE_MS + n * 1_000 for n in range(first, first + 50)], ORDERS)
        if first == 0:
            stage.write([BASE_MS + n * 1_000 for n in range(30)], LEDGER)
        life.run(stage.mirror)
    stage.write([BASE_MS + n * 1_000 for n in range(100, 107)], ORDERS)
    stage.commit("ahead", {ORDERS: 105, LEDGER: 30})
    stage.commit("middle", {ORDERS: 60, LEDGER: 10})
    stage.commit("behind", {ORDERS: 5})
    return stage


def _look(life: Life, stage: FailoverStage, wish: FailoverRequest) -> None:
    life.step("sheet", sheet_numbers(stage.sheet(wish)))


def sheet_numbers(sheet: Sheet) -> list[object]:
    """Everything that a person weighs up, without names."""
    moves = [
        (m.group.rpartition(".")[2], m.target.partition, int(m.after), str(m.rereads), str(m.skips))
        for m in sheet.plan.moves
    ]
    losses = [(x.source.partition, str(x.records), str(x.seconds)) for x in sheet.losses]
    return [str(sheet.lost), losses, sorted(moves), len(sheet.plan.left_alone), len(sheet.notes)]


def _held(stage: FailoverStage) -> dict[str, dict[int, int]]:
    return {name: stage.there(name) for name in _GROUPS}


def _failed_over_and_rolled_back(life: Life, naming: NamingPolicy, at_ms: int | None) -> None:
    stage = _failover_stage(life, naming)
    wish = stage.wish(at_ms)
    _look(life, stage, wish)
    done = stage.fail_over(wish)
    life.step("failover", (_held(stage), done.verified.as_planned))
    assert done.verified.as_planned == done.verified.offsets
    life.step("failover again", stage.fail_over(wish).was_done)
    if at_ms is None:
        records = [offset for _, offset, *_ in stage.mirrored_records(ORDERS)]
        assert stage.there("middle")[ORDERS] == records[60]
        assert stage.there("behind")[ORDERS] == records[5]
    back = stage.roll_back(done.run)
    life.step("rollback", (back.restored, _held(stage)))
    assert life.run(stage.mirror).records == 7
    assert _shown(stage, mirrored=True) == _shown(stage, mirrored=False)


def _shown(stage: FailoverStage, *, mirrored: bool) -> list[tuple[int, int, str]]:
    cluster, topic = (stage.target, stage.mirrored) if mirrored else (stage.source, stage.stem)
    return [(p, time_ms, value) for p, _, time_ms, value in stage.seen(cluster, topic)]


def latest_with_prefixes(life: Life) -> None:
    _failed_over_and_rolled_back(life, PrefixNaming("sf"), None)


def a_moment_with_names_that_stay(life: Life) -> None:
    _failed_over_and_rolled_back(life, IdentityNaming("sf"), BASE_MS + 40_000)


def planned(life: Life) -> None:
    stage = _failover_stage(life, PrefixNaming("sf"))
    wish = stage.wish(None, mode=Mode.PLANNED)
    _look(life, stage, wish)
    done = stage.fail_over(wish)
    life.step("failover", (_held(stage), done.verified.as_planned))
    assert done.sheet is not None
    life.note("price", sheet_numbers(done.sheet))
    assert done.sheet.lost.number == 0
    assert _shown(stage, mirrored=True) == _shown(stage, mirrored=False)


def drilled(life: Life) -> None:
    stage = _failover_stage(life, PrefixNaming("sf"))
    done = stage.rehearse()
    found = (done.groups, done.offsets, done.as_planned, done.read, done.lost_records, done.rereads)
    life.step("drill", found)
    assert (done.wrong, done.lost_records) == ("", 7)
    assert life.run(stage.mirror).records == 7


# failback


def failback_stage(life: Life, *, keeps_names: bool) -> FailbackStage:
    """Mirrored: `orders` by runs, and `ledger` as somebody adopted it."""
    stem = f"failback-{life.name}"
    stage = FailbackStage(life.old, life.new, stem, keeps_names)
    life.leave(stage.close)
    make_topic(life.new, stage.mirrored, stage.partitions)
    for cluster, topic in ((life.old, stem), (life.new, stage.mirrored)):
        copied = Life(life.old, life.new, life.name, has_janitor=False)
        copied.write(cluster, topic, _LEDGER_RECORDS, LEDGER)
    flow = stage.forward.flow
    life.flows += [(flow, life.new), (stage.reverse.flow, life.old)]
    life.writes_plainly = (
        False  # each side is the other's source, and a mirror's transactions end with markers
    )
    stage.after_step = lambda: life.step("a step")
    life._written = _LEDGER_RECORDS
    life.write(life.old, stem, 100, ORDERS)
    (parked,) = life.run(stage.forward).parked
    assert parked.source == f"{stem}-{LEDGER}", "it holds what no run has written"
    adopt_partition(flow, life.old.endpoint(), life.new.endpoint(), at(stem, LEDGER), _LEDGER_RECORDS, WHY)
    life.step("adopt")
    life.run(stage.forward)
    return stage


def cut_numbers(cut: Divergence) -> tuple[object, ...]:
    return (cut.old.partition, cut.mirrored_next, cut.old_end, str(cut.tail), str(cut.written))


def plan_numbers(plan: FailbackPlan) -> list[object]:
    """Everything that a person weighs up, without names."""
    found: list[object] = [[cut_numbers(cut) for cut in cuts] for cuts in (plan.cuts, plan.late)]
    if plan.rebuild is not None:
        found += [
            (p.old.partition, str(p.held), str(p.gone), str(p.anew), p.newest_ms >= 0)
            for p in plan.rebuild.partitions
        ]
    return found


def parted(life: Life, *, keeps_names: bool) -> FailbackStage:
    """Failed over with two records that never crossed; five were written since."""
    stage = failback_stage(life, keeps_names=keeps_names)
    life.write(life.old, stage.stem, 2, ORDERS)
    stage.commit(life.old, "a", stage.stem, {ORDERS: 40, LEDGER: _LEDGER_RECORDS})
    stage.fail_over()
    life.step("failover", stage.stands(life.new, "a", stage.mirrored))
    life.write(life.new, stage.stem, 5, ORDERS)
    return stage


def come_home(life: Life, stage: FailbackStage, way: FailbackMode) -> None:
    ledger, going = stage.log(life.new, stage.mirrored)[LEDGER], _going(stage)
    life.step("plan", plan_numbers(preview_failback(stage.ways, way)))
    # No run leads to the ledger's records on the new primary: for all that is known, a rebuild loses them.
    done = stage.resume() if way is FailbackMode.RESUME else stage.rebuild(accepts_loss=True)
    life.step("failback", [plan_numbers(plan) for plan in stage.plans])
    stage.plans.clear()
    life.step("reverse run", stage.reverse.run().records)
    life.write(life.new, stage.stem, 3, ORDERS)
    life.step("reverse run", stage.reverse.run().records)
    stage.come_home()
    life.step("home", stage.stands(life.old, "a", stage.stem))
    stands = stage.stands(life.old, "a", stage.stem)[LEDGER]
    assert next_value(stage.log(life.old, stage.stem)[LEDGER], stands) == going
    life.write(life.old, stage.stem, 4, ORDERS)
    life.step("forward run", stage.forward.run().records)
    assert values(stage.log(life.new, stage.mirrored)[LEDGER]) == values(ledger), "nothing came twice"
    assert values(stage.log(life.old, stage.stem)[LEDGER]) == values(ledger), "nothing came back"
    if stage.keeps_names:
        exported = read(life.new, export_topic(stage.stem, done.run.begun_ms), stage.partitions)
        assert [len(exported[p]) for p in (ORDERS, LEDGER)] == [2, 0]
        life.note("export", contents(exported[ORDERS]))


def _going(stage: FailbackStage) -> str | None:
    """What the group would read next of the ledger on the new primary."""
    there = stage.stands(stage.new, "a", stage.mirrored)[LEDGER]
    return next_value(stage.log(stage.new, stage.mirrored)[LEDGER], there)


def told_numbers(life: Life) -> None:
    ((cuts, late, *_),) = life.seen("plan")
    apart = cuts or late
    assert [cut[:2] for cut in apart] == [(ORDERS, 100), (LEDGER, _LEDGER_RECORDS)]
    assert [cut[3] for cut in apart] == ["2", "0"], "divergent records"


def resumed_with_names_that_stay(life: Life) -> None:
    stage = parted(life, keeps_names=True)
    come_home(life, stage, FailbackMode.RESUME)
    told_numbers(life)
    old, new = (stage.log(cluster, stage.stem)[ORDERS] for cluster in (life.old, life.new))
    assert values(new) == values(old)[:100] + values(old)[102:], "all but the tail, once, in order"


def resumed_with_prefixes(life: Life) -> None:
    stage = parted(life, keeps_names=False)
    come_home(life, stage, FailbackMode.RESUME)
    told_numbers(life)
    old, new = stage.log(life.old, stage.stem), stage.log(life.new, stage.mirrored)
    assert values(new[ORDERS]) == values(old[ORDERS])
    there, back = stage.log(life.new, stage.stem), stage.log(life.old, stage.led_back)
    assert values(back[ORDERS]) == values(there[ORDERS])


def rebuilt(life: Life) -> None:
    stage = parted(life, keeps_names=True)
    come_home(life, stage, FailbackMode.REBUILD)
    told_numbers(life)
    assert same_on_both(stage) == []


# random trials, as `make prove` plays them


def trial(life: Life, seed: int, *, keeps_names: bool) -> None:
    _trial(life, lambda stage: play(stage, seed), keeps_names=keeps_names)


def rebuild_trial(life: Life, seed: int) -> None:
    _trial(life, lambda stage: play_rebuild(stage, seed, again=False), keeps_names=True)


def _trial(life: Life, play_it: Callable[[FailbackStage], Any], *, keeps_names: bool) -> None:
    stage = FailbackStage(life.old, life.new, f"trial-{life.name}", keeps_names)
    life.leave(stage.close)
    stage.after_step = lambda: life.step("a step")
    life.looks = False
    life.flows += [(stage.forward.flow, life.new), (stage.reverse.flow, life.old)]
    verdict = play_it(stage)
    assert verdict.wrong == ()
    life.note("verdict", (verdict.records, verdict.tail))
    # Transactions end with markers: a place that the map knows stands before one, a committed one after it.
    counted = [[(cut.old.partition, str(cut.tail), str(cut.written)) for cut in p.cuts] for p in stage.plans]
    life.note("plans", counted)


SWITCHES = {
    story.__name__: story
    for story in (
        latest_with_prefixes,
        a_moment_with_names_that_stay,
        planned,
        drilled,
        resumed_with_names_that_stay,
        resumed_with_prefixes,
        rebuilt,
    )
}
