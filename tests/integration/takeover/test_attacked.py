"""A takeover that is killed, repeated, waited with or written over, onto targets of both kinds: afterwards
each record is there as MirrorMaker 2 and then Causeway have written it, or the partition is parked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition as KafkaPartition

from causeway.brokers.wire.delete_offsets import forget_offsets
from causeway.brokers.wire.lane_transaction import LaneTransaction
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.report import RunReport
from causeway.core.kernel.identity import TopicPartition
from causeway.lab.clients import admin_client
from causeway.lab.cluster import LabCluster
from causeway.usecases.repair import set_positions
from causeway.usecases.session.both_clusters import open_target
from causeway.usecases.takeover import run as takeover
from tests.integration.takeover.histories import LETTERS, History, open_transaction, write
from tests.integration.takeover.stage import TakeoverStage

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("nobody_writes_there")]
PARKED, HELD = 5, 4
MirrorMaker = tuple[str, str, int | None, list[tuple[int, int]]]
LEFT: list[MirrorMaker] = [
    # source, target, committed, syncs
    (LETTERS, "abcdbcde", 0, [(0, 0)]),
    (LETTERS, "abc", None, []),
    (LETTERS, "", None, []),
    (LETTERS, LETTERS, 7, [(0, 0), (4, 4)]),
]
SHOWN = ["abcdbcdefgh", LETTERS, LETTERS, LETTERS]
"""Afterwards: what MirrorMaker had written twice stays twice."""


@pytest.fixture(params=["4.3.1", "3.9.2"])
def scene(
    request: pytest.FixtureRequest,
    sf: LabCluster,
    topic_name: Callable[..., str],
    tmp_path: Path,
) -> Iterator[TakeoverStage]:
    target = request.getfixturevalue("nyc" if request.param == "4.3.1" else "nyc_v1")
    made = TakeoverStage(sf, target, tmp_path, (topic_name("attacked"),), partitions=len(LEFT))
    made.write_flows()
    history = History(made)
    for left in LEFT:
        history.add(*left)
    yield made
    made.command("lift", "sf_to_nyc", "--because", "the test is over")
    made.close()


def shown(scene: TakeoverStage) -> list[str]:
    return [
        "".join((content[1] or b"").decode() for _, content in scene.targets(there))
        for _, there in scene.pairs
    ]


class Died(BaseException):
    """Nothing after it is done by this process."""


def kill_at(patched: pytest.MonkeyPatch, number: int) -> list[str]:
    """The acts that were begun; the one of this number, counted from 0, and all later ones aren't done."""
    acts: list[str] = []

    def counted(owner: type, name: str) -> None:
        do = getattr(owner, name)

        async def act(*arguments: Any, **how: Any) -> Any:
            acts.append(name)
            if len(acts) > number:
                raise Died(name)
            return await do(*arguments, **how)

        patched.setattr(owner, name, act)

    counted(WireTarget, "_append_batch")
    counted(WireTarget, "claim")
    counted(LaneTransaction, "commit_positions")
    counted(LaneTransaction, "end")
    patched.setattr(set_positions, "_lower", lambda *_: None)
    return acts


@pytest.mark.parametrize("runs_first", [False, True], ids=["said again", "run first"])
def test_killed_at_each_step_and_typed_again(
    scene: TakeoverStage, monkeypatch: pytest.MonkeyPatch, runs_first: bool
) -> None:
    """Its fence stands until somebody lifts it; then the same command ends what was begun."""
    number, died_at = 0, list[str]()
    while True:
        with monkeypatch.context() as patched:
            acts = kill_at(patched, number)
            try:
                code, _, said = scene.adopt()
            except Died:
                died_at.append(acts[number])
            else:
                break
        lift(scene)
        if runs_first:
            run(scene)
            assert all(s.startswith(now) for s, now in zip(SHOWN, shown(scene), strict=True)), acts
        number += 1
    acted = {"_append_batch", "claim", "commit_positions", "end"}
    assert set(died_at) == (acted - {"end"} if runs_first else acted), "a run ends what the ledger has"
    assert code == 0, said
    lift(scene)
    report = run(scene)
    assert (report.lag, list(report.parked)) == (0, [])
    assert shown(scene) == SHOWN
    code, _, said = scene.command("verify", "sf_to_nyc")
    assert code == 0, said


def test_a_run_before_the_takeover_takes_nothing_from_it(scene: TakeoverStage) -> None:
    """Somebody has opened the flow too early: the mirrors park, and MirrorMaker's word counts as before."""
    report = run(scene)
    assert {each.source for each in report.parked} == {str(here) for here, _ in written(scene)}
    code, told, said = scene.adopt()
    assert code == 0, said
    assert [row["outcome"] for row in told["flows"][0]["partitions"]] == [
        "adopted",
        "adopted",
        "stands",
        "adopted",
    ]
    assert list(run(scene).parked) == []
    assert shown(scene) == SHOWN
    assert scene.command("verify", "sf_to_nyc")[0] == 0


