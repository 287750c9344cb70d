"""Stories of one mirror: it copies, is fenced, is set by hand, takes over from another one.

Each holds for itself what readers have to see in the end; `life.py` holds that the janitor changes nothing.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from causeway.core.model.flow import Start
from causeway.core.state.parked import ParkReason
from causeway.usecases.offsets.maintain_map import maintain_map
from causeway.usecases.repair.accept_gap import accept_gap
from causeway.usecases.repair.adopt import adopt_partition
from causeway.usecases.repair.reconcile import reconcile_partition
from causeway.usecases.repair.restart_topic import restart_topic
from causeway.usecases.repair.set_positions import Reason
from causeway.usecases.run_lock.fence import fence_flow, lift_fence
from tests.integration.failback.stage import read
from tests.integration.takeover.histories import LETTERS, History
from tests.integration.takeover.histories import write as write_letters
from tests.integration.takeover.stage import TakeoverStage
from tests.proofs.expiry.life import Life, at, contents
from tests.support.inline_flow import create_topic, delete_records, delete_topic, grow_topic
from tests.support.mirroring import Mirror

WHY = Reason(by="a test", because="it is one")
Contents = dict[int, list[tuple[bytes | None, bytes | None]]]


def _sides(life: Life) -> tuple[Contents, Contents]:
    """As they were seen last."""
    return life.seen("source")[-1], life.seen("mirror")[-1]


def _quiet(life: Life, start: Start) -> tuple[Contents, Contents]:
    """One partition is busy, one falls silent, one has no record for long, one is new."""
    topic = life.topic("quiet", 3)
    life.write(life.old, topic, 20, 0)
    life.write(life.old, topic, 20, 1)
    mirror = life.mirror(topic, start=start)
    for _ in range(2):
        life.run(mirror)
        life.write(life.old, topic, 10, 0)
    grow_topic(life.old, topic, 4)
    life.run(mirror)
    for partition in (1, 2, 3):
        life.write(life.old, topic, 5, partition)
    life.run(mirror)
    maintain_map(mirror.flow, life.new.endpoint(), lambda _: None)
    life.step("map maintained")
    life.write(life.old, topic, 5, 1)
    life.run(mirror)
    life.both_sides(mirror, topic, 4)
    life.note("verify", mirror.verify().exit_code)
    assert life.seen("verify") == [0]
    return _sides(life)


def quiet_from_earliest(life: Life) -> None:
    source, mirrored = _quiet(life, Start("earliest"))
    assert mirrored == source


def quiet_from_latest(life: Life) -> None:
    source, mirrored = _quiet(life, Start("latest"))
    assert mirrored == {p: log[20:] if p < 2 else log for p, log in source.items()}


def quiet_from_a_moment(life: Life) -> None:
    """Which is later than all records: as `latest`, but another question to the brokers."""
    source, mirrored = _quiet(life, Start("timestamp", timestamp_ms=4_102_444_800_000))
    assert mirrored == {p: log[20:] if p < 2 else log for p, log in source.items()}


def fenced_and_lifted(life: Life) -> None:
    topic = life.topic("fenced", 2)
    mirror, target = life.mirror(topic, start=Start("latest")), life.new.endpoint()
    life.run(mirror)
    life.write(life.old, topic, 20)
    life.run(mirror)
    fence_flow(mirror.flow, target, by="ops", because="a week off")
    life.step("fence")
    for partition in (0, 1):
        life.write(life.old, topic, 10, partition)
    lift_fence(mirror.flow, target, by="ops", because="back again")
    life.step("lift")
    life.run(mirror)
    life.both_sides(mirror, topic, 2)
    source, mirrored = _sides(life)
    assert mirrored == source


def _adopt(life: Life, mirror: Mirror, topic: str, offset: int, *, healthy: bool = False) -> None:
    ends = life.old.endpoint(), life.new.endpoint()
    done = adopt_partition(mirror.flow, *ends, at(topic), offset, WHY, even_though_healthy=healthy)
    life.step("adopt", (done.source_offset, done.stood_at, done.is_healthy))


def adopted(life: Life) -> None:
    """Moved on by a person, quiet for long, then written to; its sibling isn't concerned."""
    topic = life.topic("adopted", 2)
    for partition in (0, 1):
        life.write(life.old, topic, 20, partition)
    mirror = life.mirror(topic)
    life.run(mirror)
    life.write(life.old, topic, 10)
    _adopt(life, mirror, topic, 30, healthy=True)
    life.run(mirror)
    for partition in (0, 1):
        life.write(life.old, topic, 5, partition)
    life.run(mirror)
    life.both_sides(mirror, topic, 2)
    source, mirrored = _sides(life)
    assert mirrored == {0: source[0][:20] + source[0][30:], 1: source[1]}


def gap_accepted(life: Life) -> None:
    topic = life.topic("gap", 1)
    life.write(life.old, topic, 20)
    mirror = life.mirror(topic)
    life.run(mirror)
    life.write(life.old, topic, 20)
    before = topic_contents(life, topic)
    delete_records(life.old, topic, 30)
    assert life.run(mirror).parked
    ends = life.old.endpoint(), life.new.endpoint()
    done = accept_gap(mirror.flow, *ends, at(topic), 20, 30, WHY)
    life.step("accept-gap", (done.entry.gap.first, done.entry.gap.end))
    again = accept_gap(mirror.flow, *ends, at(topic), 20, 30, WHY)
    life.step("accept-gap again", again.adopted is None)
    life.run(mirror)
    life.both_sides(mirror, topic)
    assert _sides(life)[1][0] == before[:20] + before[30:]


