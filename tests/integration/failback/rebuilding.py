"""Random rebuilds, held against what readers of both clusters see, record by record.

failover -> traffic -> rebuild -> traffic -> home -> traffic -> a planned failover -> traffic -> rebuild again
-> home. The old primary's topics hold what the new one's hold, in order per partition; the divergent tails
are in their exports, and in no other place; groups go on with the very record that they would have read next.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from confluent_kafka import Message

from causeway.core.failback.divergence import FailbackPlan, export_topic
from causeway.core.kernel.estimate import total
from tests.integration.failback.stage import FailbackStage, Log, read
from tests.integration.failback.trials import (
    commit_somewhere,
    moves_exactly_again,
    next_on_new,
    read_on,
    refused_forward,
    went_home,
)
from tests.support.mirroring import end_offsets


@dataclass(frozen=True, slots=True)
class RebuildVerdict:
    seed: int
    records: int
    tail: int
    wrong: tuple[str, ...]


def play_rebuild(stage: FailbackStage, seed: int, *, again: bool = True) -> RebuildVerdict:
    dice = random.Random(seed)
    for _ in range(dice.randrange(1, 3)):
        stage.write(stage.old, dice.randrange(30, 120), dice)
        stage.forward.run()
        stage.after_step()
    wrong, tail = _there_and_back(stage, dice)
    wrong += moves_exactly_again(stage, dice, {p: [] for p in range(stage.partitions)})
    if again:
        more, further = _there_and_back(stage, dice, is_failed_over=True)
        wrong, tail = wrong + more, tail + further
    count = _count(stage.log(stage.old, stage.stem))
    return RebuildVerdict(seed=seed, records=count, tail=tail, wrong=tuple(wrong))


def _there_and_back(
    stage: FailbackStage, dice: random.Random, *, is_failed_over: bool = False
) -> tuple[list[str], int]:
    """What is wrong once all is home again, and how many records diverged."""
    mirrored = stage.log(stage.new, stage.stem)
    stage.write(stage.old, dice.randrange(10, 60), dice)  # never crosses
    before = stage.log(stage.old, stage.stem)
    if not is_failed_over:
        commit_somewhere(stage, stage.old, stage.stem, before, dice)
        stage.fail_over()
        stage.after_step()
    stage.write(stage.new, dice.randrange(30, 120), dice)
    read_on(stage, dice)
    tail = {p: before[p][len(mirrored[p]) :] for p in before}
    ends = end_offsets(stage.old, of=stage.stem)
    there = stage.log(stage.new, stage.stem)
    back = stage.rebuild()
    stage.after_step()
    wrong = [*refused_forward(stage), *_emptied(stage, ends), *_priced(stage.plans[-1], before, tail, there)]
    stage.reverse.run()
    stage.after_step()
    stage.write(stage.new, dice.randrange(20, 80), dice)
    read_on(stage, dice)
    going = next_on_new(stage)
    stage.come_home()
    stage.after_step()
    wrong += went_home(stage, going)
    stage.write(stage.old, dice.randrange(20, 80), dice)
    left = _count(stage.log(stage.old, stage.stem)) - _count(stage.log(stage.new, stage.stem))
    if (copied := stage.forward.run().records) != left:
        wrong.append(f"the forward flow copied {copied} records, and {left} were written since")
    wrong += [*same_on_both(stage), *kept(stage, export_topic(stage.stem, back.run.begun_ms), tail)]
    return wrong, _count(tail)


def _count(log: Log) -> int:
    return sum(map(len, log.values()))


def _emptied(stage: FailbackStage, before: dict[tuple[str, int], tuple[int, int]]) -> list[str]:
    """No record is left, and the next one gets an offset that no other ever had."""
    wanted = {place: (end, end) for place, (_, end) in before.items()}
    found = end_offsets(stage.old, of=stage.stem)
    return [] if found == wanted else [f"emptied, the old primary's logs are {found} and not {wanted}"]


def _priced(plan: FailbackPlan, before: Log, tail: Log, there: Log) -> list[str]:
    assert plan.rebuild is not None
    parts = plan.rebuild.partitions
    said = {
        "deleted": total(part.held for part in parts).number,
        "diverged": plan.tail.number,
        "anew": total(part.anew for part in parts).number,
        "gone": plan.rebuild.gone.number,
    }
    true = {"deleted": _count(before), "diverged": _count(tail), "anew": _count(there), "gone": 0}
    return [] if said == true else [f"the plan told {said}, and it is {true}"]


def same_on_both(stage: FailbackStage) -> list[str]:
    """Each record once, in order, with key, headers and time."""
    olds, news = (read(cluster, stage.stem, stage.partitions) for cluster in (stage.old, stage.new))
    wrong: list[str] = []
    for p in range(stage.partitions):
        old, new = ([_content(message) for message in side[p]] for side in (olds, news))
        if old != new or len({value for _, value, *_ in new}) != len(new):
            at = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), None)
            wrong.append(f"partition {p} differs at {at}: {len(old)} and {len(new)} records")
    return wrong


def _content(message: Message) -> tuple[object, ...]:
    return message.key(), message.value(), message.headers(), message.timestamp()


def kept(stage: FailbackStage, topic: str, tail: Log) -> list[str]:
    """Each record of the tail with the offset that it had, and no other."""
    found = read(stage.new, topic, stage.partitions) if any(tail.values()) else {}
    wrong: list[str] = []
    for p, messages in found.items():
        copies = [
            (int(dict(message.headers())["causeway.source.offset"]), message.value().decode())
            for message in messages
        ]
        if copies != tail[p]:
            wrong.append(f"the export of partition {p} holds {copies} and not {tail[p]}")
    return wrong
