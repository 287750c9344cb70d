"""Both clusters of a flow, opened together and checked to be two different ones that the protocol can use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from causeway.brokers.admin import ClusterAdmin
from causeway.brokers.log_reader import WireLogReader
from causeway.brokers.probe import probe
from causeway.brokers.target_log import WireTarget
from causeway.brokers.wire import Network, Wire
from causeway.core.endpoint import ClusterEndpoint
from causeway.core.errors import BadInput
from causeway.core.flow import Flow
from causeway.core.flow_state import FlowState
from causeway.core.kafka_errors import KafkaErrorCode as Code
from causeway.core.naming import FLOWS_TOPIC
from causeway.core.rights import Operation, Side


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
