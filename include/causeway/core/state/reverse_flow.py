"""Two flows under the same names in opposite directions: one mirrors, the other is its failback.

Such names tell nothing of where a record came from. What keeps a record from going round is where each of the
two reads:

    A. At most one of them is open; the other one is fenced, or is a failback that never had its turn.
    B. Neither reads before where the other one wrote: what lies there came from where it would go. But
       for topics that a rebuild has emptied to fill them again from there, until home is reached.
    C. The failback begins nowhere by itself, and the other one nowhere in a topic that the failback has
       written: a person says where (`adopt`), and that is held to B.

Besides all three there is what holds for every mirror: who finds records at a partition's end that it didn't
write appends nothing there.

A fence counts from when it is written down, and holds from when its command has ended, with all lanes
claimed. Whoever adopts in the other direction in between may pass over a transaction that still comes: a run
that begins after it finds that by B, and parks. Known limit: one that has begun by then doesn't look again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from causeway.core.kernel.identity import Pair, TopicPartition
from causeway.core.model.flow import Flow
from causeway.core.state.flow_state import FlowState
from causeway.core.state.known_pairs import KnownPair


@dataclass(frozen=True, slots=True, kw_only=True)
class ReverseWrites:
    """Where the other flow's records end in a partition, while these two topics are the ones."""

    next: int
    topic_id: object
    from_topic_id: object


@dataclass(frozen=True, slots=True, kw_only=True)
class ReverseFlow:
    """What the flow in the other direction has left on this flow's source."""

    flow: str
    held: str = ""
    """Why this flow must not copy; empty: the other one is closed."""
    pairs: Mapping[str, KnownPair] = field(default_factory=dict)
    """By its target topic, which is this flow's source topic."""
    wrote_to: Mapping[TopicPartition, ReverseWrites] = field(default_factory=dict)

    def of(self, flow: Flow, pair: Pair) -> ReverseLimit | None:
        """What a lane has to heed; None: the other flow has nothing to do with that partition."""
        known = self.pairs.get(pair.source.topic)
        is_theirs = (
            known is not None
            and known.target_topic_id == pair.source_topic_id
            and pair.source.partition < known.partitions
        )
        if not (flow.failback_of or is_theirs):
            return None
        return ReverseLimit(flow=self.flow, wrote_to=self.end_of(pair))

    def end_of(self, pair: Pair) -> int:
        """The first source offset of this pair that the other flow didn't write; -1: not known of any."""
        found = self.wrote_to.get(pair.source)
        return found.next if found and (found.topic_id, found.from_topic_id) == pair.ids else -1


def must_wait_for(flow: Flow, other: FlowState) -> str:
    """Invariant A: why `flow` must not copy; empty: it may write."""
    name = flow.opposite
    if any(fence.is_at_work for fence in other.standing):
        return f"a command is at work on {name}, which leads the other way"
    if other.fence is not None:
        return ""
    if flow.failback == name and other.generation < 0:
        return ""
    return f"{name} leads the other way under the same names, and isn't fenced"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReverseLimit:
    """The flow in the other direction under the same names: the partition begins by adoption only, and
    not before where that flow wrote (`core/state/reverse_flow.py`)."""

    flow: str
    wrote_to: int = -1
