"""Runs lanes in this process, and keeps the connections between rounds.

One worker per process and pair of clusters. After a doubt everything is dropped: the next lane begins
with new connections and reads what is true.
"""

from __future__ import annotations

from causeway.brokers.transport.connection import Network, Wire
from causeway.brokers.wire.log_reader import WireLogReader
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.lane_task import LaneResult, LaneTask, Outcome, PartitionRow
from causeway.core.copy.ports import Unreachable
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import CausewayError, ClusterUnreachable
from causeway.usecases.copy.lane.run import run_lane


class LaneWorker:
    def __init__(self, source: ClusterEndpoint, target: ClusterEndpoint) -> None:
        self._network = Network()
        self._source = WireLogReader(Wire(source, self._network))
        self._target = WireTarget(Wire(target, self._network))

    def run(self, task: LaneTask) -> LaneResult:
        """Never raises for what can happen to a cluster: a lane's trouble is data."""
        try:
            result = self._network.run(lambda: self._run(task))
        except (ClusterUnreachable, Unreachable) as trouble:
            result = without_rows(task, "doubt", str(trouble))
        except CausewayError as error:
            result = without_rows(task, "failed", str(error), error)
        if result.outcome != "done":
            self.disconnect()
        return result

    async def _run(self, task: LaneTask) -> LaneResult:
        await self._source.wire.connect()
        await self._target.wire.connect()
        return await run_lane(task, self._source, self._target, self._network)

    def disconnect(self) -> None:
        self._source.wire.disconnect()
        self._target.wire.disconnect()

    def close(self) -> None:
        self.disconnect()
        self._network.close()


def without_rows(
    task: LaneTask, outcome: Outcome, why: str, error: CausewayError | None = None
) -> LaneResult:
    """Of a lane that can't tell what it did; what it did is on the target."""
    rows = tuple(
        PartitionRow(source=a.pair.source, target=a.pair.target, later=why) for a in task.assignments
    )
    return LaneResult(lane=task.lane, outcome=outcome, why=why, transactions=0, rows=rows, error=error)
