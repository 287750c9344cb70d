"""Connections in virtual time: what stands where kafka-python's connection manager stands.

A connection keeps its requests and its answers in order, and a broker takes the next request of a
connection only after it has answered the last one. When a connection breaks, a prefix of what was on its
way still arrives, maybe much later: the client doesn't know which. Between connections nothing is ordered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from kafka import errors as kafka_errors
from kafka.future import Future

from causeway.brokers.transport.connection import Wire
from causeway.core.kernel.endpoint import ClusterEndpoint
from tests.simulation.cluster.loop import Process, VirtualNetwork

if TYPE_CHECKING:
    from tests.simulation.cluster.cluster import SimCluster, SimNode

REQUEST_TIMEOUT_SECONDS = 30.0


@dataclass(slots=True)
class Weather:
    """How messages fare. Chances are per request."""

    least: float = 0.0005
    most: float = 0.002
    reset_before: float = 0.0
    """The connection breaks, the request is lost."""
    reset_after: float = 0.0
    """The request is executed, its answer is lost."""
    late: float = 0.0
    """The connection breaks, the request is executed much later."""
    again: float = 0.0
    """The request is executed a second time, much later."""
    slow: float = 0.0
    silent: float = 0.0
    """Nothing comes back, and nobody says why until the request times out."""
    latest: float = 8.0


class SimWire(Wire):
    """The product's own `Wire`; only its way to a cluster is another one."""

    def __init__(self, cluster: SimCluster, network: VirtualNetwork, alias: str) -> None:
        super().__init__(ClusterEndpoint(alias, {"bootstrap.servers": f"{cluster.name}:9092"}), network)  # type: ignore[arg-type]
        self.cluster = cluster

    async def connect(self) -> None:
        if self._manager is None:
            self._manager = SimManager(self.cluster, self.network)
            await self._learn_features()


class SimManager:
    def __init__(self, cluster: SimCluster, network: Any) -> None:
        self._cluster, self._network = cluster, network
        self._connections: dict[int, SimConnection] = {}
        brokers = [SimpleNamespace(node_id=n.number, host=cluster.name, port=n.number) for n in cluster.nodes]
        self.cluster = SimpleNamespace(brokers=lambda: brokers, broker_metadata=brokers.__getitem__)
        network.process.on_death.append(self.close)

    def get_connection(self, node: int) -> SimConnection:
        held = self._connections.get(node)
        if held is None or held.closed:
            held = self._connections[node] = SimConnection(
                self._cluster, self._cluster.nodes[node], self._network.process
            )
        return held

    def least_loaded_node(self) -> int:
        up = [n.number for n in self._cluster.nodes if n.is_up]
        return self._cluster.loop.random.choice(up or [0])

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close("closed by the client")


