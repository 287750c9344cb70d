"""Both clusters of a flow, opened together and checked to be two different ones that the protocol can use.

A use case is a coroutine. `run_at_both` and `run_at_target` open what it needs, run it once, and close: they
and their like in `source_may_be_gone.py` are the bridge from code that blocks to code that waits.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from causeway.brokers.admin.probe import probe
from causeway.brokers.admin.topics import ClusterAdmin
from causeway.brokers.transport.connection import Network, Wire
from causeway.brokers.wire.log_reader import WireLogReader
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.kernel.acl_vocabulary import Operation, Side
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import BadInput
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.model.flow import Flow
from causeway.core.model.naming import FLOWS_TOPIC
from causeway.core.state.flow_state import FlowState
from causeway.usecases.session.blocking import blocking

T = TypeVar("T")


@dataclass(slots=True)
class Clusters:
    network: Network
    source: WireLogReader
    target: WireTarget
    at_source: WireTarget = field(init=False)
    """The source, as other flows' target; it is only read."""

    def __post_init__(self) -> None:
        self.at_source = WireTarget(self.source.wire)

    @property
    def wires(self) -> dict[Side, Wire]:
        return {"source": self.source.wire, "target": self.target.wire}

    @property
    def turned(self) -> Clusters:
        """The same two for the flow in the other direction."""
        return Clusters(self.network, self.target, self.at_source)

    async def connect(self) -> None:
        await self.source.wire.connect()
        await self.target.wire.connect()

    def disconnect(self) -> None:
        self.source.wire.disconnect()
        self.target.wire.disconnect()

    async def flow_state(self, flow: Flow) -> FlowState:
        """The flow's state; a target that never had a flow has none.

        :raises NotAuthorized: this user may not read it; that must not look like a flow without a past.
        """
        return await state_on(self.target, flow.name)


async def state_on(target: WireTarget, flow: str) -> FlowState:
    """As `Clusters.flow_state`, for who has the target only."""
    found = (await target.wire.topics([FLOWS_TOPIC]))[FLOWS_TOPIC]
    if found.lacks(Operation.READ):
        raise target.wire.lacks_right(FLOWS_TOPIC, Operation.READ)
    if found.error == Code.UNKNOWN_TOPIC_OR_PARTITION:
        return FlowState()
    return await target.flow_state(flow)


@contextmanager
def open_clusters(source: ClusterEndpoint, target: ClusterEndpoint) -> Iterator[Clusters]:
    """:raises ClusterTrouble: one line that says which cluster can't be used, and why."""
    for endpoint in (source, target):
        probe(endpoint)
    network = Network()
    clusters = Clusters(network, WireLogReader(Wire(source, network)), WireTarget(Wire(target, network)))
    try:
        network.run(clusters.connect)
        yield clusters
    finally:
        clusters.disconnect()
        network.close()


@contextmanager
def open_target(endpoint: ClusterEndpoint) -> Iterator[tuple[Network, WireTarget]]:
    """For what needs no source: it may be gone.

    :raises ClusterTrouble: one line that says why the target can't be used.
    """
    probe(endpoint)
    network = Network()
    target = WireTarget(Wire(endpoint, network))
    try:
        network.run(target.wire.connect)
        yield network, target
    finally:
        target.wire.disconnect()
        network.close()


def run_at_both(
    source: ClusterEndpoint, target: ClusterEndpoint, work: Callable[[Clusters], Awaitable[T]]
) -> T:
    """:raises ClusterTrouble: as `open_clusters`, and whatever `work` raises."""
    with open_clusters(source, target) as clusters:
        return clusters.network.run(lambda: work(clusters))


def run_at_target(endpoint: ClusterEndpoint, work: Callable[[WireTarget], Awaitable[T]]) -> T:
    """:raises ClusterTrouble: as `open_target`, and whatever `work` raises."""
    with open_target(endpoint) as (network, target):
        return network.run(lambda: work(target))


@asynccontextmanager
async def opened_beside(network: Network, endpoint: ClusterEndpoint) -> AsyncIterator[WireTarget]:
    """Another cluster, for work that has begun already.

    :raises ClusterTrouble: one line that says why it can't be used.
    """
    await blocking(lambda: probe(endpoint))
    log = WireTarget(Wire(endpoint, network))
    try:
        await log.wire.connect()
        yield log
    finally:
        log.wire.disconnect()


def refuse_one_cluster(flow: Flow, clusters: Clusters) -> None:
    source, target = clusters.source.wire, clusters.target.wire
    if source.cluster_id == target.cluster_id:
        raise BadInput(
            f"clusters {flow.source} and {flow.target} of flow {flow.name}",
            value=source.cluster_id,
            rule="are one and the same cluster: copying it into itself never ends",
            remedy="point one of the two connections at the other cluster",
        )


def refuse_other_clusters(flow: Flow, clusters: Clusters, state: FlowState) -> None:
    """A flow's positions mean nothing on clusters that it wasn't begun with."""
    _refuse_other(flow, flow.source, state.source_cluster_id, clusters.source.wire)
    refuse_other_target(flow, clusters.target.wire, state)


def refuse_other_target(flow: Flow, target: Wire, state: FlowState) -> None:
    _refuse_other(flow, flow.target, state.target_cluster_id, target)


def _refuse_other(flow: Flow, alias: str, known: str | None, found: Wire) -> None:
    if known is not None and known != found.cluster_id:
        raise BadInput(
            f"cluster {alias} of flow {flow.name}",
            value=found.cluster_id,
            rule=f"this flow began with cluster {known} under that name",
            remedy="use a new flow name for other clusters, or correct the connection",
        )


def admins(source: ClusterEndpoint, target: ClusterEndpoint) -> tuple[ClusterAdmin, ClusterAdmin]:
    return ClusterAdmin(source), ClusterAdmin(target)
