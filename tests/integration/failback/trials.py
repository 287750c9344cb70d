"""Random failovers and their failbacks, held against what readers of both clusters see, record by record.

failover -> traffic -> resume -> traffic -> home -> traffic -> a planned failover again, with names that stay
and with prefixes. Each record written anywhere is on both sides once, in order, but for the divergent tail;
groups go on with the very record that they would have read next, each time that they are moved.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from causeway.core.failback.divergence import export_topic
from causeway.core.failover.request import Mode
from causeway.core.kernel.errors import FlowFenced, FlowHeld
from causeway.lab.cluster import LabCluster
from tests.integration.failback.stage import FailbackStage, Log, next_value, read, values

GROUPS = ("a", "b", "c", "d")
Stands = dict[str, dict[int, int]]


@dataclass(frozen=True, slots=True)
class Verdict:
    seed: int
    records: int
    tail: int
    returned: int
    wrong: tuple[str, ...]


def play(stage: FailbackStage, seed: int) -> Verdict:
    dice = random.Random(seed)
    wrong: list[str] = []
    for _ in range(dice.randrange(1, 3)):
        stage.write(stage.old, dice.randrange(30, 120), dice)
        stage.forward.run()
        stage.after_step()
    mirrored = stage.log(stage.new, stage.mirrored)
    stage.write(stage.old, dice.randrange(10, 60), dice)  # never crosses before the failover
    before = stage.log(stage.old, stage.stem)
    commit_somewhere(stage, stage.old, stage.stem, before, dice)
    stage.fail_over()
    stage.after_step()
    stage.write(stage.new, dice.randrange(30, 120), dice)
    read_on(stage, dice)

    back = stage.resume()
    stage.after_step()
    if stage.keeps_names:
        wrong += refused_forward(stage)
    else:
        stage.forward.run()
    stage.reverse.run()
    stage.after_step()
    stage.write(stage.new, dice.randrange(20, 80), dice)
    read_on(stage, dice)
    going = next_on_new(stage)
    stage.come_home()
    stage.after_step()
    wrong += went_home(stage, going)

    stage.write(stage.old, dice.randrange(20, 80), dice)
    stage.forward.run()
    stage.after_step()
    tail = {p: values(before[p])[len(mirrored[p]) :] for p in before}
    wrong += _each_once(stage, tail)
    if stage.keeps_names:
        wrong += exported(stage, export_topic(stage.stem, back.run.begun_ms), tail)
        wrong += moves_exactly_again(stage, dice, tail)
    count = sum(map(len, stage.log(stage.old, stage.stem).values()))
    plan = stage.plans[0]
    said = plan.tail.number if stage.keeps_names else sum(cut.tail.number or 0 for cut in plan.late)
    if said != sum(map(len, tail.values())):
        wrong.append(f"the plan told of {said} divergent records, and they are {tail}")
    return Verdict(
        seed=seed,
        records=count,
        tail=sum(map(len, tail.values())),
        returned=plan.written.number or 0,
        wrong=tuple(wrong),
    )


def commit_somewhere(
    stage: FailbackStage, cluster: LabCluster, topic: str, log: Log, dice: random.Random
) -> None:
    for name in GROUPS:
        places = {p: dice.choice(_places(log[p])) for p in range(stage.partitions)}
        stage.commit(cluster, name, topic, places)


def _places(log: list[tuple[int, str]], at_least: int = 0) -> list[int]:
    last = log[-1][0] + 1 if log else 0
    return [offset for offset, _ in log if offset >= at_least] + [max(last, at_least)]


def read_on(stage: FailbackStage, dice: random.Random, groups: Sequence[str] = GROUPS) -> None:
    """Some groups go on reading on the new primary: the mirror, and what its own writers wrote."""
    # A set's order is chance, and would change all later throws.
    for topic in dict.fromkeys((stage.mirrored, stage.stem)):
        log = stage.log(stage.new, topic)
        for name in groups:
            if dice.random() < 0.6 or topic != stage.mirrored:
                stood = stage.stands(stage.new, name, topic)
                places = {p: dice.choice(_places(log[p], stood.get(p, 0))) for p in range(stage.partitions)}
                stage.commit(stage.new, name, topic, places)


def next_on_new(
    stage: FailbackStage, groups: Sequence[str] = GROUPS
) -> dict[tuple[str, str, int], str | None]:
    """By group, topic of the new primary and partition."""
    return {
        (name, topic, p): next_value(log[p], at)
        for topic in {stage.mirrored, stage.stem}
        for log in (stage.log(stage.new, topic),)
        for name in groups
        for p, at in stage.stands(stage.new, name, topic).items()
    }


def went_home(stage: FailbackStage, going: dict[tuple[str, str, int], str | None]) -> list[str]:
    """What each reads next on the old primary is what it would have read next on the new one."""
    topics = {stage.mirrored: stage.stem, stage.stem: stage.led_back}
    wrong: list[str] = []
    for (name, topic, p), expected in going.items():
        home = topics[topic]
        at, log = stage.stands(stage.old, name, home).get(p), stage.log(stage.old, home)[p]
        if at is None:
            wrong.append(f"{name} on {topic}-{p} wasn't moved home")
            continue
        found = next_value(log, at)
        if found != expected and not (expected is None and at == (log[-1][0] + 1 if log else 0)):
            wrong.append(f"{name} would have read {expected} of {topic}-{p} and reads {found} at {home} {at}")
    return wrong


def _each_once(stage: FailbackStage, tail: dict[int, list[str]]) -> list[str]:
    wrong: list[str] = []
    for here, there in {(stage.stem, stage.mirrored), (stage.led_back, stage.stem)}:
        olds, news = stage.log(stage.old, here), stage.log(stage.new, there)
        for p in range(stage.partitions):
            old, new = values(olds[p]), values(news[p])
            if stage.keeps_names:
                left = set(tail[p])
                old = [value for value in old if value not in left]
            if old != new or len(set(new)) != len(new):
                wrong.append(
                    f"{here}-{p} and {there}-{p} differ: {set(old) ^ set(new)}, {len(old)}, {len(new)}"
                )
    return wrong


def exported(stage: FailbackStage, topic: str, tail: dict[int, list[str]]) -> list[str]:
    held = stage.log(stage.old, stage.stem)
    wrong: list[str] = []
    found = read(stage.new, topic, stage.partitions) if any(tail.values()) else {}
    for p, messages in found.items():
        copies = [
            (int(dict(message.headers())["causeway.source.offset"]), message.value().decode())
            for message in messages
        ]
        expected = [(offset, value) for offset, value in held[p] if value in set(tail[p])]
        if copies != expected:
            wrong.append(f"the export of partition {p} holds {copies} and not {expected}")
    return wrong


def refused_forward(stage: FailbackStage) -> list[str]:
    try:
        stage.forward.run()
    except (FlowFenced, FlowHeld):
        return []
    return ["the forward flow ran beside the reverse flow"]


def moves_exactly_again(stage: FailbackStage, dice: random.Random, tail: dict[int, list[str]]) -> list[str]:
    """A planned failover after the failback: the map knows each record, whoever copied it."""
    log = stage.log(stage.old, stage.stem)
    commit_somewhere(stage, stage.old, stage.stem, log, dice)
    expected = {}
    for name in GROUPS:
        for p, at in stage.stands(stage.old, name, stage.stem).items():
            kept = [(offset, value) for offset, value in log[p] if value not in set(tail[p])]
            expected[name, p] = next_value(kept, at)
    wrong: list[str] = []
    stage.fail_over(Mode.PLANNED)
    there = stage.log(stage.new, stage.mirrored)
    for (name, p), value in expected.items():
        at = stage.stands(stage.new, name, stage.mirrored)[p]
        if next_value(there[p], at) != value:
            wrong.append(f"again: {name} would have read {value} of partition {p} and stands at {at}")
    return wrong
