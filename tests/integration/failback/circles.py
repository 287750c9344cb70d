"""Failover and failback, and the same again: the second time all is as exact as the first.

A circle: traffic, sync, a drill -> the source is lost -> traffic -> resume -> traffic -> home -> traffic. In
between every group is protected: a sync finds all of them well, and a drill moves each. A sheet tells the
very records that are lost, and each group goes on with the record that it would have read next. After the
last circle the source is lost once more.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from causeway.core.failover.request import FailoverRequest
from causeway.core.groups.report import GroupsReport
from causeway.core.groups.sync_rules import IS_WELL
from causeway.core.model.group_filter import FlowGroups
from causeway.usecases.failover.drill import drill
from causeway.usecases.failover.execute import preview_failover
from causeway.usecases.groups.sync import sync_groups
from tests.integration.failback.stage import FailbackStage, Log, next_value, values
from tests.integration.failback.trials import next_on_new, read_on, went_home

GROUPS = ("a", "b", "c")
_CIRCLES = 2


@dataclass(frozen=True, slots=True)
class CircleVerdict:
    seed: int
    records: int
    tail: int
    wrong: tuple[str, ...]


def play_circles(stage: FailbackStage, seed: int, circles: int = _CIRCLES) -> CircleVerdict:
    dice = random.Random(seed)
    never: set[str] = set()
    wrong: list[str] = []
    for number in range(1, circles + 1):
        found = [*_mirror_and_protect(stage, dice, never), *_there(stage, dice, never), *_back(stage, dice)]
        wrong += [f"circle {number}: {each}" for each in found]
    again = [*_mirror_and_protect(stage, dice, never), *_there(stage, dice, never)]
    wrong += [f"after the last circle: {each}" for each in again]
    count = sum(map(len, stage.log(stage.old, stage.stem).values()))
    return CircleVerdict(seed=seed, records=count, tail=len(never), wrong=tuple(wrong))


def _mirror_and_protect(stage: FailbackStage, dice: random.Random, never: set[str]) -> list[str]:
    """What is wrong before anything is lost."""
    stage.write(stage.old, dice.randrange(20, 90), dice)
    stage.forward.run()
    log = stage.log(stage.old, stage.stem)
    _read_on_at_home(stage, log, dice)
    wrong = [*_protected(stage, sync(stage)), *_stand_exactly(stage, _going(stage, log, never))]
    endpoints = stage.old.endpoint(), stage.new.endpoint()
    rehearsed = drill(stage.forward.flow, *endpoints, rules_of(stage), by="a test", say=stage.said.append)
    if rehearsed.wrong or rehearsed.groups != len(GROUPS):
        wrong.append(f"the drill moved {rehearsed.groups} groups: {rehearsed.wrong}")
    return wrong


def rules_of(stage: FailbackStage) -> FlowGroups:
    return replace(stage.rules, sync_offsets=True)


def sync(stage: FailbackStage) -> GroupsReport:
    endpoints = stage.old.endpoint(), stage.new.endpoint()
    return sync_groups(stage.forward.flow, rules_of(stage), *endpoints, stage.said.append, writes=True)


def _read_on_at_home(stage: FailbackStage, log: Log, dice: random.Random) -> None:
    """Each group commits on the old primary: the first time anywhere, and then only ahead."""
    for name in GROUPS:
        stood = stage.stands(stage.old, name, stage.stem)
        places = {
            p: dice.choice(
                [*(o for o, _ in log[p] if o >= stood.get(p, 0)), log[p][-1][0] + 1 if log[p] else 0]
            )
            for p in range(stage.partitions)
        }
        stage.commit(stage.old, name, stage.stem, places)


def _protected(stage: FailbackStage, report: GroupsReport) -> list[str]:
    wanted = {stage.group(name) for name in GROUPS}
    wrong = [f"group {name} isn't seen" for name in sorted(wanted - set(report.groups))]
    return wrong + [
        f"{row.group} on {row.source} isn't synced: {row.outcome}, {row.why}"
        for row in report.result.rows
        if row.group in wanted and row.source.topic == stage.stem and row.outcome not in IS_WELL
    ]


Going = dict[tuple[str, int], str | None]
"""The next value of each group and partition, among what crosses."""


def _going(stage: FailbackStage, log: Log, never: set[str]) -> Going:
    return {
        (name, p): next_value([(o, value) for o, value in log[p] if value not in never], at)
        for name in GROUPS
        for p, at in stage.stands(stage.old, name, stage.stem).items()
    }


def _stand_exactly(stage: FailbackStage, going: Going) -> list[str]:
    there = stage.log(stage.new, stage.mirrored)
    wrong: list[str] = []
    for (name, p), value in going.items():
        at = stage.stands(stage.new, name, stage.mirrored).get(p)
        if at is None or next_value(there[p], at) != value:
            wrong.append(f"{name} would read {value} of partition {p} next, and stands at {at} there")
    return wrong


def _there(stage: FailbackStage, dice: random.Random, never: set[str]) -> list[str]:
    """The source is lost: its sheet, and what came of it."""
    mirrored = stage.log(stage.old, stage.stem)
    stage.write(stage.old, dice.randrange(10, 40), dice)
    log = stage.log(stage.old, stage.stem)
    tail = {value for p in log for value in values(log[p]) if value not in set(values(mirrored[p]))}
    never |= tail if stage.keeps_names else set()
    going = _going(stage, mirrored, never)
    wish = FailoverRequest(flow=stage.forward.flow.name, at_ms=None)
    endpoints = stage.old.endpoint(), stage.new.endpoint()
    sheet = preview_failover(stage.forward.flow, *endpoints, wish, rules_of(stage))
    said = {
        "lost": sheet.lost.exactly,
        "rereads": sheet.rereads.exactly,
        "skips": sheet.skips.exactly,
        "left alone": len(sheet.plan.left_alone),
        "groups": set(sheet.plan.groups),
    }
    groups = {stage.group(name) for name in GROUPS}
    true = {"lost": len(tail), "rereads": 0, "skips": 0, "left alone": 0, "groups": groups}
    wrong = [] if said == true else [f"the sheet tells {said}, and it is {true}"]
    stage.fail_over()
    return [*wrong, *_stand_exactly(stage, going)]


def _back(stage: FailbackStage, dice: random.Random) -> list[str]:
    stage.write(stage.new, dice.randrange(20, 80), dice)
    read_on(stage, dice, GROUPS)
    stage.resume()
    if not stage.keeps_names:
        stage.forward.run()
    stage.reverse.run()
    stage.write(stage.new, dice.randrange(10, 40), dice)
    read_on(stage, dice, GROUPS)
    going = next_on_new(stage, GROUPS)
    stage.come_home()
    return went_home(stage, going)
