"""Plan a round: read topics, positions and ends once, decide what each lane has to do.

The number of requests grows with brokers, not with partitions: one for the topics of each cluster,
one for all positions, one to each leader for the ends and one for the starts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from causeway.brokers.transport.lagging_nodes import as_known
from causeway.brokers.transport.topic_metadata import TopicMetadata
from causeway.brokers.wire.log_reader import WireLogReader
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.park_reasons import (
    is_of_other_flow,
    left_out,
    source_is_gone,
    topic_is_gone,
    topic_was_recreated,
)
from causeway.core.copy.ports import unknown_partitions
from causeway.core.copy.round_plan import PartitionFacts, RoundPlan, lost_in_front, plan_tasks
from causeway.core.kernel.identity import Generation, Pair, TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.kernel.kafka_errors import error_name
from causeway.core.model.flow import Flow
from causeway.core.offsets.offset_map import MAP_PARTITIONS
from causeway.core.state.fences import Fence, fence_over
from causeway.core.state.flow_state import FlowState
from causeway.core.state.gaps import gap_parked
from causeway.core.state.known_pairs import KnownPair
from causeway.core.state.parked import Parked
from causeway.core.state.reverse_flow import ReverseFlow
from causeway.core.topics.plan import MirroredTopic, TopicPlan, also_refused, only_of, plan_topics
from causeway.core.topics.topic_facts import RefusedTopic, TopicFacts
from causeway.usecases.copy.permissions import deleted_topics, leave_alone_what_is_denied, missing_topics
from causeway.usecases.copy.round_facts import Memory, read_facts
from causeway.usecases.copy.under_min_isr import take_nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Landscape:
    """Both clusters' topics at one moment, and what the flow makes of them."""

    source: dict[str, TopicMetadata]
    target: dict[str, TopicMetadata]
    topics: TopicPlan
    gone: frozenset[str] = frozenset()
    """Source topics that were mirrored and aren't there any more."""
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    """Target topics that another flow has written as they are now, with its name."""
    other_way: ReverseFlow | None = None
    fences: tuple[Fence, ...] = ()
    """That stand on the flow; some leave out single topics."""

    def fence_over(self, target_topic: str) -> Fence | None:
        return fence_over(self.fences, target_topic)

    def after_refusals(self, refused: Collection[RefusedTopic]) -> Landscape:
        """Less what the target refused to make; a mirror that couldn't grow goes on with what it has."""
        names = {each.topic for each in refused}
        smaller = tuple(
            replace(topic, partitions=len(self.target[topic.target].leaders))
            for topic in self.topics.mirrored
            if topic.source in names and topic.target in self.target
        )
        plan = also_refused(self.topics, refused)
        return replace(self, topics=replace(plan, mirrored=plan.mirrored + smaller))


async def survey_topics(
    flow: Flow,
    source: WireLogReader,
    target: WireTarget,
    state: FlowState,
    other_way: ReverseFlow | None = None,
    only: frozenset[str] | None = None,
) -> Landscape:
    """`only`: nothing is to be done for other source topics than these."""
    sources = {pair.source_topic: pair.source_topic_id for pair in state.pairs.values()}
    source_topics = await as_known(source.wire, await source.wire.topics(None), sources)
    targets = {name: pair.target_topic_id for name, pair in state.pairs.items()}
    target_topics = await as_known(target.wire, await target.wire.topics(None), targets)
    missing = await missing_topics(flow, state, source.wire, source_topics)
    source_topics |= {t.name: t for t in missing.values() if t.error == Code.TOPIC_AUTHORIZATION_FAILED}
    plan = plan_topics(flow, _topic_facts(source_topics), _topic_facts(target_topics), frozenset(state.pairs))
    plan = await leave_alone_what_is_denied(plan, (source.wire, source_topics), (target.wire, target_topics))
    plan, gone = only_of(plan, only), deleted_topics(state, missing)
    to_grow = tuple(growth for growth in plan.to_grow if state.fence_over(growth.name) is None)
    return Landscape(
        source=source_topics,
        target=target_topics,
        topics=replace(plan, to_grow=to_grow),
        gone=gone if only is None else gone & only,
        elsewhere=_of_other_flows(flow, target, target_topics),
        other_way=other_way,
        fences=state.standing,
    )


def _of_other_flows(flow: Flow, target: WireTarget, topics: Mapping[str, TopicMetadata]) -> dict[str, str]:
    return {
        name: other
        for other, state in target.other_flows(flow.name).items()
        for name, pair in state.pairs.items()
        if name in topics and topics[name].topic_id == pair.target_topic_id
    }


def _topic_facts(topics: dict[str, TopicMetadata]) -> list[TopicFacts]:
    return [
        TopicFacts(t.name, len(t.leaders), (), t.is_internal)
        for t in topics.values()
        if not t.error or t.error in (Code.LEADER_NOT_AVAILABLE, Code.TOPIC_AUTHORIZATION_FAILED)
    ]


def pairs_to_remember(
    flow: Flow, landscape: Landscape, known: Mapping[str, KnownPair]
) -> dict[str, KnownPair]:
    """By target topic: what a run begins with that isn't `known` as it is, growth included."""
    if flow.failback_of:
        return {}  # it begins with what is adopted, and adoptions are remembered by themselves
    found: dict[str, KnownPair] = {}
    for topic in landscape.topics.mirrored:
        here, there = landscape.source[topic.source], landscape.target.get(topic.target)
        if there is None or there.error or here.error:
            continue
        before = known.get(topic.target)
        if before is None and topic.target in landscape.elsewhere:
            continue  # another flow's: parked
        ids = here.topic_id, there.topic_id
        if before is None:
            found[topic.target] = KnownPair(
                source_topic=topic.source,
                source_topic_id=ids[0],
                target_topic_id=ids[1],
                partitions=topic.partitions,
            )
        elif before.ids == ids and before.partitions < topic.partitions:  # else a person has to accept it
            found[topic.target] = replace(before, partitions=topic.partitions)
    return found


