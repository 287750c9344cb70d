"""Signs of life of a run, from a thread with its own connection, so that a long round doesn't hide them."""

from __future__ import annotations

import threading
from types import TracebackType

from causeway.brokers.transport.connection import Network, Wire
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.ports import Unreachable
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import CausewayError
from causeway.core.kernel.identity import Generation
from causeway.usecases.run_lock.ownership import ALIVE_EVERY_SECONDS, write_keepalive


class Keepalive:
    def __init__(self, target: ClusterEndpoint, flow: str, generation: Generation) -> None:
        self._endpoint, self._flow, self._generation = target, flow, generation
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep_alive, name="life-signs", daemon=True)

    def __enter__(self) -> Keepalive:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=ALIVE_EVERY_SECONDS)

    def _keep_alive(self) -> None:
        network = Network()
        target = WireTarget(Wire(self._endpoint, network))
        while not self._stop.wait(ALIVE_EVERY_SECONDS):
            try:
                network.run(lambda: self._write_sign(target))
            except (Unreachable, CausewayError):
                # The run itself finds out, and says so; here only the next sign matters.
                target.wire.disconnect()
        target.wire.disconnect()
        network.close()

    async def _write_sign(self, target: WireTarget) -> None:
        await target.wire.connect()
        await write_keepalive(target, target.wire.network, self._flow, self._generation, ended=False)
