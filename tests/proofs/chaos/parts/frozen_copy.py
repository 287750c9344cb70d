"""A run of a flow in this process that stops itself (SIGSTOP) at a named step of the protocol, once.

    python -m tests.proofs.chaos.parts.frozen_copy JOB.pickle        a pickled FrozenJob

A job with a task runs that lane only, as a Spark task would that is repeated or found lost by mistake.
Whoever started it wakes it with SIGCONT, and the step goes on as if nothing had happened.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from causeway.brokers.wire.lane_transaction import LaneTransaction
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.lane_task import LaneResult, LaneTask
from causeway.core.copy.report import RunReport
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import CausewayError
from causeway.core.model.flow import Flow
from causeway.usecases.copy.blocking_driver import copy_flow
from causeway.usecases.copy.run import RunOptions
from causeway.usecases.copy.worker import LaneWorker
from causeway.usecases.run_lock.ownership import RunOwner

STEPS: dict[str, tuple[type, str]] = {
    "claim": (WireTarget, "claim"),
    "append": (LaneTransaction, "append"),
    "positions": (LaneTransaction, "commit_positions"),
    "end": (LaneTransaction, "end"),
}
"""Where a job can freeze: before the request that the step sends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenJob:
    flow: Flow
    source: ClusterEndpoint
    target: ClusterEndpoint
    step: str
    nth: int
    task: LaneTask | None = None


def run_inline(
    flow: Flow,
    source: ClusterEndpoint,
    target: ClusterEndpoint,
    holder: str,
    before_each: Callable[[LaneTask], None] = lambda _: None,
) -> RunReport:
    """A run without Spark; `before_each` sees every lane's task before it is carried."""
    worker = LaneWorker(source, target)

    def carry(tasks: Sequence[LaneTask]) -> list[LaneResult]:
        for task in tasks:
            before_each(task)
        return [worker.run(task) for task in tasks]

    try:
        return copy_flow(
            flow,
            source,
            target,
            carry,
            RunOptions(holder=RunOwner(name=holder, run_id=holder), run_for_seconds=None),
            print,
        )
    finally:
        worker.close()


def freeze_before(step: str, nth: int) -> None:
    owner, name = STEPS[step]
    original: Callable[..., Any] = getattr(owner, name)
    calls = 0

    def frozen(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == nth:
            os.kill(os.getpid(), signal.SIGSTOP)
        return original(*arguments, **options)

    setattr(owner, name, frozen)


def main(path: str) -> int:
    job: FrozenJob = pickle.loads(Path(path).read_bytes())
    freeze_before(job.step, job.nth)
    if job.task is not None:
        result = LaneWorker(job.source, job.target).run(job.task)
        print(f"lane {result.lane}: {result.outcome} {result.why}")
        return 0
    try:
        run_inline(job.flow, job.source, job.target, "the frozen one")
    except CausewayError as error:
        print(f"causeway: error: {error}")
        return error.exit_code
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
