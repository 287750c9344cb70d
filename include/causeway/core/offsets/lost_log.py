"""Whether `causeway-flows.internal` has lost what it knew of a flow, and how turns are numbered then.

Each committed position holds the generation of the run that committed it, and so does each run of the offset
map. The journal of failovers holds the generation that each failover saw. The newest turn of the flow is
never older than these. So where the topic knows of older turns only, or of none, it was deleted, or its end
was cut off: the fences are gone with it. And offsets begin at 0 again: without a `floor`, new generations
would be lower than those in positions, map and journal, and newer work would be taken for older.

Known limit: what nobody can see any more is no evidence. A flow without committed positions (they expire
after seven idle days), without offset map and without failover looks like one that never ran. And a run that
committed nothing leaves none: so the floor lies far above what is known (`floor_above`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from causeway.core.kernel.errors import CausewayError, ProtocolFault
from causeway.core.kernel.identity import Pair, TopicPartition
from causeway.core.model.flow import Flow
from causeway.core.model.naming import FLOWS_TOPIC, RuleNaming
from causeway.core.offsets.map_entries import MapOf
from causeway.core.offsets.pair_position import Kept, where_it_was_left
from causeway.core.state.flow_log import as_record
from causeway.core.state.flow_state import FlowState
from causeway.core.state.known_pairs import KnownPair
from causeway.core.state.position import ForeignPosition, Position
from causeway.core.state.repair_commands import recover_command, recover_record_command

Found = Mapping[TopicPartition, Position | ForeignPosition]
_STEP = 1_000_000_000
"""No flows topic is as long as that: of one record a second it would take 30 years."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """That the flow has run, with the newest generation that is known."""

    generation: int
    what: str
    record: str = ""
    """Of the journal: a person may name it (`causeway recover --record`), and then it is no evidence."""


def newest_of(positions: Found, mapped: Mapping[TopicPartition, int]) -> Evidence | None:
    """`mapped`: by target partition, the newest generation that the offset map knows of."""
    held = {tp: int(found.generation) for tp, found in positions.items() if isinstance(found, Position)}
    known = [
        *((generation, tp, "the position of") for tp, generation in held.items()),
        *((generation, tp, "the offset map of") for tp, generation in mapped.items()),
    ]
    if not known:
        return None
    generation, tp, what = max(known)
    return Evidence(generation=generation, what=f"{what} {tp}")


def newer(*each: Evidence | None) -> Evidence | None:
    known = [one for one in each if one is not None]
    return max(known, key=lambda one: one.generation) if known else None


def lost_since(state: FlowState, newest: Evidence | None) -> Evidence | None:
    """What proves that the topic knew more of the flow than it does; None: nothing does."""
    return newest if newest is not None and newest.generation > state.generation else None


def lost_fault(flow: Flow, evidence: Evidence) -> CausewayError:
    foreign = recover_record_command(flow.name, evidence.record) if evidence.record else ""
    return ProtocolFault(
        f"{FLOWS_TOPIC} of {flow.target}",
        rule=f"has lost what it knew of flow {flow.name}, its fences too: {evidence.what} is of generation "
        f"{evidence.generation}, and the topic has no turn as new as that",
        remedy=f"stop whoever still runs the flow, then {recover_command(flow.name)} fences it, and numbers "
        "its turns above all that is known"
        + (f". If Causeway didn't write that record, {foreign} leaves it out" if foreign else ""),
    )


def source_topic_of(flow: Flow, target_topic: str) -> str | None:
    """The source topic that the flow calls so; None: the name doesn't tell. Of rules it never does: they may
    give two topics one name."""
    naming = flow.naming
    if isinstance(naming, RuleNaming):
        return None
    for name in (target_topic, target_topic.removeprefix(f"{flow.source}{flow.separator}")):
        if naming.target_topic(name) == target_topic:
            return name
    return None


def could_mirror(flow: Flow, target_topic: str) -> bool:
    """Whether the flow's own list of topics may have one of that name on the target."""
    if isinstance(flow.naming, RuleNaming):
        return any(rule.could_make(target_topic) for rule in flow.naming.rules)
    source = source_topic_of(flow, target_topic)
    return source is not None and (flow.topics.matches(source) or flow.mirrors_heartbeats(source))


def pairs_found(flow: Flow, positions: Found, mapped: Mapping[TopicPartition, MapOf]) -> dict[str, KnownPair]:
    """What positions tell of the pairs that the flow had begun with, by target topic. Of partitions that have
    none (committed offsets expire one by one), `mapped` tells whether they had begun.

    Left out are those whose source topic doesn't follow from their name, or that no position tells of: flows
    of one source share the map. The next run finds them again.
    """
    by_topic: dict[str, dict[int, Position]] = {}
    for tp, found in positions.items():
        if isinstance(found, Position):
            by_topic.setdefault(tp.topic, {})[tp.partition] = found
    pairs: dict[str, KnownPair] = {}
    for topic, held in by_topic.items():
        source = source_topic_of(flow, topic)
        newest = max(held.values(), key=lambda position: position.generation)
        if source is not None:
            begun = held.keys() | _left_in_map(source, topic, newest, mapped)
            count = max(begun) + 1
            pairs[topic] = KnownPair(
                source_topic=source,
                source_topic_id=newest.source_topic_id,
                target_topic_id=newest.target_topic_id,
                partitions=count,
                not_begun=frozenset(range(count)) - begun,
            )
    return pairs


def _left_in_map(
    source: str, topic: str, newest: Position, mapped: Mapping[TopicPartition, MapOf]
) -> set[int]:
    """Partitions of which the map knows where they stand."""
    left: set[int] = set()
    for tp, known in mapped.items():
        pair = Pair(
            source=TopicPartition(source, tp.partition),
            target=tp,
            source_topic_id=newest.source_topic_id,
            target_topic_id=newest.target_topic_id,
        )
        if tp.topic == topic and where_it_was_left(pair, Kept(runs=known.runs, place=known.place)):
            left.add(tp.partition)
    return left


def floor_above(generation: int) -> int:
    """Where turns go on after a loss: a number that somebody has used before isn't used again."""
    return (generation // _STEP + 1) * _STEP


def floor_record(flow: str, floor: int) -> tuple[bytes, bytes]:
    """From here on the flow's turns are numbered so much higher. A key of its own: none is ever lost."""
    key, body = as_record("floor", flow, {"floor": floor})
    return key + f"/{floor}".encode(), body


def of_flow(
    flow: Flow, mapped: Mapping[TopicPartition, int], others: Iterable[FlowState]
) -> dict[TopicPartition, int]:
    """What the flow itself may have written of a map that flows of one source share."""
    theirs = {topic for state in others for topic in state.pairs}
    return {
        tp: generation
        for tp, generation in mapped.items()
        if tp.topic not in theirs and could_mirror(flow, tp.topic)
    }
