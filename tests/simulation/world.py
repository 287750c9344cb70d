"""One seed's world: two clusters, writers, runs of a flow, troubles, and the invariants after each step.

    python -m tests.simulation.replay SEED

Checked while it goes on: what each target partition shows is a prefix of what the source shows; when a
transaction is complete, position and data agree and the map's new runs are exact; nothing is appended after
a fence; lanes keep the rules of conduct. At the end, with all troubles over: everything is copied, or is
parked for a reason that really happened.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

from causeway.core.copy.lanes import lane_of
from causeway.core.copy.producer import ProducerState
from causeway.core.kernel.identity import TargetOffset, TopicPartition
from causeway.core.model.flow import CopyLimits, Flow
from causeway.core.model.naming import FLOWS_TOPIC, PrefixNaming
from causeway.core.model.topic_filter import TopicFilter
from causeway.core.offsets.map_entries import MapTransaction
from causeway.core.offsets.offset_map import MappedRange, valid_ranges
from causeway.core.records.compression import Codec
from causeway.core.records.records import Record, encode_batch
from causeway.core.state.parked import Parked, ParkReason
from causeway.core.state.position import Position, parse_position
from tests.simulation.cluster.cluster import SimCluster
from tests.simulation.cluster.coordinator import PREPARE_ABORT, PREPARE_COMMIT
from tests.simulation.cluster.faults import TROUBLES
from tests.simulation.cluster.history import Broken, History, Mirror, records_of
from tests.simulation.cluster.loop import START_MS, Loop, Process
from tests.simulation.cluster.partition_log import USUAL_MAX_BYTES
from tests.simulation.cluster.request_rules import Conduct
from tests.simulation.cluster.writers import SourceWriter
from tests.simulation.driver import DrivenRun
from tests.simulation.fencing import Fencing
from tests.simulation.scenario import Scenario, Trouble
from tests.simulation.starts import Starts
from tests.simulation.workers import SimWorker

_MAP_PARTITIONS = 2
_MOST_LAST_RUNS = 8


class World:
    def __init__(self, scenario: Scenario, *, with_conduct: bool = True, stirred: int | None = None) -> None:
        """`stirred`: what is written to the source and happens to it is the seed's alone, whatever runs do;
        everything else comes from the seed and this number."""
        self.scenario, self._with_conduct, self._is_stirred = scenario, with_conduct, stirred is not None
        self.loop = Loop(scenario.seed if stirred is None else f"{scenario.seed} stirred {stirred}")
        self.conduct = Conduct()
        self.source = SimCluster(self.loop, "sf", nodes=scenario.source_nodes, random=self.random_of("sf"))
        self.target = SimCluster(self.loop, "nyc", nodes=scenario.target_nodes, is_v2=scenario.is_v2)
        self.lanes = scenario.lanes
        self.histories: dict[TopicPartition, History] = {}
        self.starts = Starts(scenario.start, self.histories)
        self._writers: list[SourceWriter] = []
        self._flow = _flow(scenario)
        self._make_topics()
        self.workers: list[SimWorker] = []
        self.runs: list[DrivenRun] = []
        self.started_tasks = 0
        self.is_fenced = self.is_fencing = False
        self.forgets_markers = False
        """A node that never got an abort's marker takes more of that epoch, fenced or not: to be seen, it
        would have to be committed."""
        self.is_over = False
        self.trimmed: set[TopicPartition] = set()
        self.trimmed_mirrors: set[TopicPartition] = set()
        self.foreign: set[TopicPartition] = set()
        self.expired = False
        self.records = 0
        self.settled = 0
        """As the lanes' rows tell it."""
        self.checks = 0
        self._map_read: dict[TopicPartition, int] = {}
        self._watch()

    def random_of(self, part: object) -> Random:
        """Of a part of the source."""
        return Random(f"{self.scenario.seed} {part}") if self._is_stirred else self.loop.random

    def _make_topics(self) -> None:
        names = self._flow
        self.source.create_topic("orders", self.scenario.partitions)
        mirrored = self.target.create_topic("sf.orders", self.scenario.partitions)
        self.target.create_topic(FLOWS_TOPIC, 1)
        self.target.create_topic(names.map_topic, _MAP_PARTITIONS)
        for tp in self.source.topics["orders"].partitions:
            self.histories[tp] = History(self.source.logs[tp])
        self.mirrors = {tp: self._mirror(tp) for tp in mirrored.partitions}
        self.source.refused_lookups = self.scenario.refused_lookups
        for cluster in (self.source, self.target):
            cluster.weather = self.scenario.weather
        self.source.most_batches_of_a_fetch = self.scenario.most_batches
        self.target.most_epochs = self.scenario.most_epochs
        if any(trouble is Trouble.COMPACTION for _, trouble in self.scenario.troubles):
            self.source.topics["orders"].cleanup_policy = "compact"

    def _mirror(self, tp: TopicPartition) -> Mirror:
        source = TopicPartition("orders", tp.partition)
        return Mirror(tp, self.target.logs[tp], self.histories[source], lambda: self.starts.of(source))

    def _grow(self) -> None:
        """On both sides at once: a run grows the mirror before it plans a round."""
        if self.is_over:
            return
        tp = self.source.grow_topic("orders")
        self.histories[tp] = History(self.source.logs[tp])
        there = self.target.grow_topic("sf.orders")
        self.mirrors[there] = self._mirror(there)
        self.loop.note(lambda: f"grown: {tp}")
        self._writers.append(SourceWriter(self, tp))

    def _watch(self) -> None:
        source, target = self.source, self.target
        source.on_change = lambda tp: self.histories[tp].read_on()
        source.on_cut = lambda tp, end: self.histories[tp].cut(end)
        target.on_change = self._target_changed
        target.on_complete = self._check_positions
        target.on_prepare = self._prepared
        target.on_append = self._appended
        target.on_cut = self._target_cut
        target.on_send = self._sent
        target.on_answer = self._answered

    # what is checked after each step

    def _target_changed(self, tp: TopicPartition) -> None:
        mirror = self.mirrors.get(tp)
        if mirror is not None:
            mirror.read_on()
            self.checks += 1

    def _target_cut(self, tp: TopicPartition, end: int) -> None:
        if tp in self.mirrors:
            self.mirrors[tp].was_cut = self.mirrors[tp].has_been_cut = True
            self.mirrors[tp].position_when_cut = self.position_of(tp)
            self.mirrors[tp].read_on()

    def _appended(self, tp: TopicPartition, head: Any, base: int) -> None:
        self.loop.note(
            lambda: (
                f"appended {tp} {base}..{base + head.record_count - 1} "
                f"producer {head.producer_id} epoch {head.producer_epoch}"
            )
        )
        if self.is_fenced and head.is_transactional and not self.forgets_markers:
            raise Broken(f"{tp} takes a batch of producer {head.producer_id} though the flow is fenced")

    def _sent(self, process: Process, request: Any, node: int, connection: int) -> None:
        if not self._with_conduct:
            return
        try:
            self.conduct.sent(process.task, request, node, connection)
        except Broken as broken:  # raised into the lane it would be one more trouble of the lane
            self.loop.failure = broken

    def _answered(self, process: Process, request: Any, reply: Any) -> None:
        if (
            type(request).__name__ == "InitProducerIdRequest"
            and request.producer_id < 0
            and not reply.error_code
            and self._with_conduct
        ):
            claimed = ProducerState(reply.producer_id, reply.producer_epoch)
            self.conduct.claimed(process.task, claimed)

    def _check_positions(self) -> None:
        """Whenever no transaction of the flow is between its decision and its last marker."""
        preparing = (PREPARE_COMMIT, PREPARE_ABORT)
        if any(t.state in preparing for t in self.target.coordinator.known.values()):
            return
        self._check_map()
        for tp, mirror in self.mirrors.items():
            position = self.position_of(tp)
            if position is None or not mirror.is_settled:
                continue
            wrong = self._disagreement(mirror, position, may_be_behind=position == mirror.settled_at)
            if wrong is None:
                mirror.was_cut = mirror.was_cut and position == mirror.position_when_cut
            elif not mirror.was_cut:
                raise Broken(wrong)

    def _prepared(self, partitions: list[TopicPartition], is_commit: bool) -> None:
        """What a third party commits is visible before its position is: until that changes."""
        if is_commit and self.is_fenced and not self.mirrors.keys().isdisjoint(partitions):
            raise Broken(
                f"records of {', '.join(map(str, partitions))} are committed though the flow is fenced"
            )
        for tp in partitions if is_commit and self.scenario.settles else ():
            if tp in self.mirrors:
                self.mirrors[tp].settled_at = self.position_of(tp)

    def position_of(self, tp: TopicPartition) -> Position | None:
        found = self.target.groups.committed.get((self._flow.group, tp))
        position = parse_position(*found) if found else None
        return position if isinstance(position, Position) else None

    def _disagreement(self, mirror: Mirror, position: Position, *, may_be_behind: bool = False) -> str | None:
        mirror.read_on()
        self.checks += 1
        tp = mirror.target
        if mirror.log.last_stable < position.target_next:
            return f"{tp}: position says target {position.target_next}, stable is {mirror.log.last_stable}"
        behind = next((o for o in reversed(mirror.sources) if o >= position.target_next), None)
        if behind is not None and not may_be_behind:
            return f"{tp} shows offset {behind}, the position ends at {position.target_next}"
        if mirror.last_source >= position.source_next and not may_be_behind:
            return f"{tp} shows source offset {mirror.last_source}, the position says {position.source_next}"
        missing = mirror.lacks_before(position.source_next)
        if missing is not None:
            return (
                f"{tp} lacks source offset {missing.offset} ({missing.record.value!r}), "
                f"the position says {position.source_next}"
            )
        return None

    def _check_map(self) -> None:
        for run in self._new_runs():
            mirror = self.mirrors[run.target]
            mirror.read_on()
            if not mirror.was_cut and mirror.is_settled:
                self._check_run(mirror, run)

    def _check_run(self, mirror: Mirror, run: MappedRange) -> None:
        self.checks += 1
        at, source = int(run.target_first), int(run.source_first)
        for copied, skipped in run.segments:
            for _ in range(copied):
                if mirror.sources.get(at) != source:
                    raise Broken(
                        f"map: {run.target} {at} should be source {source}, is {mirror.sources.get(at)}"
                    )
                at, source = at + 1, source + 1
            source += skipped

    def _new_runs(self) -> list[MappedRange]:
        runs: list[MappedRange] = []
        for tp in self.target.topics[self._flow.map_topic].partitions:
            log = self.target.logs[tp]
            start, limit = self._map_read.get(tp, 0), log.last_stable
            for batch in log.read(start, limit, 1_000_000):
                if batch.base >= start and not log.hides(batch):
                    written = MapTransaction.of((r.key or b"", r.value) for r in records_of(batch) if r.value)
                    runs += written.runs
            self._map_read[tp] = max(start, limit)
        return runs

    # what the troubles and the runs use

    def flow_now(self) -> Flow:
        return replace(self._flow, lanes=self.lanes)

    def idle_worker(self) -> SimWorker:
        for worker in self.workers:
            if worker.process.is_alive and not worker.process.is_frozen and not worker.is_taken:
                worker.is_taken = True
                return worker
        worker = SimWorker(self, f"worker {len(self.workers) + 1}")
        worker.is_taken = True
        self.workers.append(worker)
        return worker

    def repeats_task(self) -> bool:
        return not self.is_over and self.loop.random.random() < self.scenario.repeats

    def start_run(self, *, take_over: bool) -> DrivenRun:
        run = DrivenRun(self, len(self.runs) + 1, take_over=take_over)
        self.runs.append(run)
        return run

    def append_foreign(self, tp: TopicPartition, *, producer: tuple[int, int, int] = (-1, -1, -1)) -> None:
        self.foreign.add(tp)
        value = b"foreign %d" % self.loop.random.getrandbits(32)
        data = encode_batch(
            [Record(0, START_MS, b"f", value)],
            codec=Codec.NONE,
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=producer[2],
            transactional=producer[0] >= 0,
        )
        self.target.append_directly(tp, data)

    # the course of things

    def play(self) -> None:
        scenario, loop = self.scenario, self.loop
        self._writers += [SourceWriter(self, tp) for tp in self.histories]
        for at, trouble in scenario.troubles:
            loop.at(at, partial(self._trouble, trouble))
        loop.at(scenario.seconds, self._heal)
        if scenario.grows_at is not None:
            loop.at(scenario.grows_at, self._grow)
        soon = loop.random.uniform(0, 0.5)
        loop.at(soon if scenario.first_run_at is None else scenario.first_run_at, self._schedule)
        loop.run(lambda: self.is_over)
        for writer in self._writers:
            writer.finish()
        self._drain()
        self._check_end()

    def _trouble(self, trouble: Any) -> None:
        if not self.is_over:
            self.loop.note(lambda: f"trouble: {trouble}")
            TROUBLES[trouble](self)

    def _schedule(self) -> None:
        """Airflow: when a run has ended or its driver has died, another one begins."""
        if self.is_over:
            return
        run = self.start_run(take_over=False)
        again = lambda _=None: self.loop.after(self.loop.random.uniform(0.02, 1.0), self._schedule)  # noqa: E731
        run.ended.add_callback(again)
        run.process.on_death.append(again)

    def _heal(self) -> None:
        self.loop.note(lambda: "everything heals")
        self.is_over = True
        self.source.refused_lookups = 0.0
        for cluster in (self.source, self.target):
            cluster.is_stormy = False
            cluster.marker_delay = 0.005
            for log in cluster.logs.values():
                log.max_bytes = USUAL_MAX_BYTES
            for node in cluster.nodes:
                if node.is_frozen:
                    node.thaw()
                if not node.is_up:
                    node.restart()
                node.find_touch()
        for process in [w.process for w in self.workers] + [r.process for r in self.runs]:
            if process.is_frozen:
                process.thaw()

    def _drain(self) -> None:
        loop = self.loop
        self.settle(1.0)
        loop.run(lambda: not self.is_fencing, deadline=loop.now + 60)
        if self.is_fencing:
            fencing = Fencing(self)
            done = fencing.process.spawn(fencing.turn(fenced=False))
            loop.run(lambda: done.is_done)
        if self.scenario.has_one_successor:
            loop.run(lambda: all(run.ended.is_done for run in self.runs))
        for _ in range(_MOST_LAST_RUNS):
            self._lift_a_late_fence()
            last = self.start_run(take_over=True)
            loop.run(last.has_ended)
            is_alone = all(run.ended.is_done or not run.process.is_alive for run in self.runs)
            if last.outcome == "caught up" and is_alone and not self._is_anything_left(last):
                break
            self.settle(self.scenario.timeout_ms / 1000 + 3)
        self.last_run = last
        self.settle(1.0)

    def _lift_a_late_fence(self) -> None:
        """A fence that was given up may still be appended, after the lift of the one that was sent again: a
        run says so, and somebody lifts it, too."""
        if self.runs[-1].outcome == "FlowFenced":
            done = (fencing := Fencing(self)).process.spawn(fencing.turn(fenced=False))
            self.loop.run(lambda: done.is_done)

    def settle(self, seconds: float) -> None:
        until = self.loop.now + seconds
        self.loop.run(lambda: self.loop.now >= until, deadline=until)

    def _is_anything_left(self, run: DrivenRun) -> bool:
        return any(self._unfinished(tp) and tp not in run.parked for tp in self.histories)

    def _unfinished(self, tp: TopicPartition) -> str | None:
        mirror = self.mirrors[TopicPartition(f"sf.{tp.topic}", tp.partition)]
        position = self.position_of(mirror.target)
        if position is None:
            return f"{tp}: no position"
        stable = self.source.logs[tp].last_stable
        if position.source_next < stable:
            return f"{tp}: position {position.source_next}, the source is stable up to {stable}"
        return self._disagreement(mirror, position)

    # at the end

    def repeats(self) -> int:
        """What a reader without isolation got twice from all partitions."""
        again = 0
        for mirror in self.mirrors.values():
            seen = [r.value for b in mirror.log.batches if b.commits is None for r in records_of(b)]
            again += len(seen) - len(set(seen))
        return again

    def _check_end(self) -> None:
        for tp, mirror in self.mirrors.items():
            source = mirror.history.log.tp
            parked = self.last_run.parked.get(source)
            if parked is None:
                wrong = self._unfinished(source)
                if wrong is not None:
                    raise Broken(f"at the end: {wrong}; last run: {self.last_run.outcome}")
                if mirror.shows_another_history:
                    raise Broken(f"at the end: {tp} shows what {source} no longer has, and isn't parked")
                self._check_whole_map(mirror)
            elif (unexcused := self._unexcused(source, tp, parked)) is not None:
                raise Broken(f"parked without cause: {source}: {parked} ({unexcused})")
            self.records += len(mirror.sources)

    def mapped(self, mirror: Mirror) -> dict[int, int]:
        """All of its target offsets that the map knows, with their source offsets."""
        mapped: dict[int, int] = {}
        self._map_read.clear()
        runs = [run for run in self._new_runs() if run.target == mirror.target]
        for run in valid_ranges(runs):
            at = int(run.target_first)
            for offset in range(at, run.target_next):
                mapped[offset] = run.source_of(TargetOffset(offset))
        return mapped

    def _check_whole_map(self, mirror: Mirror) -> None:
        mapped = self.mapped(mirror)
        if mirror.log.tp in self.target.unclean:
            # Of a lost tail that wasn't written again (compaction took it from the source) the map still
            # speaks; nobody sees a record there. What is seen has to be right.
            mapped = {at: source for at, source in mapped.items() if at in mirror.sources}
        if mapped != mirror.sources:
            wrong = sorted(set(mapped.items()) ^ set(mirror.sources.items()))[:4]
            raise Broken(f"map of {mirror.target} isn't what the partition shows: {wrong}")

    def _unexcused(self, source: TopicPartition, target: TopicPartition, parked: Any) -> str | None:
        """None: what the lane says of this partition really happened."""
        assert isinstance(parked, Parked)
        position = self.position_of(target)
        history = self.histories[source]
        stands_at = position.source_next if position else self._mapped_to(target)
        match parked.reason:
            case ParkReason.SOURCE_TRUNCATED:
                is_so = any(end < stands_at for end in history.cuts)
            case ParkReason.SOURCE_GAP:
                is_so = history.log.start > stands_at and source in self.trimmed
            case ParkReason.FOREIGN_TRANSACTION:
                is_so = target in self.foreign or self._lost_marker_of_another_id(target)
            case ParkReason.TARGET_TAIL_UNPROVED:
                is_so = target in self.target.unclean or (
                    self.scenario.settles and (target in self.trimmed_mirrors or bool(history.cuts))
                )
            case ParkReason.FOREIGN_WRITER | ParkReason.FOREIGN_DATA:
                # Without position nothing tells whose records those were that a dead owner's id wrote.
                is_so = target in self.foreign or (self.scenario.settles and self.expired)
            case ParkReason.POSITION_LOST:
                # Where it began is written down, and where its log ended then: somebody has written since.
                is_so = target in self.foreign
            case _:
                is_so = False
        return None if is_so else f"position {stands_at}, cuts {history.cuts}, log start {history.log.start}"

    def _mapped_to(self, target: TopicPartition) -> int:
        """Where a position that expired is rebuilt."""
        self._map_read.clear()
        return max((int(run.source_next) for run in self._new_runs() if run.target == target), default=0)

    def _lost_marker_of_another_id(self, target: TopicPartition) -> bool:
        """An unclean election lost the marker of a transaction of ours that this lane's id can't end any
        more: the producer id has changed since, or the lane was another one."""
        lane = lane_of(target, self.lanes)
        mine = self.target.coordinator.known.get(self._flow.transactional_id(lane))
        living = {mine.producer_id} if mine else set()
        producers = self.target.logs[target].producers.items()
        hanging = {pid for pid, p in producers if p.open_from is not None}
        return target in self.target.unclean and bool(hanging - living)


def _flow(scenario: Scenario) -> Flow:
    return Flow(
        name="f",
        source="sf",
        target="nyc",
        topics=TopicFilter(("orders",)),
        naming=PrefixNaming("sf"),
        start=scenario.start,
        lanes=scenario.lanes,
        replication_factor=None,
        config_properties_exclude=(),
        limits=CopyLimits(
            transaction_bytes=scenario.transaction_bytes,
            transaction_seconds=scenario.transaction_seconds,
            transaction_timeout_ms=scenario.timeout_ms,
            lane_seconds=scenario.lane_seconds,
        ),
        settle=scenario.settles,
    )
