"""What goes wrong, one function a kind. Each takes its choices from the seed's random numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from causeway.core.records.batches import parse_head
from causeway.core.records.record_frames import read_frames
from causeway.core.records.varint import wrap_int64, write_varint
from tests.simulation.by_hand import adopt_while_somebody_lifts
from tests.simulation.cluster.coordinator import ONGOING
from tests.simulation.cluster.loop import Process
from tests.simulation.cluster.partition_log import USUAL_MAX_BYTES, Stored, sealed
from tests.simulation.fencing import Fencing
from tests.simulation.scenario import Trouble

if TYPE_CHECKING:
    from tests.simulation.cluster.cluster import SimCluster
    from tests.simulation.world import World


def storm(world: World) -> None:
    for cluster in (world.source, world.target):
        cluster.is_stormy = True
    world.target.refuses_for_replicas = world.loop.random.choice((0.0, 0.0, 0.02))
    world.target.marker_delay = world.loop.random.choice((0.005, 0.05, 0.4))

    def calm() -> None:
        for cluster in (world.source, world.target):
            cluster.is_stormy = False

    world.loop.after(world.loop.random.uniform(0.2, 6), calm)


def small_map(world: World) -> None:
    """Somebody makes `max.message.bytes` of the map smaller than what most transactions have for it."""
    logs = [log for tp, log in world.target.logs.items() if tp.topic == world.flow_now().map_topic]
    for log in logs:
        log.max_bytes = world.loop.random.choice((1, 250))

    def enlarge() -> None:
        for log in logs:
            log.max_bytes = USUAL_MAX_BYTES

    world.loop.after(world.loop.random.choice((0.5, 5.0, 40.0)), enlarge)


def _busy(world: World) -> list[Process]:
    return [w.process for w in world.workers if w.is_busy and w.process.is_alive and not w.process.is_frozen]


def kill_worker(world: World) -> None:
    _when_busy(world, lambda process: process.kill())


def freeze_worker(world: World) -> None:
    _when_busy(world, lambda process: _freeze(world, process))


def _when_busy(world: World, act: Callable[[Process], None], tries: int = 20) -> None:
    """A moment in the middle of a lane's work, not between two rounds."""
    busy = _busy(world)
    if busy:
        process = world.loop.random.choice(busy)
        world.loop.note(lambda: f"hits {process.name}")
        act(process)
    elif tries and not world.is_over:
        world.loop.after(world.loop.random.uniform(0.005, 0.2), lambda: _when_busy(world, act, tries - 1))


def _freeze(world: World, process: Process) -> None:
    process.freeze()
    seconds = world.loop.random.choice((0.05, 0.5, 3.0, 15.0))
    world.loop.after(world.loop.random.uniform(0, seconds), process.thaw)


def _driver(world: World) -> Process | None:
    alive = [r.process for r in world.runs if r.process.is_alive and not r.ended.is_done]
    return world.loop.random.choice(alive) if alive else None


def kill_driver(world: World) -> None:
    process = _driver(world)
    if process is not None:
        process.kill()


def freeze_driver(world: World) -> None:
    process = _driver(world)
    if process is not None and not process.is_frozen:
        _freeze(world, process)


def second_run(world: World) -> None:
    world.start_run(take_over=world.loop.random.random() < 0.8)


def _crash(world: World, cluster: SimCluster) -> None:
    up = [node for node in cluster.nodes if node.is_up]
    if up:
        node = cluster.random.choice(up)
        node.crash()
        world.loop.after(
            cluster.random.choice((0.02, 0.3, 1.5)), lambda: None if node.is_up else node.restart()
        )


def target_crash(world: World) -> None:
    _crash(world, world.target)


def source_crash(world: World) -> None:
    _crash(world, world.source)


def _depose(world: World, cluster: SimCluster) -> None:
    in_touch = [node for node in cluster.nodes if node.is_in_touch]
    if len(in_touch) > 1:
        node = cluster.random.choice(in_touch)
        node.lose_touch()
        world.loop.after(cluster.random.choice((0.1, 1.0, 5.0)), node.find_touch)


def target_deposed(world: World) -> None:
    _depose(world, world.target)


def source_deposed(world: World) -> None:
    _depose(world, world.source)


def target_freeze(world: World) -> None:
    node = world.loop.random.choice(world.target.nodes)
    if node.is_up and not node.is_frozen:
        node.freeze()
        seconds = world.loop.random.choice((0.1, 1.0, 4.0))
        world.loop.after(seconds, lambda: node.thaw() if node.is_frozen else None)


def _elect(cluster: SimCluster, *, unclean: bool, topic: str) -> None:
    led = [tp for tp in cluster.topics[topic].partitions if cluster.leaders[tp] >= 0]
    if led:
        cluster.elect(cluster.random.choice(led), unclean=unclean)


def target_election(world: World) -> None:
    names = list(world.target.topics)
    _elect(world.target, unclean=False, topic=world.loop.random.choice(names))


def source_election(world: World) -> None:
    _elect(world.source, unclean=False, topic="orders")


