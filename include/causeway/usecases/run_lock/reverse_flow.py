"""What the flow in the other direction has left on this flow's source, where it keeps its own state.

Only read. A node that is cut off may show what was true earlier; whoever opens both flows in just that
moment finds that neither appends after records of the other (`core/state/reverse_flow.py`).
"""

from __future__ import annotations

from collections.abc import Iterable

from causeway.core.copy.ports import LogEnd, Unreachable
from causeway.core.kernel.errors import FlowHeld
from causeway.core.kernel.identity import TopicPartition
from causeway.core.model.flow import Flow, group_of, map_topic_of
from causeway.core.state.flow_state import FlowState
from causeway.core.state.known_pairs import KnownPair
from causeway.core.state.position import Position
from causeway.core.state.repair_commands import next_command
from causeway.core.state.reverse_flow import ReverseFlow, ReverseWrites, must_wait_for
from causeway.usecases.session.both_clusters import Clusters, state_on
from causeway.usecases.session.pair_positions import Keeps, has_begun, read_pair_ends


class ReverseFlowReader:
    """Remembers what it has read for as long as the other flow's generation is the same."""

    def __init__(self, flow: Flow, clusters: Clusters) -> None:
        self._flow, self._clusters = flow, clusters
        self._generation, self._ends = -1, dict[TopicPartition, ReverseWrites]()

    async def look(self) -> ReverseFlow | None:
        """None: there is no such flow."""
        if not self._flow.opposite:
            return None
        state = await state_on(self._clusters.at_source, self._flow.opposite)
        if state.generation != self._generation:
            self._ends = await self._read_ends(state)
            self._generation = state.generation
        held = must_wait_for(self._flow, state)
        return ReverseFlow(flow=self._flow.opposite, held=held, pairs=state.pairs, wrote_to=self._ends)

    async def look_and_hold(self) -> ReverseFlow | None:
        """:raises FlowHeld: the other one is open; only one of the two may be."""
        found = await self.look()
        if found is not None and found.held:
            first = self._flow.failback_of or self._flow.name
            raise FlowHeld(
                "flow",
                value=self._flow.name,
                rule=found.held,
                remedy=f"only one of the two may write; {next_command(first)} "
                "says which, and what comes next",
            )
        return found

    async def _read_ends(self, state: FlowState) -> dict[TopicPartition, ReverseWrites]:
        """Where it stands; where that is unknown, everything there may be its own.

        Nothing of topics whose source was emptied to be filled again from here: there is nothing there that
        could come back.
        """
        standing = {name: pair for name, pair in state.pairs.items() if not pair.source_emptied}
        written = {
            tp: pair
            for name, pair in standing.items()
            for tp in _partitions(name, pair)
            if has_begun(state, tp)
        }
        if not written:
            return {}
        at_source, name = self._clusters.at_source, self._flow.opposite
        keeps = Keeps(group=group_of(name), map_topic=map_topic_of(self._flow.target))
        found = await read_pair_ends(keeps, at_source, state, list(written))
        ends = {
            tp: ReverseWrites(next=p.target_next, topic_id=p.target_topic_id, from_topic_id=p.source_topic_id)
            for tp, p in found.items()
            if isinstance(p, Position)
        }
        unknown = [tp for tp in written if tp not in ends]
        logs = await at_source.log_ends(unknown) if unknown else {}
        for tp in unknown:
            log, pair = logs[tp], written[tp]
            if not isinstance(log, LogEnd):
                raise Unreachable(f"end of {tp}, where flow {name} has written: {log}")
            ids = {"topic_id": pair.target_topic_id, "from_topic_id": pair.source_topic_id}
            ends[tp] = ReverseWrites(next=log.offset, **ids)
        return ends


def _partitions(topic: str, pair: KnownPair) -> Iterable[TopicPartition]:
    return (TopicPartition(topic, number) for number in range(pair.partitions))
