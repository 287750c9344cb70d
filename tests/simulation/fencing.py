"""People who fence the flow and lift the fence again, with the product's own commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.ports import LaneFenced, OutcomeUnknown, Unreachable
from causeway.core.kernel.errors import ClusterUnreachable, UnknownName
from causeway.usecases.run_lock import fence as fence_module
from tests.simulation.cluster.loop import Process, VirtualNetwork
from tests.simulation.cluster.wire import SimWire

if TYPE_CHECKING:
    from tests.simulation.world import World


class Fencing:
    """`causeway fence` and, a while later, `causeway lift`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.process = Process(world.loop, "fence")
        self.clock = VirtualNetwork(self.process)
        self._target = WireTarget(SimWire(world.target, self.clock, "nyc"))

    async def turn(self, *, fenced: bool) -> None:
        world = self._world
        for _ in range(100):
            try:
                await self._target.wire.connect()
                if not fenced:
                    world.is_fenced = False
                if fenced:
                    await fence_module.fence_for_people(
                        self._target, self.clock, world.flow_now(), by="test", because="test"
                    )
                else:
                    await self._lift_all()
            except (Unreachable, OutcomeUnknown, LaneFenced, ClusterUnreachable, UnknownName):
                self._target.wire.disconnect()
                await self.clock.sleep(0.3)
            else:
                if fenced:
                    world.is_fenced = True
                world.loop.note(lambda: f"fenced: {fenced}")
                return

    async def _lift_all(self) -> None:
        """One that was given up and sent again stands beside the second one."""
        flow, words = self._world.flow_now(), {"by": "test", "because": "test"}
        while standing := (await self._target.flow_state(flow.name)).standing:
            number = standing[0].generation
            await fence_module.write_the_lift(self._target, self.clock, flow, **words, number=number)
