"""Random failovers, each held against what readers of both clusters see, record by record.

Times that jitter, transactions with aborts, several runs of the mirror, records that are missing, groups
that stand anywhere; then a moment, or `latest`. What the sheet says is lost, read again and skipped has to
be so.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from confluent_kafka import IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import OffsetSpec

from causeway.core.failover.impact_sheet import Sheet
from causeway.lab.clients import admin_client
from tests.integration.failover.stage import BASE_MS, FailoverStage, Seen
from tests.support.quick import init_transactions

GROUPS = ("a", "b", "c")
_SPAN_MS = 600_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """Of one trial: what differs, in words; nothing if all is as on the sheet."""

    seed: int
    moved: int
    lost: int
    rereads: int
    skips: int
    wrong: tuple[str, ...]


def play(stage: FailoverStage, seed: int) -> Verdict:
    dice = random.Random(seed)
    _write_some(stage, dice)
    for _ in range(dice.randrange(1, 4)):
        stage.run()
        _write_some(stage, dice)
    _wait_until_decided(stage)
    source = stage.seen(stage.source, stage.stem)
    stands = {name: _somewhere(source, stage.partitions, dice) for name in GROUPS}
    for name, offsets in stands.items():
        stage.commit(name, offsets)
    moment = None if dice.random() < 0.25 else BASE_MS + dice.randrange(_SPAN_MS)
    done = stage.fail_over(stage.wish(moment, clamp=True))
    assert done.sheet is not None
    target = stage.seen(stage.target, stage.mirrored)
    wrong = [*_lost(done.sheet, source, target)]
    for name, offsets in stands.items():
        wrong += _price(stage, done.sheet, name, offsets, source, target)
        if moment is not None:
            wrong += _places(stage, name, moment, target)
    figures = [(move.rereads.number or 0, move.skips.number or 0) for move in done.sheet.plan.moves]
    return Verdict(
        seed=seed,
        moved=done.moved,
        lost=done.sheet.lost.number or 0,
        rereads=sum(rereads for rereads, _ in figures),
        skips=sum(skips for _, skips in figures),
        wrong=tuple(wrong),
    )


def _write_some(stage: FailoverStage, dice: random.Random) -> None:
    """Plain, or in transactions of which some are aborted; times rise, and jitter if the dice say so."""
    jitter_ms = dice.choice((0, 0, 5_000))
    settings = {**stage.source.endpoint().settings, "linger.ms": 2}
    is_transactional = dice.random() < 0.5
    if is_transactional:
        settings["transactional.id"] = f"{stage.stem} {dice.random()}"
    producer = Producer(settings)
    if is_transactional:
        init_transactions(producer, 30)
    begin_ms = dice.randrange(_SPAN_MS // 2)
    for piece in range(dice.randrange(1, 5)):
        if is_transactional:
            producer.begin_transaction()
        for number in range(dice.randrange(1, 60)):
            time_ms = BASE_MS + begin_ms + piece * 20_000 + number * 300 + dice.randrange(jitter_ms + 1)
            value = f"{dice.getrandbits(64):x}".encode()
            producer.produce(stage.stem, value, partition=dice.randrange(stage.partitions), timestamp=time_ms)
        assert producer.flush(30) == 0
        if is_transactional and dice.random() < 0.3:
            producer.abort_transaction(30)
        elif is_transactional:
            producer.commit_transaction(30)


def _wait_until_decided(stage: FailoverStage) -> None:
    """A producer's commit returns before its markers are in the log: until then readers don't see it all."""
    admin = admin_client(stage.source.endpoint())
    wanted = {TopicPartition(stage.stem, p): OffsetSpec.latest() for p in range(stage.partitions)}
    while True:
        ends = [
            {tp: answer.result(30).offset for tp, answer in answers.items()}
            for answers in (
                admin.list_offsets(wanted, isolation_level=isolation)
                for isolation in (IsolationLevel.READ_UNCOMMITTED, IsolationLevel.READ_COMMITTED)
            )
        ]
        if ends[0] == ends[1]:
            return


def _somewhere(source: list[Seen], partitions: int, dice: random.Random) -> dict[int, int]:
    found = {}
    for p in range(partitions):
        offsets = [offset for partition, offset, _, _ in source if partition == p]
        found[p] = dice.choice([0, *offsets, *([offsets[-1] + 1] if offsets else [])])
    return found


def _lost(sheet: Sheet, source: list[Seen], target: list[Seen]) -> list[str]:
    arrived = {value for *_, value in target}
    lost = sum(value not in arrived for *_, value in source)
    return [] if sheet.lost.number == lost else [f"lost: the sheet says {sheet.lost}, {lost} are missing"]


def _price(
    stage: FailoverStage,
    sheet: Sheet,
    name: str,
    stood: dict[int, int],
    source: list[Seen],
    target: list[Seen],
) -> list[str]:
    """What this group reads from its new place on, beside what it had read from its old one."""
    wrong, now = [], stage.there(name)
    moves = {m.target.partition: m for m in sheet.plan.moves if m.group == stage.group(name)}
    for p, at in now.items():
        read = {value for partition, offset, _, value in source if partition == p and offset < stood[p]}
        here = [(offset, value) for partition, offset, _, value in target if partition == p]
        again = sum(offset >= at and value in read for offset, value in here)
        never = sum(offset < at and value not in read for offset, value in here)
        move = moves[p]
        if (move.rereads.number, move.skips.number) != (again, never):
            said = f"{move.rereads} again and {move.skips} never"
            wrong.append(
                f"{name} on {p}: the sheet says {said}, and it reads {again} again and {never} never"
            )
    return wrong


def _places(stage: FailoverStage, name: str, moment: int, target: list[Seen]) -> list[str]:
    """The first record that isn't earlier, or one before it; after all of them the end."""
    wrong = []
    for p, at in stage.there(name).items():
        here = [(offset, time_ms) for partition, offset, time_ms, _ in target if partition == p]
        first = next((offset for offset, time_ms in here if time_ms >= moment), None)
        visible = next((offset for offset, _ in here if offset >= at), None)
        if first is None and visible is not None:
            wrong.append(f"{name} on {p}: nothing is as late, and it doesn't stand at the end but at {at}")
        if first is not None and at != first:
            wrong.append(f"{name} on {p}: the first record of that moment is {first}, and it stands at {at}")
    return wrong
