"""A command that sets a position by hand, with the product's own steps: fence, claim, sleep, prove, commit.

It adopts a partition where it stands, which moves nothing. That is true as long as its fence stands: once a
colleague has lifted it and the mirror has gone on, the same place is a wrong one.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.ports import LaneFenced, OutcomeUnknown, Unreachable
from causeway.core.kernel.errors import ClusterUnreachable, FlowHeld
from causeway.core.kernel.identity import Pair, TopicPartition
from causeway.core.state.fences import COMMAND
from causeway.core.state.position import Position
from causeway.usecases.repair.set_positions import NewPosition, commit_positions, seen_again
from causeway.usecases.run_lock.command_fence import CommandFence
from causeway.usecases.run_lock.fence import claim_all_lanes
from causeway.usecases.run_lock.ownership import Terms, write_fence, write_lift
from tests.simulation.cluster.loop import Process, VirtualNetwork
from tests.simulation.cluster.wire import SimWire
from tests.simulation.fencing import Fencing

if TYPE_CHECKING:
    from tests.simulation.world import World

_PASSING = (Unreachable, OutcomeUnknown, LaneFenced, ClusterUnreachable)


class Adopting:
    """`causeway adopt`, asleep after its fence for a while."""

    def __init__(self, world: World, number: int) -> None:
        self._world, self._token = world, f"adopt-{number}"
        self.process = Process(world.loop, "adopt")
        self.clock = VirtualNetwork(self.process)
        self._target = WireTarget(SimWire(world.target, self.clock, "nyc"))

    async def adopt(self) -> None:
        world = self._world
        try:
            await self._adopt(world.loop.random.choice(sorted(world.mirrors)))
        except (*_PASSING, FlowHeld) as trouble:
            why = str(trouble)
            world.loop.note(lambda: f"adopt ends: {why}")
        else:
            world.loop.note(lambda: "adopted")

    async def _adopt(self, at: TopicPartition) -> None:
        world, target, flow = self._world, self._target, self._world.flow_now()
        await target.wire.connect()
        terms = Terms(token=self._token, owner=COMMAND)
        generation = await write_fence(target, self.clock, flow, by="adopt", because="test", terms=terms)
        await claim_all_lanes(target, self.clock, flow, await target.flow_state(flow.name))
        position = (await target.positions(flow.group, [at], stable=True, marked=True))[at]
        await self.clock.sleep(world.loop.random.uniform(0.05, 3))
        if isinstance(position, Position):
            clusters: Any = SimpleNamespace(target=target, network=self.clock)
            seen = await seen_again(clusters, [_where_it_stands(at, position)])
            await commit_positions(flow, clusters, seen, CommandFence(flow.name, self._token, generation))
        own = (await target.flow_state(flow.name)).fences.get(self._token)
        if own is not None:
            await write_lift(target, self.clock, flow, own, by="adopt", because="test")


def _where_it_stands(at: TopicPartition, position: Position) -> NewPosition:
    return NewPosition(
        pair=Pair(
            source=TopicPartition("orders", at.partition),
            target=at,
            source_topic_id=position.source_topic_id,
            target_topic_id=position.target_topic_id,
        ),
        source_next=position.source_next,
        source_epoch=position.source_epoch,
        records=position.records,
        aborted_records=position.aborted_records,
        target_end=-1,
    )


def adopt_while_somebody_lifts(world: World) -> None:
    """One at a time; at the end all is lifted, whoever raised it."""
    if world.is_fencing:
        return
    world.is_fencing = True
    adopting = Adopting(world, world.loop.random.getrandbits(32))
    world.loop.note(lambda: "adopts")
    done = adopting.process.spawn(adopting.adopt())
    colleague = Fencing(world)

    async def lift() -> None:
        if world.loop.random.random() < 0.7:
            await colleague.clock.sleep(world.loop.random.uniform(0.05, 2))
            await colleague.turn(fenced=False)
        while not done.is_done:
            await colleague.clock.sleep(0.1)
        await colleague.turn(fenced=False)
        world.is_fencing = False

    colleague.process.spawn(lift())
