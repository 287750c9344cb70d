"""Signs of life of a run, from a thread with its own connection, so that a long round doesn't hide them."""

from __future__ import annotations

import threading
from types import TracebackType

from causeway.brokers.target_log import WireTarget
from causeway.brokers.wire import Network, Wire
from causeway.core.endpoint import ClusterEndpoint
from causeway.core.errors import CausewayError
from causeway.core.identity import Generation
from causeway.core.ports import Unreachable
from causeway.flows.ownership import ALIVE_EVERY_SECONDS, sign_of_life


class LifeSigns:
    def __init__(self, target: ClusterEndpoint, flow: str, generation: Generation) -> None:
        self._endpoint, self._flow, self._generation = target, flow, generation
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="life-signs", daemon=True)

    def __enter__(self) -> LifeSigns:
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

    def _run(self) -> None:
        network = Network()
        target = WireTarget(Wire(self._endpoint, network))
        while not self._stop.wait(ALIVE_EVERY_SECONDS):
            try:
                network.run(lambda: self._say(target))
            except (Unreachable, CausewayError):
                # The run itself finds out, and says so; here only the next sign matters.
                target.wire.disconnect()
        target.wire.disconnect()
        network.close()

    async def _say(self, target: WireTarget) -> None:
        await target.wire.connect()
        await sign_of_life(target, target.wire.network, self._flow, self._generation, ended=False)
