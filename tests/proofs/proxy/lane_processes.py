"""Lanes in processes of their own that can be killed: forked from one that has everything loaded.

python -m tests.proofs.proxy.lane_processes SOCKET        the parent of all of them
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path

from causeway.core.copy import repack
from causeway.core.copy.lane_task import LaneResult, LaneTask
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.usecases.copy.worker import LaneWorker
from tests.proofs.chaos.parts.processes import start, wait_until


class Killed(Exception):
    """The process went without a word."""


@dataclass(frozen=True, slots=True)
class LaneProcesses:
    address: str

    def begin(self, source: ClusterEndpoint, target: ClusterEndpoint) -> LaneProcess:
        return LaneProcess(Client(self.address, "AF_UNIX"), source, target)


class LaneProcess:
    """One worker; it lives until it is killed or closed."""

    def __init__(self, connection: Connection, source: ClusterEndpoint, target: ClusterEndpoint) -> None:
        self._connection = connection
        self._pid: int = connection.recv()
        connection.send((source, target))

    def run(self, task: LaneTask) -> LaneResult:
        """:raises Killed: somebody was quicker."""
        try:
            self._connection.send(task)
            result: LaneResult = self._connection.recv()
        except (EOFError, ConnectionError) as gone:
            raise Killed from gone
        return result

    def kill(self) -> None:
        """It lives until its end of the line is closed, so the pid can't be another's."""
        os.kill(self._pid, signal.SIGKILL)

    def close(self) -> None:
        self._connection.close()


@contextmanager
def lane_processes(folder: Path) -> Iterator[LaneProcesses]:
    address = str(folder / "lanes")
    command = [sys.executable, "-m", "tests.proofs.proxy.lane_processes", address]
    paths = f"{Path(__file__).parents[3]}:{os.environ.get('PYTHONPATH', '')}"
    parent = start("lanes", command, folder / "lanes.log", {**os.environ, "PYTHONPATH": paths})
    try:
        wait_until(lambda: Path(address).exists() or parent.exit_code is not None, "lanes can be forked")
        assert parent.exit_code is None, parent.output()
        yield LaneProcesses(address)
    finally:
        parent.kill_all()


def _work(connection: Connection) -> None:
    connection.send(os.getpid())
    worker = LaneWorker(*connection.recv())
    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        connection.send(worker.run(task))


def main(address: str) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with Listener(address, "AF_UNIX", backlog=64) as listener:
        while True:
            connection = listener.accept()
            if os.fork() == 0:
                _work(connection)
                os._exit(0)
            connection.close()


if __name__ == "__main__":
    repack._FEW_RECORDS = 0  # these places want many requests: small batches aren't joined here
    main(sys.argv[1])
