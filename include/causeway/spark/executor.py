"""On the executor: run lanes, and keep the connections for the next round.

Spark reuses its Python workers, so a module global outlives a task. Nothing here is pickled by value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from causeway.core.copy.lane_task import LaneResult, LaneTask
from causeway.core.groups.task import GroupTask, GroupTaskResult
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import CausewayError
from causeway.usecases.copy.worker import LaneWorker
from causeway.usecases.groups.sync import work_alone


@dataclass(frozen=True, slots=True)
class LanePayload:
    """What a Spark task carries: the lane, and how to reach both clusters (secrets stay out of reprs)."""

    task: LaneTask
    source: ClusterEndpoint
    target: ClusterEndpoint


@dataclass(frozen=True, slots=True)
class GroupPayload:
    """A share of the work on groups, and how to reach both clusters."""

    task: GroupTask
    source: ClusterEndpoint
    target: ClusterEndpoint


_workers: dict[str, tuple[LanePayload, LaneWorker]] = {}


def carry_lanes(payloads: Iterable[LanePayload]) -> Iterator[LaneResult]:
    for payload in payloads:
        yield _worker(payload).run(payload.task)


def _worker(payload: LanePayload) -> LaneWorker:
    """The connections of the last round, unless the settings have changed since (a new password)."""
    flow = payload.task.flow
    if flow in _workers:
        before, worker = _workers[flow]
        if (before.source, before.target) == (payload.source, payload.target):
            return worker
        worker.close()
    worker = LaneWorker(payload.source, payload.target)
    _workers[flow] = payload, worker
    return worker


def carry_groups(payloads: Iterable[GroupPayload]) -> Iterator[GroupTaskResult | CausewayError]:
    """An error is a result, too: as an exception only its text would come back from Spark."""
    for payload in payloads:
        try:
            yield work_alone(payload.task, payload.source, payload.target)
        except CausewayError as error:
            yield error
