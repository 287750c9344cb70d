"""Plan a round: read topics, positions and ends once, decide what each lane has to do.

The number of requests grows with brokers, not with partitions: one for the topics of each cluster,
one for all positions, one to each leader for the ends and one for the starts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from causeway.brokers.log_reader import LATEST, READ_COMMITTED, WireLogReader
from causeway.brokers.target_log import WireTarget
from causeway.brokers.wire import TopicMetadata
from causeway.core.flow import Flow
from causeway.core.flow_state import FlowState, KnownPair
from causeway.core.gaps import gap_parked
from causeway.core.identity import Generation, Pair, SourceOffset, TopicPartition
from causeway.core.kafka_errors import KafkaErrorCode as Code
from causeway.core.kafka_errors import error_name
from causeway.core.lane_rules import refusal_of_rights
from causeway.core.lane_task import Parked, StartAt
from causeway.core.offset_map import MAP_PARTITIONS
from causeway.core.opposite import OtherWay
from causeway.core.ports import EpochEnd, LogEnd, Refused
from causeway.core.position import Position
from causeway.core.round_plan import (
    PartitionFacts,
    RoundPlan,
    is_of_other_flow,
    lost_in_front,
    plan_tasks,
    source_is_gone,
    topic_is_gone,
    topic_was_recreated,
)
from causeway.core.topics import MirroredTopic, RefusedTopic, TopicFacts, TopicPlan, also_refused, plan_topics
from causeway.flows.rights import gone_topics, leave_alone_what_is_denied, missing_topics


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
    other_way: OtherWay | None = None

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
    other_way: OtherWay | None = None,
) -> Landscape:
    source_topics = await source.wire.topics(None)
    target_topics = await target.wire.topics(None)
    missing = await missing_topics(flow, state, source.wire, source_topics)
    source_topics |= {t.name: t for t in missing.values() if t.error == Code.TOPIC_AUTHORIZATION_FAILED}
    plan = plan_topics(flow, _facts(source_topics), _facts(target_topics), frozenset(state.pairs))
    plan = await leave_alone_what_is_denied(plan, (source.wire, source_topics), (target.wire, target_topics))
    return Landscape(
        source=source_topics,
        target=target_topics,
        topics=plan,
        gone=gone_topics(state, missing),
        elsewhere=_of_other_flows(flow, target, target_topics),
        other_way=other_way,
    )


def _of_other_flows(flow: Flow, target: WireTarget, topics: Mapping[str, TopicMetadata]) -> dict[str, str]:
    return {
        name: other
        for other, state in target.other_flows(flow.name).items()
        for name, pair in state.pairs.items()
        if name in topics and topics[name].topic_id == pair.target_topic_id
    }


def _facts(topics: dict[str, TopicMetadata]) -> list[TopicFacts]:
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
        pair = _pair_of(landscape, topic, adopted_at=before.adopted_at if before else -1)
        if before is not None and before.ids != pair.ids:
            continue  # it was recreated: that is for a person to accept
        if before is None or before.partitions < pair.partitions:
            found[topic.target] = pair
    return found


def _pair_of(landscape: Landscape, topic: MirroredTopic, *, adopted_at: int) -> KnownPair:
    return KnownPair(
        source_topic=topic.source,
        source_topic_id=landscape.source[topic.source].topic_id,
        target_topic_id=landscape.target[topic.target].topic_id,
        partitions=topic.partitions,
        adopted_at=adopted_at,
    )


async def plan_round(
    flow: Flow,
    generation: Generation,
    source: WireLogReader,
    target: WireTarget,
    landscape: Landscape,
    known: dict[str, KnownPair],
    waiting: frozenset[TopicPartition] = frozenset(),
) -> RoundPlan:
    """`known` are the pairs that this flow has begun with, by target topic, those of this run included: a
    topic that is made anew in the middle of a run is another topic.

    `waiting` source partitions are parked and not tried in this round.
    """
    parked: dict[TopicPartition, Parked] = {}
    later: dict[TopicPartition, str] = {}
    pairs = _pairs(flow, landscape, known, parked, later)
    facts = await _read_facts(flow, source, target, pairs, known, parked, later)
    if (other_way := landscape.other_way) is not None:
        facts = [replace(each, opposite=other_way.of(flow, each.pair)) for each in facts]
    now_ms = target.wire.network.time_ms()
    for lost in facts:
        if (gap := lost_in_front(lost)) is not None:
            parked[gap.source] = gap_parked(flow.name, gap, f"its log begins at {gap.log_start}")
    ready = [f for f in facts if f.pair.source not in waiting and f.pair.source not in parked]
    return RoundPlan(
        tasks=plan_tasks(
            flow, generation, ready, now_ms=now_ms, map_partitions=_map_partitions(flow, landscape)
        ),
        partitions=tuple(facts),
        parked=parked,
        later=later,
        notes=landscape.topics.notes,
    )


def _map_partitions(flow: Flow, landscape: Landscape) -> int:
    found = landscape.target.get(flow.map_topic)
    return len(found.leaders) if found else MAP_PARTITIONS


def _pairs(
    flow: Flow,
    landscape: Landscape,
    known: dict[str, KnownPair],
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
        return f"{topic.target} isn't there yet"
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


async def _read_facts(
    flow: Flow,
    source: WireLogReader,
    target: WireTarget,
    pairs: list[Pair],
    known: dict[str, KnownPair],
    parked: dict[TopicPartition, Parked],
    later: dict[TopicPartition, str],
) -> list[PartitionFacts]:
    if not pairs:
        return []
    positions = await target.positions(flow.group, [p.target for p in pairs], stable=False)
    partitions = [p.source for p in pairs]
    ends = await source.list_offsets(dict.fromkeys(partitions, LATEST), isolation=READ_COMMITTED)
    log_starts = await source.log_starts(partitions)
    target_ends = await target.log_ends([p.target for p in pairs])
    fresh = [
        p.source
        for p in pairs
        if not isinstance(positions[p.target], Position) and not _has_grown(p, known.get(p.target.topic))
    ]
    starts = await resolve_start(flow, source, fresh, ends)
    turned = await _turned_sources(source, pairs, positions, ends)
    facts: list[PartitionFacts] = []
    for pair in pairs:
        end, log_start = ends[pair.source], log_starts[pair.source]
        if isinstance(end, Refused) or isinstance(log_start, Refused):
            _put_off(flow, pair, end if isinstance(end, Refused) else log_start, parked, later)
            continue
        before, there = known.get(pair.target.topic), target_ends[pair.target]
        facts.append(
            PartitionFacts(
                pair=pair,
                position=positions[pair.target],
                log_start=log_start,
                last_stable=end.offset,
                start=starts.get(pair.source),
                known=before is not None and pair.target.partition < before.partitions,
                adopted_at=before.adopted_at if before else -1,
                target_end=there if isinstance(there, LogEnd) else None,
                source_turned=pair.source in turned,
            )
        )
    return facts


async def _turned_sources(
    source: WireLogReader,
    pairs: list[Pair],
    positions: Mapping[TopicPartition, object],
    ends: Mapping[TopicPartition, LogEnd | Refused],
) -> frozenset[TopicPartition]:
    """Sources that lost what was read of them and grew again to just where they had been: with nothing to
    copy no lane would look, and the run would call a mirror caught up that shows another history."""
    reached: dict[TopicPartition, Position] = {}
    for pair in pairs:
        position, end = positions[pair.target], ends[pair.source]
        if not isinstance(position, Position) or not isinstance(end, LogEnd) or position.source_epoch < 0:
            continue
        if end.leader_epoch != position.source_epoch and end.offset == position.source_next:
            reached[pair.source] = position
    if not reached:
        return frozenset()
    found = await source.epoch_ends({tp: position.source_epoch for tp, position in reached.items()})
    return frozenset(
        tp
        for tp, position in reached.items()
        if isinstance(epoch := found[tp], EpochEnd) and epoch.end < position.source_next
    )


def _put_off(
    flow: Flow,
    pair: Pair,
    refused: object,
    parked: dict[TopicPartition, Parked],
    later: dict[TopicPartition, str],
) -> None:
    """What the source didn't say is a missing right, or passes."""
    denied = refusal_of_rights(pair.source.topic, "source", refused)
    if denied is None:
        later[pair.source] = f"{pair.source} on {flow.source}: {refused}"
    else:
        parked[pair.source] = denied


