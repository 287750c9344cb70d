"""One flow between two real brokers, on which cells of the matrix are played one after the other.

Each cell gets new records on the source, a worker whose every request passes the proxies, and one fault.
The planning run and whoever checks talk to the brokers directly.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from causeway.core.copy.lane_task import LaneResult, LaneTask
from causeway.core.copy.report import RunReport
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import ClusterTrouble
from causeway.core.model.flow import CopyLimits
from causeway.core.model.naming import FLOWS_TOPIC
from causeway.lab.clients import admin_client, producer
from causeway.lab.cluster import LabCluster
from causeway.usecases.copy.worker import LaneWorker
from tests.proofs.proxy.evidence import Evidence
from tests.proofs.proxy.fault_points import CHANGING, About, Cell, Ending, Setting, Site, Words
from tests.proofs.proxy.heads import Api, Request
from tests.proofs.proxy.lane_processes import Killed, LaneProcess, LaneProcesses
from tests.proofs.proxy.proxy import HOST, LATE, Fault, Injection, Proxy, ProxyThread
from tests.support.mirroring import Mirror, make_flow

PARTITIONS = 2
_BATCH_RECORDS = 8
_BATCHES = 12
_TRANSACTION_BYTES = 5_000
_FETCH_BYTES = 12_000
_IMPATIENT = {"socket.timeout.ms": "1500", "socket.connection.setup.timeout.ms": "1500"}


class WorkerLost(ClusterTrouble):
    """What the driver sees of a killed worker."""


class Track:
    def __init__(
        self, name: str, source: LabCluster, target: LabCluster, thread: ProxyThread, lanes: LaneProcesses
    ) -> None:
        self._name, self._source, self._target = name, source, target
        self._thread, self._lanes = thread, lanes
        self._admins = (admin_client(source.endpoint()), admin_client(target.endpoint()))
        self._plain = producer(source.endpoint(), linger_ms=0, batch_num_messages=_BATCH_RECORDS)
        self._transactional = _transactional(source, f"{name}-source")
        self._foreign = _transactional(target, f"{name}-foreign")
        self._numbers = itertools.count(1)
        self._records = itertools.count(1)
        self._mirror: Mirror | None = None

    def close(self) -> None:
        if self._mirror is not None:
            self._evidence.close()
            self._mirror.close()
            self._mirror = None

    def play(self, cell: Cell) -> None:
        """:raises AssertionError: the fault never came, or something isn't as it must be. The next cell then
        begins with a new flow."""
        try:
            self._play(cell)
        except BaseException:
            self.close()
            raise

    def _play(self, cell: Cell) -> None:
        if not self._goes_on_with(cell.site.setting):
            self._begin_anew(cell.site.setting)
        with self._set_up(cell.site.setting):
            mark = self._evidence.mark()
            self._fill_for(cell.site.setting)
            with (
                self._thread.proxy(_port(self._source)) as to_source,
                self._thread.proxy(_port(self._target)) as to_target,
            ):
                report = self._strike(cell, to_source, to_target)
        if report.parked:
            assert cell.site.setting is Setting.FOREIGN_TRANSACTION, report.parked
            report = self._run(self._mirror_now.carry)
        assert (report.outcome, report.lag, report.parked) == ("caught up", 0, []), report
        self._evidence.assert_exact(mark)

    def kinds_sent(self, setting: Setting) -> set[tuple[str, int, About]]:
        """Side, api key and subject of every request of a worker that nothing happens to."""
        self._begin_anew(setting)
        words, kinds = self._words(), set()
        with (
            self._set_up(setting),
            self._thread.proxy(_port(self._source)) as to_source,
            self._thread.proxy(_port(self._target)) as to_target,
        ):
            self._fill_for(setting)
            worker = LaneWorker(_through(self._source, to_source), _through(self._target, to_target))
            report = self._run(lambda tasks: [worker.run(task) for task in tasks])
            assert any(p.settled for p in report.partitions.values()) is (setting is Setting.LEFT_OPEN)
            worker.close()
            for side, proxy in (("source", to_source), ("target", to_target)):
                kinds |= {(side, each.head.api_key, words.about(each)) for each in proxy.requests}
        return kinds

    @property
    def _mirror_now(self) -> Mirror:
        assert self._mirror is not None
        return self._mirror

    def _strike(self, cell: Cell, to_source: Proxy, to_target: Proxy) -> RunReport:
        proxy = to_source if cell.site.side == "source" else to_target
        source, target = _through(self._source, to_source), _through(self._target, to_target)
        injection = Injection(
            cell.fault, self._words().chooses(cell.site), cell.site.nth, release_before=_release(cell)
        )
        proxy.injection = injection
        if cell.ending is Ending.KILLED:
            victim = self._lanes.begin(source, target)
            injection.on_fired = victim.kill
            self._run_until_killed(victim, injection)
        worker = LaneWorker(source, target)
        try:
            report = self._run(lambda tasks: [worker.run(task) for task in tasks])
        finally:
            worker.close()
        assert injection.fired.is_set(), "the fault never came"
        if cell.fault in LATE and not injection.released:
            proxy.release()
        return report

    def _run_until_killed(self, victim: LaneProcess, injection: Injection) -> None:
        def carry(tasks: Sequence[LaneTask]) -> list[LaneResult]:
            try:
                return [victim.run(task) for task in tasks]
            except Killed:
                raise WorkerLost("worker", rule="killed") from None

        try:
            self._run(carry)
        except WorkerLost:
            assert injection.fired.is_set()
        finally:
            victim.close()

    def _run(self, carry: Callable[[Sequence[LaneTask]], list[LaneResult]]) -> RunReport:
        mirror = self._mirror_now
        before, mirror.carry = mirror.carry, carry  # type: ignore[method-assign, assignment]
        try:
            return mirror.run()
        finally:
            mirror.carry = before  # type: ignore[method-assign]

    # what the lane finds

    def _goes_on_with(self, setting: Setting) -> bool:
        """Whether the last cell's flow will do."""
        if self._mirror is None or setting is Setting.FRESH:
            return False
        return self._mirror.flow.settle == (setting is Setting.LEFT_OPEN)

    def _begin_anew(self, setting: Setting) -> None:
        self.close()
        number = next(self._numbers)
        # No name is a part of another one: requests are distinguished by what is in them.
        self._topic, name = f"data-{self._name}-{number}.", f"flow-{self._name}-{number}."
        for admin, topic in zip(self._admins, (self._topic, f"sf.{self._topic}"), strict=True):
            admin.create_topics([NewTopic(topic, PARTITIONS)])[topic].result(30)
        limits = CopyLimits(transaction_bytes=_TRANSACTION_BYTES, fetch_bytes=_FETCH_BYTES)
        settle = setting is Setting.LEFT_OPEN
        flow = make_flow(name, self._topic, source=f"sf-{self._name}", lanes=1, limits=limits, settle=settle)
        self._mirror = Mirror(flow, self._source, self._target)
        self._evidence = Evidence(flow, self._topic, PARTITIONS, self._source, self._target)
        if setting is not Setting.FRESH:
            self._fill()
            assert self._run(self._mirror.carry).outcome == "caught up"
        else:
            self._evidence.wait_for_leaders()

    @contextmanager
    def _set_up(self, setting: Setting) -> Iterator[None]:
        if setting is Setting.POSITION_LOST:
            group = self._mirror_now.flow.group
            self._admins[1].delete_consumer_groups([group])[group].result(30)
        if setting is not Setting.FOREIGN_TRANSACTION:
            yield
            return
        self._foreign.begin_transaction()
        self._foreign.produce(f"sf.{self._topic}", b"nobody may see this", partition=0)
        assert self._foreign.flush(30) == 0
        try:
            yield
        finally:
            self._foreign.abort_transaction(30)

    def _fill_for(self, setting: Setting) -> None:
        self._fill()
        if setting is not Setting.LEFT_OPEN:
            return
        with (
            self._thread.proxy(_port(self._source)) as to_source,
            self._thread.proxy(_port(self._target)) as to_target,
        ):
            victim = self._lanes.begin(_through(self._source, to_source), _through(self._target, to_target))
            in_the_middle = Site("target", Api.TXN_OFFSET_COMMIT, About.DATA, nth=1)
            injection = Injection(Fault.RESPONSE_LOST, self._words().chooses(in_the_middle))
            injection.on_fired, to_target.injection = victim.kill, injection
            self._run_until_killed(victim, injection)

    def _fill(self) -> None:
        """Plain records, committed ones and aborted ones, in small batches on both partitions."""
        self._produce(self._plain, _BATCHES // 2)
        for commit in (True, False):
            self._transactional.begin_transaction()
            self._produce(self._transactional, _BATCHES // 4)
            if commit:
                self._transactional.commit_transaction(30)
            else:
                self._transactional.abort_transaction(30)
        self._produce(self._plain, _BATCHES // 4)

    def _produce(self, client: Producer, batches: int) -> None:
        for _ in range(batches * _BATCH_RECORDS):
            for partition in range(PARTITIONS):
                number = next(self._records)
                client.produce(self._topic, b"%08d" % number * 8, b"%d" % number, partition=partition)
        assert client.flush(30) == 0

    def _words(self) -> Words:
        flow = self._mirror_now.flow
        return Words(
            data=(self._topic.encode(), *(each.bytes for each in self._evidence.data_ids)),
            map=self._evidence.target_names(flow.map_topic),
            flows=self._evidence.target_names(FLOWS_TOPIC),
            group=flow.group.encode(),
            lane=flow.transactional_id(0).encode(),
        )


def _port(cluster: LabCluster) -> int:
    return int(cluster.bootstrap_servers.rpartition(":")[2])


def _through(cluster: LabCluster, proxy: Proxy) -> ClusterEndpoint:
    address = {"bootstrap.servers": f"{HOST}:{proxy.port}"}
    return ClusterEndpoint(cluster.name, {**cluster.endpoint().settings, **_IMPATIENT, **address})


def _release(cell: Cell) -> Callable[[Request], bool]:
    """Where it hurts most: while a successor's transaction holds data, or right before its claim."""
    api = Api.INIT_PRODUCER_ID if cell.before_claim else Api.TXN_OFFSET_COMMIT
    return lambda request: cell.site.api in CHANGING and request.head.api_key == api


def _transactional(cluster: LabCluster, name: str) -> Producer:
    made = producer(cluster.endpoint(), transactional_id=name, linger_ms=0, batch_num_messages=_BATCH_RECORDS)
    made.init_transactions(30)
    return made
