"""A cluster at wire level: connections, leaders and coordinators, on kafka-python's low level.

The only module that knows kafka-python's connection manager. Requests go to a named node, or to the
first one that answers, and come back as parsed responses; nothing else is tried again here. Leaders and
coordinators are cached until somebody says that they were wrong.

Two clusters share one `Network`, so that one thread can wait for both.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Any, TypeVar
from uuid import UUID

from kafka import errors as kafka_errors
from kafka.protocol.metadata import ApiVersionsRequest, FindCoordinatorRequest, MetadataRequest

from causeway import __version__ as causeway_version
from causeway.brokers.client_settings import kafka_python_settings
from causeway.brokers.error_map import error_of_code, mapped
from causeway.brokers.transport.lean_network import LeanConnectionManager, LeanSelector
from causeway.brokers.transport.silent_nodes import SilentNodes
from causeway.brokers.transport.topic_metadata import TopicMetadata
from causeway.core.copy.ports import Refused, Unreachable
from causeway.core.kernel.acl_vocabulary import Operation
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import CausewayError, ClusterTrouble, ClusterUnreachable
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import NODE_UNREACHABLE, error_name
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code

# What the library logs also reaches us as an exception, and comes out as one line of ours.
logging.getLogger("kafka").setLevel(logging.CRITICAL + 1)

T = TypeVar("T")
GROUP, TRANSACTION = 0, 1
_TRANSACTIONS_V2 = 2
_PAUSE_SECONDS = 0.002
_RESPONSE_BYTES = 300 << 20
_BOOTSTRAP_SECONDS, _LEAST_SHARE_SECONDS = 10.0, 3.0
_COORDINATOR_TRIES, _COORDINATOR_PAUSE_SECONDS = 100, 0.1
_RIGHTS_LAST_SECONDS = 30.0
_GOES_ON = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Also while the machine sleeps; where it has no name of its own, as on macOS, the monotonic one does."""


class Network:
    """One event loop for all connections of a thread."""

    def __init__(self) -> None:
        self.selector = LeanSelector()

    def run(self, work: Callable[[], Awaitable[T]]) -> T:
        result: T = self.selector.run(work)
        return result

    async def sleep(self, seconds: float) -> None:
        await self.selector.sleep(seconds)

    def monotonic(self) -> float:
        return time.monotonic()

    def boottime(self) -> float:
        return time.clock_gettime(_GOES_ON)

    def time_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def close(self) -> None:
        self.selector.close()


