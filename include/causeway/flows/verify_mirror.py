"""Verify a flow: which partitions to compare, from which record on, and how far both must agree.

The flow's own word says what to compare (its positions) and where it began (the first run of the map, or
where a person set it since); the comparison itself reads nothing but the two logs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from causeway.brokers.admin import ClusterAdmin
from causeway.core.beginnings import last_beginning
from causeway.core.comparison import VerifyReport
from causeway.core.endpoint import ClusterEndpoint
from causeway.core.errors import CausewayError, ClusterUnreachable, NotAuthorized
from causeway.core.flow import Flow
from causeway.core.flow_state import FlowState
from causeway.core.identity import Pair, SourceOffset, TopicPartition
from causeway.core.offset_map import Run
from causeway.core.ports import Doubt, Unreachable
from causeway.core.position import Position
from causeway.core.round_plan import PartitionFacts
from causeway.flows.clusters import Clusters, open_clusters, refuse_one_cluster
from causeway.flows.planning import plan_round, survey_topics
from causeway.flows.quarantine import read_quarantine, without_quarantined
from causeway.flows.verify import PartitionPair, VerifyProgress, verify_flow


def verify_mirror(
    flow: Flow,
    source: ClusterEndpoint,
    target: ClusterEndpoint,
    *,
    on_progress: Callable[[VerifyProgress], None],
) -> VerifyReport:
    """Everything that the flow says it has mirrored, compared."""
    with open_clusters(source, target) as clusters:
        refuse_one_cluster(flow, clusters)
        try:
            work = clusters.network.run(lambda: _to_compare(flow, clusters))
            pairs = work.pairs
            if work.has_quarantine:
                pairs = without_quarantined(pairs, read_quarantine(target, flow.quarantine_topic))
            compacted = compacted_topics(source, {pair.source.topic for pair in pairs})
            compacted_there = compacted_topics(target, {pair.target.topic for pair in pairs})
            pairs = [
                replace(
                    pair,
                    is_compacted=pair.source.topic in compacted or pair.target.topic in compacted_there,
                )
                for pair in pairs
            ]
        except (Unreachable, Doubt) as trouble:
            raise ClusterUnreachable(f"flow {flow.name}", rule=str(trouble), remedy="try again") from trouble
    report = verify_flow(source, target, pairs, ends=work.ends, on_progress=on_progress)
    return replace(report, parked=work.parked, not_begun=work.not_begun, notes=work.notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    pairs: list[PartitionPair]
    ends: dict[TopicPartition, SourceOffset]
    parked: dict[TopicPartition, str]
    not_begun: int
    notes: tuple[str, ...]
    has_quarantine: bool


async def _to_compare(flow: Flow, clusters: Clusters) -> _Work:
    state = await clusters.flow_state(flow)
    landscape = await survey_topics(flow, clusters.source, clusters.target, state)
    plan = await plan_round(flow, state.generation, clusters.source, clusters.target, landscape, state.pairs)
    begun = [facts for facts in plan.partitions if isinstance(facts.position, Position)]
    firsts = await _first_offsets(flow, clusters, begun)
    found = {facts.pair.source for facts in begun}
    expected = {
        TopicPartition(topic.source, partition)
        for topic in landscape.topics.mirrored
        for partition in range(topic.partitions)
    }
    parked = {tp: str(why) for tp, why in plan.parked.items() if tp not in found}
    return _Work(
        pairs=[_to_compare_of(facts, firsts, state) for facts in begun],
        ends={f.pair.source: f.position.source_next for f in begun if isinstance(f.position, Position)},
        parked=parked,
        not_begun=len(expected - found - parked.keys()),
        notes=plan.notes,
        has_quarantine=flow.quarantine_topic in landscape.target,
    )


def _to_compare_of(
    facts: PartitionFacts, firsts: Mapping[TopicPartition, SourceOffset], state: FlowState
) -> PartitionPair:
    """From where this flow began with these two topics, or from where somebody set it since."""
    pair = PartitionPair(
        source=facts.pair.source,
        target=facts.pair.target,
        source_topic_id=facts.pair.source_topic_id,
        first_source_offset=firsts.get(facts.pair.target),
    )
    told = last_beginning(state.set_by_hand.values(), facts.pair)
    if told is None:
        return pair
    entry, place = told
    return replace(
        pair,
        first_source_offset=place.source_next,
        first_target_offset=place.target_next,
        set_by_hand=entry,
    )


async def _first_offsets(
    flow: Flow, clusters: Clusters, begun: list[PartitionFacts]
) -> dict[TopicPartition, SourceOffset]:
    """Of the first run of each pair, as its topics are now."""
    if flow.start.at == "earliest" or not begun:
        return {}
    runs = await clusters.target.map_runs(flow.map_topic, [f.pair.target for f in begun])
    ours = {f.pair.target: [run for run in runs[f.pair.target] if _is_of(run, f.pair)] for f in begun}
    return {tp: _first(found) for tp, found in ours.items() if found}


def _is_of(run: Run, pair: Pair) -> bool:
    return (run.source_topic_id, run.target_topic_id) == (pair.source_topic_id, pair.target_topic_id)


def _first(runs: list[Run]) -> SourceOffset:
    return min(run.source_first for run in runs)


def compacted_topics(endpoint: ClusterEndpoint, topics: set[str]) -> set[str]:
    """The topics whose cleaner may take records out of the middle.

    Where settings may not be described a topic counts as not compacted: then at worst differences are shown
    that are the cleaner's, never the other way round.
    """
    found: set[str] = set()
    for topic, settings in ClusterAdmin(endpoint).topic_settings(topics).items():
        if isinstance(settings, NotAuthorized):
            continue
        if isinstance(settings, CausewayError):
            raise settings
        if any(s.name == "cleanup.policy" and "compact" in (s.value or "") for s in settings):
            found.add(topic)
    return found
