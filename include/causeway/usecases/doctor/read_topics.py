"""What doctor asks both clusters about a flow's topics and rights. Only asks: the creation is a dry run."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, replace

from causeway.brokers.admin.topics import ClusterAdmin
from causeway.brokers.transport.topic_metadata import TopicMetadata
from causeway.brokers.wire.describe import describe_topics, group_operations
from causeway.core.doctor.brokers import KAFKAS_OWN
from causeway.core.doctor.excess_rights import Granted
from causeway.core.doctor.permissions import RightsFacts
from causeway.core.doctor.topics import TopicPair, defaults_of
from causeway.core.kernel.cluster_facts import ClusterView, TopicView
from causeway.core.kernel.errors import CausewayError, NotAuthorized
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.model.flow import Flow, group_of, map_topic_of
from causeway.core.model.naming import FLOWS_TOPIC, HEARTBEATS_TOPIC, is_internal
from causeway.core.state.flow_state import FlowState
from causeway.core.topics.carried_settings import settings_to_carry
from causeway.core.topics.plan import NewTopicPlan, TopicPlan, plan_topics
from causeway.core.topics.topic_facts import TopicFacts
from causeway.usecases.copy.permissions import missing_topics
from causeway.usecases.run_lock.internal_topics import internal_topics
from causeway.usecases.session.both_clusters import Clusters

_DENIED = Code.TOPIC_AUTHORIZATION_FAILED


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsSeen:
    """Both clusters' topics at one moment, as far as they are the flow's business."""

    source: Mapping[str, TopicMetadata]
    """Those that the flow would mirror, also those that this user may not see."""
    target: Mapping[str, TopicMetadata]
    """All that are there, and by name those that the flow would make."""
    plan: TopicPlan
    """By names and partition counts alone."""

    @property
    def mirrors(self) -> dict[str, str]:
        return {topic.source: topic.target for topic in self.plan.mirrored}

    @property
    def existing(self) -> list[str]:
        return [name for name, topic in self.target.items() if topic.leaders]


async def state_of(flow: Flow, clusters: Clusters) -> FlowState | None:
    """None: may not be read."""
    try:
        return await clusters.flow_state(flow)
    except NotAuthorized:
        return None


async def see_topics(flow: Flow, clusters: Clusters, state: FlowState) -> TopicsSeen:
    source_wire, target_wire = clusters.source.wire, clusters.target.wire
    listed = await source_wire.topics(None)
    hidden = await missing_topics(flow, state, source_wire, listed)
    listed |= {name: topic for name, topic in hidden.items() if topic.error == _DENIED}
    on_target = await target_wire.topics(None)
    plan = plan_topics(flow, _facts(listed), _facts(on_target), frozenset(state.pairs))
    mirrored = [topic.source for topic in plan.mirrored]
    wanted = [topic.target for topic in plan.mirrored] + [FLOWS_TOPIC, flow.map_topic]
    by_name = await target_wire.topics(wanted)
    return TopicsSeen(
        source=await source_wire.topics(mirrored) if mirrored else {},
        target={**on_target, **by_name},
        plan=plan,
    )


def _facts(topics: Mapping[str, TopicMetadata]) -> list[TopicFacts]:
    return [
        TopicFacts(topic.name, len(topic.leaders), (), topic.is_internal or is_internal(topic.name))
        for topic in topics.values()
        if topic.leaders or topic.error == _DENIED
    ]


async def read_rights(
    flow: Flow, clusters: Clusters, seen: TopicsSeen, creation: Mapping[str, CausewayError]
) -> RightsFacts:
    target = clusters.target
    heartbeats = await _heartbeats(flow, clusters)
    return RightsFacts(
        source=granted({**seen.source, **heartbeats, **await _of_other_way(flow, clusters)}),
        may_see_other_way=await _may_see_other_way(flow, clusters),
        target=granted(seen.target),
        existing=seen.existing,
        not_creatable=[name for name, error in creation.items() if isinstance(error, NotAuthorized)],
        may_commit=await _is_granted(target.check_group_right(flow.group)),
        may_claim=await _is_granted(target.check_claim_right(flow.transactional_id(0)))
        and await _is_granted(target.check_claim_right(flow.transactional_id(flow.lanes - 1))),
        has_heartbeats=any(topic.leaders for topic in heartbeats.values()),
    )


async def _heartbeats(flow: Flow, clusters: Clusters) -> dict[str, TopicMetadata]:
    """The topic that the flow would write on its source, there or not; nothing if it doesn't."""
    return await clusters.source.wire.topics([HEARTBEATS_TOPIC]) if flow.upkeep.emit_heartbeats else {}