async def plan_round(
    memory: Memory,
    generation: Generation,
    source: WireLogReader,
    target: WireTarget,
    landscape: Landscape,
    waiting: frozenset[TopicPartition] = frozenset(),
) -> RoundPlan:
    """`memory` has the flow's state as it is now, and the pairs that the flow has begun with, those of this
    run included: a topic that is recreated in the middle of a run is another topic.

    `waiting` source partitions are parked and not tried in this round.
    """
    flow = memory.flow
    parked: dict[TopicPartition, Parked] = {}
    later: dict[TopicPartition, str] = {}
    pairs = _pairs_to_copy(flow, landscape, memory.known, parked, later)
    facts = await read_facts(memory, source, target, pairs, parked, later)
    now_ms = target.wire.network.time_ms()
    _park(flow, landscape, facts, parked, later)
    ready = [f for f in facts if f.pair.source not in waiting and f.pair.source not in parked]
    to_append = {f.pair.target: f.pair.source for f in ready if f.lag}
    short = await take_nothing(target.wire, landscape.target, to_append)
    later |= {to_append[tp]: why for tp, why in short.items()}
    ready = [f for f in ready if f.pair.target not in short]
    put_off = frozenset(TopicPartition(flow.naming.target_topic(tp.topic), tp.partition) for tp in later)
    return RoundPlan(
        tasks=plan_tasks(
            flow,
            generation,
            ready,
            now_ms=now_ms,
            map_partitions=_map_partitions(flow, landscape),
            put_off=put_off,
        ),
        partitions=tuple(facts),
        parked=parked,
        later=later,
        notes=landscape.topics.notes,
    )


def _park(
    flow: Flow,
    landscape: Landscape,
    facts: Collection[PartitionFacts],
    parked: dict[TopicPartition, Parked],
    later: dict[TopicPartition, str],
) -> None:
    """What no lane needs to look at: records that are gone already, and topics that a fence leaves out. No
    run waits for a partition of those."""
    for lost in facts:
        if (gap := lost_in_front(lost)) is not None:
            parked[gap.source] = gap_parked(flow.name, gap, f"its log begins at {gap.log_start}")
    for source in [*(each.pair.source for each in facts), *later]:
        if (fence := landscape.fence_over(flow.naming.target_topic(source.topic))) is not None:
            parked.setdefault(source, left_out(flow.name, fence, landscape.fences))
            later.pop(source, None)


def _map_partitions(flow: Flow, landscape: Landscape) -> int:
    """:raises Unreachable: the map is there, and no broker can describe it yet."""
    found = landscape.target.get(flow.map_topic)
    if found is not None and not found.leaders:
        raise unknown_partitions(flow.map_topic, error_name(found.error) if found.error else "")
    return len(found.leaders) if found else MAP_PARTITIONS


def _pairs_to_copy(
    flow: Flow,
    landscape: Landscape,
    known: Mapping[str, KnownPair],
    parked: dict[TopicPartition, Parked],
    later: dict[TopicPartition, str],
) -> list[Pair]:
    pairs: list[Pair] = []
    for name, pair in known.items():
        if pair.source_topic in landscape.gone:
            gone = source_is_gone(flow.name, pair.source_topic, name)
            parked.update({TopicPartition(pair.source_topic, p): gone for p in range(pair.partitions)})
    for topic in landscape.topics.mirrored:
        here, there = landscape.source[topic.source], landscape.target.get(topic.target)
        partitions = [TopicPartition(topic.source, p) for p in range(topic.partitions)]
        verdict = _judge_topic(flow, topic, here, there, known.get(topic.target))
        if isinstance(verdict, Parked):
            parked.update(dict.fromkeys(partitions, verdict))
        elif isinstance(verdict, str):
            later.update(dict.fromkeys(partitions, verdict))
        elif topic.target in landscape.elsewhere and topic.target not in known:
            other = landscape.elsewhere[topic.target]
            for tp in partitions:
                there_too = TopicPartition(topic.target, tp.partition)
                parked[tp] = is_of_other_flow(flow.name, other, tp, there_too)
        else:
            pairs.extend(
                Pair(
                    source=tp,
                    target=TopicPartition(topic.target, tp.partition),
                    source_topic_id=here.topic_id,
                    target_topic_id=verdict.topic_id,
                )
                for tp in partitions
            )
    return pairs


def _judge_topic(
    flow: Flow,
    topic: MirroredTopic,
    here: TopicMetadata,
    there: TopicMetadata | None,
    known: KnownPair | None,
) -> TopicMetadata | Parked | str:
    """The target's topic if copying may begin; committed offsets go with a topic, so ids must tell."""
    if there is None or there.error == Code.UNKNOWN_TOPIC_OR_PARTITION:
        if known:
            return topic_is_gone(flow.name, topic.source, topic.target)
        return f"{topic.target} isn't on {flow.target} yet"
    if here.error or there.error:
        side, found = ("source", here) if here.error else ("target", there)
        return f"topic {found.name} of the {side}: {error_name(found.error)}"
    if known and known.source_topic == topic.source:
        if known.target_topic_id != there.topic_id:
            return topic_was_recreated(
                flow.name, topic.target, topic.source, known.target_topic_id, there.topic_id
            )
        if known.source_topic_id != here.topic_id:
            return topic_was_recreated(
                flow.name, topic.source, topic.source, known.source_topic_id, here.topic_id
            )
    return there