def topic_contents(life: Life, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    return contents(read(life.old, topic, 1)[0])


def restarted(life: Life) -> None:
    """The source's topic was recreated, and nobody writes to it for long."""
    topic = life.topic("restarted")
    life.write(life.old, topic, 20)
    mirror = life.mirror(topic)
    life.run(mirror)
    before = topic_contents(life, topic)
    delete_topic(life.old, topic)
    create_topic(life.old, topic)
    assert life.run(mirror).parked
    done = restart_topic(mirror.flow, life.old.endpoint(), life.new.endpoint(), topic, WHY)
    life.step("restart-topic", done.how)
    again = restart_topic(mirror.flow, life.old.endpoint(), life.new.endpoint(), topic, WHY)
    life.step("restart-topic again", again.how)
    life.run(mirror)
    life.write(life.old, topic, 10)
    life.run(mirror)
    life.both_sides(mirror, topic)
    source, mirrored = _sides(life)
    assert mirrored[0] == before + source[0]


def reconciled(life: Life) -> None:
    topic = life.topic("reconciled")
    life.write(life.old, topic, 20)
    mirror = life.mirror(topic)
    life.run(mirror)
    life.write(life.new, f"sf.{topic}", 3)
    life.write(life.old, topic, 10)
    assert life.run(mirror).parked
    done = reconcile_partition(mirror.flow, life.old.endpoint(), life.new.endpoint(), at(topic), WHY)
    life.step("reconcile", (done.found.found, done.found.foreign, done.found.beginning.source_next))
    life.run(mirror)
    life.write(life.old, topic, 5)
    life.run(mirror)
    life.both_sides(mirror, topic)
    source, mirrored = _sides(life)
    assert mirrored[0][:20] + mirrored[0][23:] == source[0]


def renamed(life: Life) -> None:
    """Under its new name a flow finds the place that its old one had, though neither has ever copied."""
    topic = life.topic("renamed")
    life.write(life.old, topic, 20)
    old_name = life.mirror(topic, start=Start("latest"))
    life.run(old_name)
    life.write(life.old, topic, 10)
    new = life.mirror(topic, name=f"new_{old_name.flow.name}", start=Start("latest"))
    assert [p.parked["reason"] for p in life.run(new).parked if p.parked] == [ParkReason.OTHER_FLOW]
    done = reconcile_partition(new.flow, life.old.endpoint(), life.new.endpoint(), at(topic), WHY)
    life.flows.remove((old_name.flow, life.new))  # it is fenced permanently, and shares its map
    life.step("reconcile", done.found.beginning.source_next)
    life.run(new)
    life.both_sides(new, topic)
    source, mirrored = _sides(life)
    assert mirrored[0] == source[0][20:]


TAKEN = [
    # source, target, committed, syncs; where it goes on
    (LETTERS, "abcd", 1, [(0, 0)], 4),
    (LETTERS, "abcdbcde", 0, [(0, 0)], 5),
    (LETTERS, "abc", None, [], 3),
    (LETTERS, LETTERS, 7, [(0, 0)], 8),
    ("", "", None, [], 0),
]


def taken_over(life: Life) -> None:
    """From MirrorMaker 2's own words, written by hand; some partitions fall silent with the takeover."""
    with tempfile.TemporaryDirectory() as folder:
        scene = TakeoverStage(life.old, life.new, Path(folder), (f"taken-{life.name}",), len(TAKEN))
        life.leave(scene.close)
        _take_over(life, scene)


def _take_over(life: Life, scene: TakeoverStage) -> None:
    scene.write_flows()
    history, (topic,) = History(scene), scene.topics
    for source, target, committed, syncs, _ in TAKEN:
        history.add(source, target, committed, syncs)
    code, told, said = scene.adopt()
    assert code == 0, said
    mirror = Mirror(scene.flow, life.old, life.new)
    life.leave(mirror.close)
    life.flows.append((mirror.flow, life.new))
    found = [row["source_offset"] for row in told["flows"][0]["partitions"]]
    life.step("import-mm2 --adopt", found)
    assert found == [place for *_, place in TAKEN]
    again = scene.adopt()[1]["flows"][0]["partitions"]
    life.step("import-mm2 again", [(row["outcome"], row["source_offset"]) for row in again])
    for _ in range(2):
        life.run(mirror)
        for partition in range(len(TAKEN)):
            write_letters(scene.source, topic, partition, "xy")
    life.run(mirror)
    for partition, (source, target, *_, place) in enumerate(TAKEN):
        shown = "".join((each[1] or b"").decode() for _, each in scene.targets(at(f"sf.{topic}", partition)))
        life.note("mirror", (partition, shown))
        assert shown == target + source[place:] + "xyxy"


STORIES = {
    story.__name__: story
    for story in (
        quiet_from_earliest,
        quiet_from_latest,
        quiet_from_a_moment,
        fenced_and_lifted,
        adopted,
        gap_accepted,
        restarted,
        reconciled,
        renamed,
        taken_over,
    )
}
