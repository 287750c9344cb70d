"""Is a transaction open on the mirror right now? Asked of the partitions' leaders."""

from __future__ import annotations

from causeway.brokers.transport.connection import Network, Wire
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.ports import Refused, Unreachable
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import ClusterTrouble
from causeway.core.kernel.identity import TopicPartition


class OpenTransactions:
    def __init__(self, target: ClusterEndpoint, partitions: list[TopicPartition]) -> None:
        self._network = Network()
        self._target = WireTarget(Wire(target, self._network))
        self._partitions = partitions

    def now(self) -> set[TopicPartition]:
        """Partitions on which a transaction is open; a broker that is away is asked again."""
        for _ in range(100):
            try:
                return self._network.run(self._ask)
            except (Unreachable, ClusterTrouble):
                self._target.wire.disconnect()
        raise AssertionError("the target can't be asked for its open transactions")

    async def _ask(self) -> set[TopicPartition]:
        await self._target.wire.connect()
        answers = await self._target.open_producers(self._partitions)
        return {tp for tp, holders in answers.items() if not isinstance(holders, Refused) and holders}

    def close(self) -> None:
        self._target.wire.disconnect()
        self._network.close()
