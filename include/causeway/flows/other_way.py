"""What the flow in the other direction has left on this flow's source, where it keeps its own state.

Only read. A node that is cut off may show what was true earlier; whoever opens both flows in just that
moment finds that neither appends behind records of the other (`core/opposite.py`).
"""

from __future__ import annotations

from collections.abc import Iterable

from causeway.core.errors import FlowHeld
from causeway.core.flow import Flow, group_of, map_topic_of
from causeway.core.flow_state import FlowState, KnownPair
from causeway.core.identity import TopicPartition
from causeway.core.opposite import OtherWay, WroteTo, held_by
from causeway.core.position import Position
from causeway.flows.clusters import Clusters, state_on


class OtherDirection:
    """Remembers what it has read for as long as the other flow's generation is the same."""

    def __init__(self, flow: Flow, clusters: Clusters) -> None:
        self._flow, self._clusters = flow, clusters
        self._generation, self._ends = -1, dict[TopicPartition, WroteTo]()

    async def look(self) -> OtherWay | None:
        """None: there is no such flow."""
        if not self._flow.opposite:
            return None
        state = await state_on(self._clusters.at_source, self._flow.opposite)
        if state.generation != self._generation:
            self._ends = await self._read_ends(state)
            self._generation = state.generation
        held = held_by(self._flow, state)
        return OtherWay(flow=self._flow.opposite, held=held, pairs=state.pairs, wrote_to=self._ends)

    async def look_and_hold(self) -> OtherWay | None:
        """:raises FlowHeld: the other one is open; only one of the two may be."""
        found = await self.look()
        if found is not None and found.held:
            raise FlowHeld(
                "flow",
                value=self._flow.name,
                rule=found.held,
                remedy=f'`causeway fence {found.flow} --because "..."` first: only one of the two may write',
            )
        return found

    async def _read_ends(self, state: FlowState) -> dict[TopicPartition, WroteTo]:
        """By its positions; where they have expired by its map, which knows of records only.

        Nothing of topics whose source was emptied to be filled again from here: there is nothing there that
        could come back.
        """
        standing = {name: pair for name, pair in state.pairs.items() if not pair.source_emptied}
        written = {tp: pair for name, pair in standing.items() for tp in _partitions(name, pair)}
        if not written:
            return {}
        at_source, name = self._clusters.at_source, self._flow.opposite
        found = await at_source.positions(group_of(name), list(written), stable=False)
        ends = {
            tp: WroteTo(next=p.target_next, topic_id=p.target_topic_id, from_topic_id=p.source_topic_id)
            for tp, p in found.items()
            if isinstance(p, Position)
        }
        lost = [tp for tp in written if tp not in ends]
        runs = await at_source.map_runs(map_topic_of(self._flow.target), lost) if lost else {}
        for tp in lost:
            ours = [r for r in runs.get(tp, ()) if r.target_topic_id == written[tp].target_topic_id]
            if ours:
                last = max(ours, key=lambda run: run.target_next)
                ids = {"topic_id": last.target_topic_id, "from_topic_id": last.source_topic_id}
                ends[tp] = WroteTo(next=last.target_next, **ids)
        return ends


def _partitions(topic: str, pair: KnownPair) -> Iterable[TopicPartition]:
    return (TopicPartition(topic, number) for number in range(pair.partitions))