class SimConnection:
    paused = False
    stands = False
    """The node has reported what it understands."""

    def __init__(self, cluster: SimCluster, node: SimNode, process: Process) -> None:
        self._cluster, self._node, self._loop, self._process = cluster, node, cluster.loop, process
        self.number = cluster.next_connection()
        self.closed = False
        self._sent_until = self._answered_until = 0.0
        self._waiting: deque[tuple[Any, Future, list[bool]]] = deque()
        """Requests without answer; the flag says whether one may still arrive."""
        self._arrived: deque[Callable[[], None]] = deque()
        self._busy = False
        node.connections.append(self)
        self._shake_hands()

    def _shake_hands(self) -> None:
        """Requests don't wait for it: what is sent before goes after it. A frozen node takes its time."""
        self.stands = self._node.is_up and not self._node.is_frozen
        if not self.stands and not self.closed:
            self._loop.after(0.05, self._shake_hands)

    @property
    def connected(self) -> bool:
        return self.stands and not self.closed

    def __await__(self) -> Generator[Any, Any, SimConnection]:
        if not self._node.is_up:
            yield self._loop.pause(0.01)
            self.close("refused")
            raise kafka_errors.KafkaConnectionError(f"node {self._node.number} refuses")
        return self

    def send_request(self, request: Any, request_timeout_ms: float | None = None) -> Future:
        answer = Future()
        if self.closed:
            return answer.failure(kafka_errors.KafkaConnectionError("closed"))
        loop, weather, random = self._loop, self._cluster.weather, self._loop.random
        self._cluster.on_send(self._process, request, self._node.number, self.number)
        if not self._node.is_up:
            loop.after(0.01, lambda: self.close("refused"))
            self._waiting.append((request, answer, [False]))
            return answer
        delay = random.uniform(weather.least, weather.most)
        if weather.slow and random.random() < weather.slow:
            delay += random.uniform(0, 0.5)
        may_arrive = [True]
        self._waiting.append((request, answer, may_arrive))
        chance = random.random() if self._cluster.is_stormy else 1.0
        for kind in ("reset_before", "reset_after", "late", "again", "silent"):
            chance -= getattr(weather, kind)
            if chance < 0:
                self._strike(kind, request, may_arrive)
                break
        self._sent_until = max(self._sent_until, loop.now + delay)
        loop.at(self._sent_until, lambda: self._arrive(request, answer, may_arrive))
        seconds = REQUEST_TIMEOUT_SECONDS if request_timeout_ms is None else request_timeout_ms / 1000

        def time_out() -> None:
            if not answer.is_done:
                self.close("request timed out")

        loop.after(seconds, time_out)
        return answer

    def _strike(self, kind: str, request: Any, may_arrive: list[bool]) -> None:
        loop, random = self._loop, self._loop.random
        loop.note(lambda: f"{kind} {self._node} {type(request).__name__}")
        later = random.choice((random.uniform(0, 0.05), random.uniform(0, self._cluster.weather.latest)))
        if kind in ("reset_before", "silent"):
            may_arrive[0] = False
        if kind == "late":
            may_arrive[0] = False
            loop.after(later, lambda: self._node.receive(request, self.number, lambda _: None))
        if kind == "again":
            loop.after(later, lambda: self._node.receive(request, self.number, lambda _: None))
        if kind in ("reset_before", "late"):
            loop.after(random.uniform(0, 0.01), lambda: self.close("reset"))
        if kind == "reset_after":
            loop.after(0.01 + random.uniform(0, 0.01), lambda: self.close("reset"))

    def _arrive(self, request: Any, answer: Future, may_arrive: list[bool]) -> None:
        if not may_arrive[0]:
            return
        self._arrived.append(lambda: self._node.receive(request, self.number, self._answering(answer)))
        self._take_next()

    def _take_next(self) -> None:
        if self._arrived and not self._busy:
            self._busy = True
            self._arrived.popleft()()

    def _answering(self, answer: Future) -> Callable[[SimpleNamespace], None]:
        def respond(reply: SimpleNamespace) -> None:
            self._busy = False
            loop, weather = self._loop, self._cluster.weather
            delay = loop.random.uniform(weather.least, weather.most)
            self._answered_until = max(self._answered_until, loop.now + delay)
            loop.at(self._answered_until, lambda: self._deliver(answer, reply))
            self._take_next()

        return respond

    def _deliver(self, answer: Future, reply: SimpleNamespace) -> None:
        if not self.closed and not answer.is_done:
            if self._waiting and self._waiting[0][1] is answer:
                request, _, _ = self._waiting.popleft()
                self._cluster.on_answer(self._process, request, reply)
                answer.success(reply)
            else:  # the answer before it was lost: this connection is of no use any more
                self.close("answers out of step")

    def close(self, why: str) -> None:
        if self.closed:
            return
        self.closed = True
        self._loop.note(lambda: f"connection to {self._node} closes: {why}")
        if self in self._node.connections:
            self._node.connections.remove(self)
        waiting, self._waiting = self._waiting, deque()
        arriving = self._loop.random.randint(0, len(waiting))
        for number, (_, answer, may_arrive) in enumerate(waiting):
            if number >= arriving:
                may_arrive[0] = False
            if not answer.is_done:
                answer.failure(kafka_errors.KafkaConnectionError(why))