class Wire:
    def __init__(self, endpoint: ClusterEndpoint, network: Network) -> None:
        self.endpoint, self.network = endpoint, network
        self._manager: Any = None
        self._leaders: dict[TopicPartition, int] = {}
        self._coordinators: dict[tuple[int, str], int] = {}
        self._operations: dict[str, frozenset[int]] = {}
        self._operations_at = float("-inf")
        self._hidden: set[str] = set()
        self.silent = SilentNodes(network, self._stands, lambda node: f"{self.place_of(node)} of {endpoint}")
        self._answered = ""
        self.round_trip_seconds = 0.0
        """The quickest answer since it was connected; 0.0: none yet."""
        self.cluster_id = ""
        self.transaction_version = 0

    async def connect(self) -> None:
        """Reach the cluster, or say in one line why that can't be."""
        if self._manager is not None:
            return
        servers = self._servers_in_turn()
        for server in servers:
            try:
                manager = await self._bootstrap(
                    server, max(_BOOTSTRAP_SECONDS / len(servers), _LEAST_SHARE_SECONDS)
                )
                break
            except ClusterUnreachable:
                if server == servers[-1]:
                    raise
        self._answered = server
        self._manager = manager
        await self._learn_features()

    def _servers_in_turn(self) -> list[str]:
        """Who answered last is asked first: a host that swallows everything costs its share only once."""
        named = [each.strip() for each in self.endpoint.settings.get("bootstrap.servers", "").split(",")]
        return sorted(named, key=lambda server: server != self._answered)

    async def _bootstrap(self, server: str, seconds: float) -> Any:
        """By one server: of several, kafka-python spends all the time on the one that it happened to pick."""
        settings = {**kafka_python_settings(self.endpoint), "bootstrap_servers": [server]}
        manager = LeanConnectionManager(
            self.network.selector,
            **settings,
            receive_message_max_bytes=_RESPONSE_BYTES,
            max_in_flight_requests_per_connection=1_000,
        )
        try:
            with mapped(cluster=str(self.endpoint), resource="bootstrap.servers", operation="connect"):
                await manager.bootstrap_async(timeout_ms=seconds * 1000)
        except ClusterTrouble:
            manager.close()
            raise
        return manager

    async def _learn_features(self) -> None:
        """Clients decide by the finalized feature, never by the versions that a broker offers."""
        request = ApiVersionsRequest(
            version=3, client_software_name="causeway", client_software_version=causeway_version
        )
        answer = await self.ask_anyone(request)
        features = {f.name: f.max_version_level for f in answer.finalized_features or ()}
        self.transaction_version = features.get("transaction.version", 0)
        described = await self.ask_anyone(MetadataRequest(topics=[], min_version=4))
        self.cluster_id = described.cluster_id or ""

    @property
    def is_v2(self) -> bool:
        """Whether each transaction gets an epoch of its own (KIP-890)."""
        return self.transaction_version >= _TRANSACTIONS_V2

    def disconnect(self) -> None:
        """Drop every connection and all that was cached; `connect` begins again."""
        if self._manager is not None:
            self._manager.close()
        self._manager = None
        self.round_trip_seconds = 0.0
        self._leaders.clear()
        self._coordinators.clear()
        self._operations.clear()
        self._operations_at = float("-inf")
        self._hidden.clear()
        self.silent.forget()

    def any_node(self, besides: Collection[int] = ()) -> int:
        """One that may answer."""
        node: int | None = self._manager.least_loaded_node()
        if node is None or node in besides or node in self.silent:
            others = (each for each in self.nodes() if each not in besides and each not in self.silent)
            node = next(others, None)
        if node is None:
            raise Unreachable(f"no broker of {self.endpoint} can be reached")
        return node

    async def ask_anyone(self, request: Any) -> Any:
        """What the first node says that answers.

        :raises Unreachable: none does.
        """
        tried: set[int] = set()
        while True:
            node = self.any_node(tried)
            try:
                return await self.send(request, node)
            except Unreachable:
                tried.add(node)
                if tried.issuperset(self.nodes()):
                    raise

    def nodes(self) -> list[int]:
        """All brokers that the cluster lists."""
        return sorted(broker.node_id for broker in self._manager.cluster.brokers())

    def connection(self, node: int) -> Any:
        """The connection that requests to this node use now; whoever pins it sees it close."""
        try:
            return self._manager.get_connection(node)
        except (kafka_errors.KafkaError, OSError) as cause:
            raise Unreachable(f"node {node} of {self.endpoint}: {cause}") from cause

    def _stands(self, node: int) -> bool:
        return bool(self.connection(node).connected)

    async def ready(self, node: int) -> Any:
        """A connection on which a request leaves at once."""
        connection = self.connection(node)
        try:
            await connection
        except (kafka_errors.KafkaError, OSError) as cause:
            raise Unreachable(f"node {node} of {self.endpoint}: {cause}") from cause
        await self.writable(connection)
        return connection

    async def send(self, request: Any, node: int) -> Any:
        """One request, one response. Whatever goes wrong on the way is `Unreachable`."""
        with self.silent.noting(node):
            return await self.send_on(self.connection(node), request)

    def place_of(self, node: int) -> str:
        """The same words each time: plans that hold them are compared."""
        broker = self._manager.cluster.broker_metadata(node)
        return f"node {node} at {broker.host}:{broker.port}" if broker else f"node {node}"

    def silence_of(self, node: int) -> Refused:
        return Refused(NODE_UNREACHABLE, f"{self.place_of(node)} doesn't answer")

    async def send_on(self, connection: Any, request: Any) -> Any:
        try:
            await self.writable(connection)
            asked_at = self.network.monotonic()
            answer = await connection.send_request(request)
        except (kafka_errors.KafkaError, OSError) as cause:  # TLS trouble is an OSError
            raise Unreachable(f"{self.endpoint}: {type(cause).__name__}: {cause}") from cause
        took = self.network.monotonic() - asked_at
        self.round_trip_seconds = min(self.round_trip_seconds or took, took)
        return answer

    async def send_in_turn(self, requests: Sequence[Any], node: int) -> list[Any]:
        """Over one connection without a pause: the broker takes them one by one, with little in between."""
        with self.silent.noting(node):
            connection = self.connection(node)
            try:
                await self.writable(connection)
                sent = [connection.send_request(request) for request in requests]
                return [await answer for answer in sent]
            except (kafka_errors.KafkaError, OSError) as cause:
                raise Unreachable(f"{self.endpoint}: {type(cause).__name__}: {cause}") from cause

    async def writable(self, connection: Any) -> None:
        """A broker that throttles is waited for, not flooded."""
        while connection.paused and not connection.closed:
            await self.network.sleep(_PAUSE_SECONDS)

    async def topics(
        self, names: Sequence[str] | None, *, node: int | None = None
    ) -> dict[str, TopicMetadata]:
        """Metadata of these topics, or of all that this user may see; leaders are remembered.

        As this node has it, or else the first one that answers.
        Of topics asked for by name, the user's rights come with it; of all of them every half minute.
        """
        now = self.network.monotonic()
        with_rights = names is not None or now - self._operations_at > _RIGHTS_LAST_SECONDS
        request = MetadataRequest(
            topics=None
            if names is None
            else [MetadataRequest.MetadataRequestTopic(name=name, topic_id=UUID(int=0)) for name in names],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=with_rights,
            min_version=10,
            max_version=12,
        )
        answer = await (self.ask_anyone(request) if node is None else self.send(request, node))
        if names is None and with_rights:
            self._operations_at = now
        return {topic.name: self._learn(topic) for topic in answer.topics}

    def _learn(self, topic: Any) -> TopicMetadata:
        for each in topic.partitions:
            if each.leader_id >= 0:
                self._leaders[TopicPartition(topic.name, each.partition_index)] = each.leader_id
        if topic.authorized_operations is not None:
            self._operations[topic.name] = frozenset(topic.authorized_operations)
        if topic.error_code == Code.TOPIC_AUTHORIZATION_FAILED:
            self._hidden.add(topic.name)
        else:
            self._hidden.discard(topic.name)
        return TopicMetadata.of_answer(topic, self._operations.get(topic.name))

    def is_hidden(self, topic: str) -> bool:
        """Whether this user may not even see it, as far as was asked: it has no leader to find."""
        return topic in self._hidden

    async def by_leader(self, partitions: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
        """The partitions by leading node; -1 collects those that have none."""
        wanted = list(partitions)
        unknown = sorted({tp.topic for tp in wanted if tp not in self._leaders})
        if unknown:
            await self.topics(unknown)
        return self.by_known_leader(wanted)

    def by_known_leader(self, partitions: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
        """The same without asking: -1 collects also those whose leader isn't known."""
        grouped: dict[int, list[TopicPartition]] = {}
        for tp in partitions:
            grouped.setdefault(self._leaders.get(tp, -1), []).append(tp)
        return grouped

    def forget_leader(self, tp: TopicPartition) -> None:
        self._leaders.pop(tp, None)

    async def coordinator(self, key: str, kind: int) -> int:
        if (kind, key) in self._coordinators:
            return self._coordinators[kind, key]
        for _ in range(_COORDINATOR_TRIES):
            request = FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=[key])
            answer = await self.ask_anyone(request)
            found = answer.coordinators[0] if answer.coordinators else answer
            if found.error_code != Code.COORDINATOR_NOT_AVAILABLE:
                break
            await self.network.sleep(_COORDINATOR_PAUSE_SECONDS)  # its topic is being made
        if found.error_code in (Code.GROUP_AUTHORIZATION_FAILED, Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED):
            raise self.not_authorized(found.error_code, key)
        if found.error_code:
            raise Unreachable(f"coordinator of {key} on {self.endpoint}: {error_name(found.error_code)}")
        self._coordinators[kind, key] = found.node_id
        return int(found.node_id)

    def forget_coordinator(self, key: str, kind: int) -> None:
        self._coordinators.pop((kind, key), None)

    def not_authorized(self, code: int, resource: str, operation: Operation | None = None) -> CausewayError:
        """The mapped error for an authorization code, with the grant that is missing."""
        needed = operation or _OPERATIONS.get(code)
        return error_of_code(
            code, cluster=self.endpoint, resource=resource, operation=needed.word if needed else ""
        )

    def lacks_right(self, topic: str, operation: Operation) -> CausewayError:
        """The same for a topic, also if only the list of the user's rights says so."""
        return self.not_authorized(int(Code.TOPIC_AUTHORIZATION_FAILED), topic, operation)


_OPERATIONS = {
    int(Code.GROUP_AUTHORIZATION_FAILED): Operation.READ,
    int(Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED): Operation.WRITE,
}