def target_unclean(world: World) -> None:
    _elect(world.target, unclean=True, topic="sf.orders")


def source_unclean(world: World) -> None:
    _elect(world.source, unclean=True, topic="orders")


def coordinator_moves(world: World) -> None:
    world.target.move_coordinators()


def offsets_expire(world: World) -> None:
    """After a week without a run: nobody has the flow, every transaction is over."""
    if any(t.state == ONGOING for t in world.target.coordinator.known.values()):
        return
    world.expired = True
    world.target.groups.committed.clear()


def ids_expire(world: World) -> None:
    world.target.coordinator.expire_idle()


def producers_forgotten(world: World) -> None:
    for log in world.target.logs.values():
        log.forget_idle_producers()


def foreign_writer(world: World) -> None:
    tp = world.loop.random.choice(list(world.mirrors))
    if world.target.leaders[tp] >= 0:
        world.append_foreign(tp)


def foreign_transaction(world: World) -> None:
    """Open for a while, then committed, aborted or left hanging."""
    tp = world.loop.random.choice(list(world.mirrors))
    if world.target.leaders[tp] < 0:
        return
    producer_id = world.target.next_producer_id()
    world.append_foreign(tp, producer=(producer_id, 0, 0))
    ending = world.loop.random.choice((True, False, None))
    if ending is not None:
        world.loop.after(
            world.loop.random.uniform(0.1, 2),
            lambda: (
                world.target.mark_directly(tp, producer_id, 0, commit=ending)
                if world.target.leaders[tp] >= 0
                else None
            ),
        )


def compaction(world: World) -> None:
    """The source's cleaner takes records out of batches, whole batches, and keeps some of them empty."""
    random = world.source.random
    for tp, history in world.histories.items():
        log, gone = history.log, set[int]()
        history.read_on()
        for index, batch in enumerate(log.batches):
            if (
                index > len(log.batches) - 3
                or batch.next > log.last_stable
                or batch.commits is not None
                or random.random() < 0.6
            ):
                continue
            if log.hides(batch):
                continue
            smaller, lost = _thinned(batch, random)
            log.batches[index] = smaller
            gone |= lost
        tail = log.batches[-3:]  # the active segment is never cleaned
        kept = [b for b in log.batches[:-3] if b.head.record_count or random.random() < 0.5]
        log.batches = kept + tail
        history.make_optional(gone)
        world.loop.note(partial("compaction of {} takes {}".format, tp, sorted(gone)))


def _thinned(batch: Stored, random: Random) -> tuple[Stored, set[int]]:
    view = memoryview(batch.data)
    frames = read_frames(view, batch.head) if batch.head.record_count else []
    kept = [frame for frame in frames if random.random() < random.choice((0.0, 0.5))]
    head = batch.head
    payload = bytearray()
    for frame in kept:
        record = bytearray(1)
        write_varint(record, wrap_int64(frame.timestamp_ms - head.base_timestamp))
        write_varint(record, frame.offset - head.base_offset)
        record += frame.body
        write_varint(payload, len(record))
        payload += record
    data = sealed(
        head.base_offset,
        head.leader_epoch,
        bytes(payload),
        head.attributes & ~7,
        (head.last_offset_delta, head.base_timestamp, head.max_timestamp),
        (head.producer_id, head.producer_epoch, head.base_sequence),
        len(kept),
    )
    stored = Stored(batch.base, batch.next, data, parse_head(memoryview(data)))
    return stored, {f.offset for f in frames} - {f.offset for f in kept}


def retention(world: World) -> None:
    """The source's log start moves, sometimes past what is copied; sometimes the target's does."""
    random = world.source.random
    tp = random.choice(list(world.histories))
    log = world.histories[tp].log
    target = next(m.target for m in world.mirrors.values() if m.history.log is log)
    if random.random() < 0.3:
        mirror = world.target.logs[target]
        mirror.retain_from(random.randint(mirror.start, max(mirror.start, mirror.last_stable)))
        world.trimmed_mirrors.add(target)
        return
    before = log.start
    log.retain_from(random.randint(log.start, max(log.start, log.last_stable)))
    world.trimmed.add(tp)
    if world.position_of(target) is None:
        world.histories[tp].make_optional(set(range(before, log.start)))


def fence(world: World) -> None:
    """One at a time: a lift opens the flow whoever fenced it."""
    if world.is_fencing:
        return
    world.is_fencing = True
    fencing = Fencing(world)

    async def turn() -> None:
        await fencing.turn(fenced=True)
        await fencing.clock.sleep(world.loop.random.uniform(0.1, 2))
        await fencing.turn(fenced=False)
        world.is_fencing = False

    fencing.process.spawn(turn())


def other_lanes(world: World) -> None:
    world.lanes = world.loop.random.choice((1, 2, 3, 4))


def adopt(world: World) -> None:
    adopt_while_somebody_lifts(world)


TROUBLES: dict[Trouble, Callable[[World], None]] = {trouble: globals()[trouble.value] for trouble in Trouble}
