"""Make the target ready for a flow: missing topics created, known ones grown, before the first record.

Load, decide (`core/topics/plan.py`), act, report. A dry run asks the broker to validate what it would do,
which writes nothing and still finds a missing right or a replication factor that can't be.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from causeway.brokers.admin.topics import ClusterAdmin
from causeway.core.kernel.errors import CausewayError
from causeway.core.kernel.plurals import counted
from causeway.core.model.flow import Flow
from causeway.core.topics.carried_settings import TopicSetting
from causeway.core.topics.plan import (
    Growth,
    MirroredTopic,
    NewTopicPlan,
    TopicPlan,
    is_wanted,
    plan_topics,
    without_unknown_setting,
)
from causeway.core.topics.topic_choice import EVERY_TOPIC, TopicChoice
from causeway.core.topics.topic_facts import RefusedTopic


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicOutcome:
    """What was done (of a dry run: would be done), topic by topic."""

    mirrored: tuple[MirroredTopic, ...]
    """Pairs that are ready to be copied; of a dry run, also those that would first be created."""
    created: tuple[NewTopicPlan, ...]
    grown: tuple[Growth, ...]
    refused: tuple[RefusedTopic, ...]
    notes: tuple[str, ...]
    is_dry_run: bool

    def in_words(self) -> list[str]:
        """What a run says of it."""
        lines = [
            f"created {new.name} with {counted(new.partitions, 'partition')}"
            + (f", without what its brokers don't know: {', '.join(new.left_out)}" if new.left_out else "")
            for new in self.created
        ]
        return lines + [f"{each.name} grew to {each.to_partitions} partitions" for each in self.grown]


def prepare_topics(
    flow: Flow,
    source_admin: ClusterAdmin,
    target_admin: ClusterAdmin,
    known_target_topics: frozenset[str],
    choice: TopicChoice = EVERY_TOPIC,
    *,
    dry_run: bool = False,
) -> TopicOutcome:
    """Create and grow what the flow needs on the target; `known_target_topics` are those it has written to.

    :raises ClusterTrouble: a cluster can't be used at all; refusals of single topics are in the outcome.
    """
    plan = choice.of(_load_and_plan(flow, source_admin, target_admin, known_target_topics))
    to_create, errors = _create(target_admin, plan.to_create, dry_run=dry_run)
    plan = replace(plan, to_create=to_create)
    errors |= target_admin.create_partitions(plan.to_grow, validate_only=dry_run)
    outcome = _outcome(plan, errors, dry_run=dry_run)
    if not dry_run:
        changed = {new.name: new.partitions for new in outcome.created}
        changed |= {growth.name: growth.to_partitions for growth in outcome.grown}
        target_admin.wait_for_leaders(changed)
    return outcome


def _create(
    target: ClusterAdmin, wanted: Collection[NewTopicPlan], *, dry_run: bool
) -> tuple[tuple[NewTopicPlan, ...], dict[str, CausewayError]]:
    """What a target of another version doesn't know is left out; `causeway drift` continues to show it."""
    plans = {new.name: new for new in wanted}
    refused: dict[str, CausewayError] = {}
    asking = plans
    while asking:
        errors = target.create_topics(list(asking.values()), validate_only=dry_run)
        fewer = {name: without_unknown_setting(plans[name], error.rule) for name, error in errors.items()}
        asking = {name: new for name, new in fewer.items() if new is not None}
        refused |= {name: error for name, error in errors.items() if name not in asking}
        plans |= asking
    return tuple(plans.values()), refused


def _load_and_plan(
    flow: Flow, source_admin: ClusterAdmin, target_admin: ClusterAdmin, known: frozenset[str]
) -> TopicPlan:
    """Settings are asked for only where they matter: for topics that will be created."""
    source_topics, target_topics = source_admin.topics(), target_admin.topics()
    existing = {topic.name for topic in target_topics}
    new = [
        topic.name
        for topic in source_topics
        if is_wanted(flow, topic.name)
        and not topic.is_internal
        and flow.naming.covers(topic.name)
        and flow.naming.target_topic(topic.name) not in existing
    ]
    settings = source_admin.topic_settings(new)
    undescribed = {name: found for name, found in settings.items() if isinstance(found, CausewayError)}
    described = [
        replace(topic, settings=_described(settings, topic.name))
        for topic in source_topics
        if topic.name not in undescribed
    ]
    brokers = None if flow.replication_factor is None else target_admin.number_of_brokers()
    plan = plan_topics(flow, described, target_topics, known, target_brokers=brokers)
    refused = tuple(refused_topic(name, error) for name, error in sorted(undescribed.items()))
    return replace(plan, refused=plan.refused + refused)


def _described(
    settings: Mapping[str, tuple[TopicSetting, ...] | CausewayError], topic: str
) -> tuple[TopicSetting, ...]:
    found = settings.get(topic, ())
    return () if isinstance(found, CausewayError) else found


def _outcome(plan: TopicPlan, errors: Mapping[str, CausewayError], *, dry_run: bool) -> TopicOutcome:
    refused = [
        refused_topic(pair.source, errors[pair.target]) for pair in plan.mirrored if pair.target in errors
    ]
    return TopicOutcome(
        mirrored=tuple(pair for pair in plan.mirrored if pair.target not in errors),
        created=tuple(new for new in plan.to_create if new.name not in errors),
        grown=tuple(growth for growth in plan.to_grow if growth.name not in errors),
        refused=plan.refused + tuple(refused),
        notes=plan.notes,
        is_dry_run=dry_run,
    )


def refused_topic(source_topic: str, error: CausewayError) -> RefusedTopic:
    remedy = error.remedy or f"cure that, or exclude {source_topic}"
    return RefusedTopic(source_topic, f"{error.what}: {error.rule}", remedy)
