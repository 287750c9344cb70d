"""What MirrorMaker 2 may leave, written by hand in its formats: found, or refused with its reason."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer

from causeway.core.kernel.identity import TopicPartition
from causeway.usecases.takeover import run as takeover
from tests.integration.takeover.conftest import MakeStage
from tests.integration.takeover.histories import LETTERS, History, open_transaction, write
from tests.support.mirroring import end_offsets

pytestmark = pytest.mark.integration
PARKED, HELD = 5, 4


FOUND = [
    # source, target, committed, syncs; outcome, where it goes on, what is printed
    (LETTERS, "abcd", 1, [(0, 0)], ("adopted", 4, "written up to 3, after the last commit")),
    (LETTERS, "abcdbcde", 0, [(0, 0)], ("adopted", 5, "3 are there twice")),
    (LETTERS, "abcdefcd", 1, [(0, 0), (2, 6)], ("adopted", 6, "2 are there twice")),
    (LETTERS, "abcdefab", None, [(0, 0), (0, 6)], ("adopted", 6, "2 are there twice")),
    (LETTERS, "abcdefbcd", 2, [(0, 0), (1, 6)], ("adopted", 6, "3 are there twice")),
    (LETTERS, "abcdefbcd", 2, [(1, 6)], ("refused", None, "may be at target offset 4 already")),
    ("abcbbcde", "abcb", 2, [(0, 0), (2, 2)], ("adopted", 4, "by offset syncs")),
    (LETTERS, "abcd", 2, [], ("adopted", 4, "by records")),
    (LETTERS, "abc", None, [], ("adopted", 3, "by both beginnings")),
    (LETTERS, "ab", 3, [(0, 0)], ("adopted", 2, "2 that were committed are not there: copied again")),
    ("aaaaaaaa", "aaaaa", 2, [(0, 0), (2, 2)], ("adopted", 5, "by offset syncs")),
    (LETTERS, "", None, [], ("begins", 0, "")),
    (LETTERS, "abcx", 1, [(0, 0)], ("refused", None, "isn't source offset 3, and is nowhere before it")),
    (LETTERS, "abef", 1, [(0, 0), (4, 2)], ("refused", None, "went from 1 to 4")),
    ("aaaaaaaa", "aaaa", 0, [], ("refused", None, "are 4 times on the target")),
    (LETTERS, "", 3, [], ("refused", None, "the target shows no record")),
]


def test_each_partition_is_found_or_refused_with_its_reason(stage: MakeStage) -> None:
    scene = stage("found", partitions=len(FOUND) + 1)
    scene.write_flows()
    history = History(scene)
    for source, target, committed, syncs, _ in FOUND:
        history.add(source, target, committed, syncs)
    history.add(LETTERS, "a", 0, [(0, 0)])
    hanging = open_transaction(scene, len(FOUND))

    code, told, said = scene.adopt()
    assert code == PARKED, said
    rows = told["flows"][0]["partitions"]
    for row, (*_, expected) in zip(rows, FOUND, strict=False):
        outcome, source_next, why = expected
        assert (row["outcome"], row["source_offset"]) == (outcome, source_next), row
        assert why in row["why"], row
        if outcome == "refused":
            number = row["source"].rpartition("-")[2]
            assert f"`causeway adopt sf_to_nyc {scene.topics[0]} {number} OFFSET --because" in row["why"]
    assert "a transaction is open on the target from offset 1 on" in rows[-1]["why"]
    hanging.abort_transaction(60)

    with scene.mirror() as mirror:
        report = mirror.run()
    refused = {row["source"] for row in rows if row["outcome"] == "refused"}
    assert {each.source for each in report.parked} == refused, "loud until somebody decides"
    for row, (source, target, *_) in zip(rows, FOUND, strict=False):
        if row["outcome"] != "refused":
            at = TopicPartition(*split(row["target"]))
            shown = "".join((content[1] or b"").decode() for _, content in scene.targets(at))
            assert shown == target + source[row["source_offset"] :], row
    code, told, _ = scene.adopt()
    again = told["flows"][0]["partitions"]
    assert code == PARKED
    assert again[-1]["outcome"] == "adopted", "its transaction has ended"
    assert {row["outcome"] for row in again[:-1]} == {"stands", "refused"}


def split(name: str) -> tuple[str, int]:
    topic, _, partition = name.rpartition("-")
    return topic, int(partition)


def test_who_works_there_is_not_pushed_aside(stage: MakeStage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A member of MirrorMaker's group; a mirror that grows while it is compared, and at the last moment."""
    scene = stage("held", partitions=1)
    scene.write_flows()
    History(scene).add(LETTERS, "abcd", 1, [(0, 0)])
    member = Consumer({**scene.target.endpoint().settings, "group.id": "sf-mm2"})
    member.subscribe([f"sf.{scene.topics[0]}"])
    while not member.assignment():
        member.poll(0.1)
    before = end_offsets(scene.target)
    code, _, said = scene.adopt(patient=False)
    assert (code, "has a worker that is at work" in said) == (HELD, True)
    member.close()
    assert scene.adopt("--dry-run")[0] == 0

    async def grow(*_: object) -> None:
        write(scene.target, f"sf.{scene.topics[0]}", 0, "e")

    real = takeover._Work.watch

    async def grow_and_watch(*given: Any) -> None:
        await grow()
        await real(*given)

    with monkeypatch.context() as living:
        living.setattr(takeover._Work, "watch", grow_and_watch)
        code, _, said = scene.adopt(patient=False)
    assert (code, "MirrorMaker 2 still writes" in said) == (HELD, True)
    with monkeypatch.context() as living:
        living.setattr(takeover._Work, "watch", grow)
        code, _, said = scene.adopt(patient=False)
    assert (code, "somebody writes there" in said) == (HELD, True)
    code, told, said = scene.adopt()
    assert code == 0, said
    (row,) = told["flows"][0]["partitions"]
    assert (row["source_offset"], row["repeated"]) == (5, 1)
    assert end_offsets(scene.target)[f"sf.{scene.topics[0]}", 0] == (0, 6)
    assert before[f"sf.{scene.topics[0]}", 0] == (0, 4)