async def _of_other_way(flow: Flow, clusters: Clusters) -> dict[str, TopicMetadata]:
    """What the flow in the other direction keeps on this one's source, there or not."""
    wanted = [FLOWS_TOPIC, map_topic_of(flow.target)]
    return await clusters.source.wire.topics(wanted) if flow.opposite else {}


async def _may_see_other_way(flow: Flow, clusters: Clusters) -> bool:
    if not flow.opposite:
        return True
    return await group_operations(clusters.source.wire, group_of(flow.opposite)) != frozenset()


def granted(topics: Mapping[str, TopicMetadata]) -> Granted:
    return {
        name: frozenset() if topic.error == _DENIED else topic.operations for name, topic in topics.items()
    }


async def _is_granted(question: Awaitable[None]) -> bool:
    try:
        await question
    except NotAuthorized:
        return False
    return True


def creation_trouble(flow: Flow, seen: TopicsSeen, admin: ClusterAdmin) -> dict[str, CausewayError]:
    """What would come of making each topic of the flow, by the broker's own word; nothing is made.

    Brokers look at rights first, so that this tells them also of topics that are there already.
    """
    wanted = [
        *(NewTopicPlan(t.target, t.partitions, (), flow.own_replication_factor) for t in seen.plan.mirrored),
        *internal_topics(flow),
    ]
    as_they_are = [
        replace(new, partitions=len(seen.target[new.name].leaders) or new.partitions) for new in wanted
    ]
    return admin.create_topics(as_they_are, validate_only=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsSeen:
    pairs: tuple[TopicPair, ...]
    """Those of which both sides' settings are known."""
    unseen_sources: tuple[str, ...]
    unseen_mirrors: tuple[str, ...]
    """By source topic: those whose mirror is there, but may not be described."""
    to_make: Mapping[str, int]
    """Source topics whose mirror isn't there yet, with their replicas."""
    own: Mapping[str, TopicView]
    kafkas_own: Mapping[str, TopicView]


async def read_settings(
    flow: Flow,
    clusters: Clusters,
    view: ClusterView,
    seen: TopicsSeen,
    carried: Mapping[str, Mapping[str, str]],
) -> SettingsSeen:
    """`carried`: by source topic, the settings that a mirror still to be made would get from it."""
    source = await describe_topics(clusters.source.wire, list(seen.mirrors))
    existing = set(seen.existing)
    mirrors = [target for target in seen.mirrors.values() if target in existing]
    asked = [*mirrors, FLOWS_TOPIC, flow.map_topic, *KAFKAS_OWN]
    target = await describe_topics(clusters.target.wire, asked)
    defaults = defaults_of(view.settings[0]) if view.settings else None
    pairs: list[TopicPair] = []
    unseen_sources: list[str] = []
    unseen_mirrors: list[str] = []
    for name, mirror in seen.mirrors.items():
        here, there = source.get(name), target.get(mirror)
        if here is None or here.settings is None:
            unseen_sources.append(name)
        elif there is not None and there.settings is None:
            unseen_mirrors.append(name)
        elif there is not None and there.settings is not None:
            pairs.append(_pair(name, mirror, here.settings, there.settings, there.fewest_replicas))
        elif defaults is not None:
            replicas = here.most_replicas if flow.replication_factor == "source" else None
            pairs.append(_pair(name, mirror, here.settings, {**defaults, **carried.get(name, {})}, replicas))
    return SettingsSeen(
        pairs=tuple(pairs),
        unseen_sources=tuple(unseen_sources),
        unseen_mirrors=tuple(unseen_mirrors),
        to_make={
            name: source[name].most_replicas
            for name, mirror in seen.mirrors.items()
            if name in source and mirror not in existing
        },
        own={name: topic for name, topic in target.items() if name in (FLOWS_TOPIC, flow.map_topic)},
        kafkas_own={name: topic for name, topic in target.items() if name in KAFKAS_OWN},
    )


def _pair(
    source: str, target: str, here: Mapping[str, str], there: Mapping[str, str], replicas: int | None
) -> TopicPair:
    return TopicPair(
        source=source, target=target, source_settings=here, target_settings=there, target_replicas=replicas
    )


def carried_settings(flow: Flow, seen: TopicsSeen, admin: ClusterAdmin) -> dict[str, dict[str, str]]:
    """Of topics whose mirror isn't there yet, by the rule that the run uses."""
    existing = set(seen.existing)
    new = [source for source, target in seen.mirrors.items() if target not in existing]
    return {
        topic: dict(settings_to_carry(found, flow.config_properties_exclude))
        for topic, found in admin.topic_settings(new).items()
        if not isinstance(found, CausewayError)
    }