def test_positions_that_expire_before_the_first_run_are_not_lost(scene: TakeoverStage) -> None:
    """A week goes by between the takeover and the first run."""
    assert scene.adopt()[0] == 0
    forget_positions(scene)
    assert list(run(scene).parked) == []
    assert shown(scene) == SHOWN


def test_positions_that_expired_are_found_by_the_same_command(scene: TakeoverStage) -> None:
    """Before the first run, and after it, when the target holds more than MirrorMaker has written."""
    for _ in range(2):
        code, _, said = scene.adopt()
        assert code == 0, said
        forget_positions(scene)
        code, _, said = scene.adopt()
        assert code == 0, said
        assert list(run(scene).parked) == []
        assert shown(scene) == SHOWN


def test_what_somebody_sets_meanwhile_is_not_overwritten(
    scene: TakeoverStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A colleague decides by hand, while the mirrors are compared."""
    real, topic = takeover._Work.watch, scene.topics[0]
    by_hand_at = ("adopt", "sf_to_nyc", topic, "3", "6", "--because", "two of them come again")
    decided: list[int] = []

    async def and_somebody_adopts(work: Any, ground: Any) -> None:
        await real(work, ground)
        decided.append(scene.command(*by_hand_at)[0])

    with monkeypatch.context() as patched:
        patched.setattr(takeover._Work, "watch", and_somebody_adopts)
        code, _, said = scene.adopt(patient=False)
    assert decided == [0]
    assert (code, f"position of sf.{topic}-3 = 6: was set while" in said) == (HELD, True), said
    code, told, said = scene.adopt()
    assert code == 0, said
    assert told["flows"][0]["partitions"][3]["outcome"] == "stands"
    run(scene)
    assert shown(scene) == [*SHOWN[:3], f"{LETTERS}gh"]


def test_a_quiet_topic_that_retention_has_emptied_is_taken_over(scene: TakeoverStage) -> None:
    """There is nothing left to compare, and nothing left to copy: all of it was committed."""
    for here, _ in scene.pairs:
        delete_records(scene.source, here, len(LETTERS))
    code, told, said = scene.adopt()
    assert code == PARKED, said
    rows = told["flows"][0]["partitions"]
    assert [row["outcome"] for row in rows] == ["refused", "refused", "begins", "adopted"]
    assert (rows[3]["source_offset"], rows[3]["target_offset"]) == (len(LETTERS), len(LETTERS))
    here, _ = scene.pairs[3]
    write(scene.source, here.topic, here.partition, "xyz")
    run(scene)
    assert shown(scene)[3] == f"{LETTERS}xyz"


def test_what_mirror_maker_has_aborted_was_never_there(
    sf: LabCluster, nyc: LabCluster, topic_name: Callable[..., str], tmp_path: Path
) -> None:
    """Exactly-once MirrorMaker that was killed in its first transaction: nothing but markers."""
    scene = TakeoverStage(sf, nyc, tmp_path, (topic_name("aborted"),), partitions=1)
    scene.write_flows()
    History(scene).add(LETTERS, "", None)
    open_transaction(scene, 0).abort_transaction(60)
    code, told, said = scene.adopt()
    assert code == 0, said
    (row,) = told["flows"][0]["partitions"]
    assert (row["outcome"], row["source_offset"]) == ("begins", 0)
    assert list(run(scene).parked) == []
    assert shown(scene) == [LETTERS]
    assert scene.command("verify", "sf_to_nyc")[0] == 0


def lift(scene: TakeoverStage) -> None:
    assert scene.command("lift", "sf_to_nyc", "--because", "whoever raised it was killed")[0] == 0


def run(scene: TakeoverStage) -> RunReport:
    with scene.mirror() as mirror:
        return mirror.run()


def written(scene: TakeoverStage) -> list[tuple[TopicPartition, TopicPartition]]:
    """The pairs of which MirrorMaker has copied something."""
    return [pair for pair, left in zip(scene.pairs, LEFT, strict=True) if left[1]]


def forget_positions(scene: TakeoverStage) -> None:
    targets = [there for _, there in scene.pairs]
    with open_target(scene.target.endpoint()) as (network, target):
        assert network.run(lambda: forget_offsets(target.wire, scene.flow.group, targets)) is None


def delete_records(cluster: LabCluster, at: TopicPartition, before: int) -> None:
    where = KafkaPartition(at.topic, at.partition, before)
    admin = admin_client(cluster.endpoint())
    for answer in admin.delete_records([where]).values():
        answer.result(60)