def _has_grown(pair: Pair, known: KnownPair | None) -> bool:
    """A partition that a mirrored topic got later begins at its beginning, whatever the flow's start rule."""
    return known is not None and pair.target.partition >= known.partitions


async def resolve_start(
    flow: Flow,
    source: WireLogReader,
    fresh: list[TopicPartition],
    ends: dict[TopicPartition, LogEnd | Refused],
) -> dict[TopicPartition, StartAt]:
    """Where `latest` and a timestamp are now; the lane commits it before it copies anything."""
    if flow.start.at == "earliest" or not fresh:
        return {}
    found: dict[TopicPartition, LogEnd | Refused] = {}
    if flow.start.at == "timestamp":
        assert flow.start.timestamp_ms is not None
        found = await source.list_offsets(dict.fromkeys(fresh, flow.start.timestamp_ms))
    starts: dict[TopicPartition, StartAt] = {}
    for tp in fresh:
        at, end = found.get(tp), ends[tp]
        if isinstance(at, LogEnd) and at.offset >= 0:
            starts[tp] = StartAt(offset=SourceOffset(at.offset), epoch=-1)
        elif isinstance(end, LogEnd):
            starts[tp] = StartAt(offset=SourceOffset(end.offset), epoch=end.leader_epoch)
    return starts
