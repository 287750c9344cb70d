"""Which topics a flow mirrors, under which name, and what must happen on the target first.

A plan is a pure function of the flow, both clusters' topics and the target topics that the flow already
knows. Invariants:

- one bad topic never stops the others: it is a `RefusedTopic` with a reason and a remedy;
- a target topic gets more partitions only if the flow knows it, that is, if the *source* grew: a foreign
  topic is never re-partitioned;
- internal topics and topics that came from the target never cross. A pattern that matches them is normal
  (`.*` on a pair of flows) and gives a note; a topic named in full was a wish and is refused;
- the same clusters give the same plan, in the order of names.

Settings cross as with MirrorMaker 2: what differs from the source's defaults, dynamic defaults included,
less `config.properties.exclude`, less what can't be set or read.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from causeway.core.model.flow import Flow
from causeway.core.model.naming import is_export, is_internal
from causeway.core.topics.carried_settings import settings_to_carry
from causeway.core.topics.target_names import abridged, name_topics, without_collisions
from causeway.core.topics.topic_facts import RefusedTopic, TopicFacts

_PLAIN_NAME = re.compile(r"[a-zA-Z0-9._-]+")
_EXPORTS_STAY = "exports of a failback are never mirrored: people look at them where they are"


@dataclass(frozen=True, slots=True)
class MirroredTopic:
    """Partition p of `source` goes to partition p of `target`, for each p below `partitions`."""

    source: str
    target: str
    partitions: int


@dataclass(frozen=True, slots=True)
class NewTopicPlan:
    name: str
    partitions: int
    settings: tuple[tuple[str, str], ...] = ()
    replication_factor: int | None = None
    """None: the target broker's default."""
    left_out: tuple[str, ...] = ()
    """Settings of the source that the target's brokers don't know."""


@dataclass(frozen=True, slots=True)
class Growth:
    """A target topic that follows its source to more partitions."""

    name: str
    from_partitions: int
    to_partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPlan:
    mirrored: tuple[MirroredTopic, ...]
    """All pairs that are right once `to_create` and `to_grow` are done."""
    to_create: tuple[NewTopicPlan, ...]
    to_grow: tuple[Growth, ...]
    refused: tuple[RefusedTopic, ...]
    notes: tuple[str, ...]


def plan_topics(
    flow: Flow,
    source_topics: Collection[TopicFacts],
    target_topics: Collection[TopicFacts],
    known_target_topics: Collection[str],
    *,
    target_brokers: int | None = None,
) -> TopicPlan:
    """Decide for every topic of the source; `known_target_topics` are those that the flow has written to.

    `target_brokers`: how many could hold a replica; None: not asked, and the broker's word will tell.
    """
    matched, refused, notes = _matched(flow, source_topics)
    named, unfit_names = name_topics(flow, matched)
    partitions_on_target = {topic.name: topic.partitions for topic in target_topics}
    if flow.failback_of:
        named, left = _that_are_there(flow, named, partitions_on_target)
        notes += left
    fit, colliding = without_collisions(named, partitions_on_target)
    steps = {
        MirroredTopic(topic.name, target, topic.partitions): _step(
            flow,
            target,
            topic,
            partitions_on_target.get(target),
            is_known=target in known_target_topics,
            target_brokers=target_brokers,
        )
        for target, topic in fit
    }
    refused += [*unfit_names, *colliding, *(no for no in steps.values() if isinstance(no, RefusedTopic))]
    return TopicPlan(
        mirrored=tuple(topic for topic, step in steps.items() if not isinstance(step, RefusedTopic)),
        to_create=tuple(new for new in steps.values() if isinstance(new, NewTopicPlan)),
        to_grow=tuple(growth for growth in steps.values() if isinstance(growth, Growth)),
        refused=tuple(sorted(refused, key=lambda each: each.topic)),
        notes=tuple(notes),
    )


def _step(
    flow: Flow,
    target: str,
    topic: TopicFacts,
    existing: int | None,
    *,
    is_known: bool,
    target_brokers: int | None,
) -> NewTopicPlan | Growth | RefusedTopic | None:
    """What must happen on the target before this topic is copied; None: nothing."""
    if existing is not None and existing < topic.partitions:
        grown = Growth(target, existing, topic.partitions)
        return grown if is_known else _too_few_partitions(flow, topic, target, existing)
    if existing is not None or is_known:
        return None  # one that was written and is gone is never made again
    new = NewTopicPlan(
        name=target,
        partitions=topic.partitions,
        settings=settings_to_carry(topic.settings, flow.config_properties_exclude),
        replication_factor=_replication_factor(flow, topic),
    )
    if target_brokers is not None and (new.replication_factor or 1) > target_brokers:
        return _too_many_replicas(flow, topic, new, target_brokers)
    return new


def without(plan: TopicPlan, topics: Collection[str]) -> TopicPlan:
    """The same plan, with nothing to be done for these source topics."""
    targets = {topic.target for topic in plan.mirrored if topic.source in topics}
    return replace(
        plan,
        mirrored=tuple(topic for topic in plan.mirrored if topic.source not in topics),
        to_create=tuple(new for new in plan.to_create if new.name not in targets),
        to_grow=tuple(growth for growth in plan.to_grow if growth.name not in targets),
    )


def only_of(plan: TopicPlan, topics: Collection[str] | None) -> TopicPlan:
    """The same plan for these source topics and no others; None: for all."""
    if topics is None:
        return plan
    rest = without(plan, {each.source for each in plan.mirrored} - set(topics))
    return replace(rest, refused=tuple(each for each in rest.refused if each.topic in topics))


def also_refused(plan: TopicPlan, refused: Collection[RefusedTopic]) -> TopicPlan:
    """The same plan after some of its topics turned out to be out of reach."""
    names = {each.topic for each in refused}
    rest = [each for each in plan.refused if each.topic not in names]
    together = sorted((*rest, *refused), key=lambda each: each.topic)
    return replace(without(plan, names), refused=tuple(together))


def is_wanted(flow: Flow, topic: str) -> bool:
    """Whether the flow's filter asks for it; whether it may cross is another matter."""
    return flow.topics.matches(topic) or flow.mirrors_heartbeats(topic)


def _matched(
    flow: Flow, source_topics: Collection[TopicFacts]
) -> tuple[list[TopicFacts], list[RefusedTopic], list[str]]:
    matched: list[TopicFacts] = []
    refused: list[RefusedTopic] = []
    skipped: dict[str, list[str]] = defaultdict(list)
    for topic in sorted(source_topics, key=lambda each: each.name):
        if is_export(topic.name) and topic.name in flow.topics.include:
            refused.append(RefusedTopic(topic.name, _EXPORTS_STAY, f"take {topic.name} out of topics"))
        if not is_wanted(flow, topic.name):
            continue
        reason = _never_crosses(flow, topic)
        if not reason:
            matched.append(topic)
        elif topic.name in flow.topics.include:
            refused.append(RefusedTopic(topic.name, reason, f"take {topic.name} out of topics"))
        else:
            skipped[reason].append(topic.name)
    notes = [f"left out, {reason}: {abridged(names)}" for reason, names in sorted(skipped.items())]
    return matched, refused, [*_notes_on_filter(flow, source_topics, matched, refused), *notes]


def _never_crosses(flow: Flow, topic: TopicFacts) -> str:
    if topic.is_internal or is_internal(topic.name):
        return "internal topics are never mirrored"
    if flow.naming.comes_from(topic.name, flow.target):
        return f"a mirror of {flow.target} itself: copying it back would be a cycle"
    if flow.went_round(topic.name):
        return f"heartbeats of {flow.source} that went round: they would go round for ever"
    return ""


def _notes_on_filter(
    flow: Flow,
    source_topics: Collection[TopicFacts],
    matched: Collection[TopicFacts],
    refused: Collection[RefusedTopic],
) -> list[str]:
    """A filter that matches nothing, or a name that isn't there (yet), is worth a word, not an error."""
    names = {topic.name for topic in source_topics}
    absent = [
        pattern
        for pattern in flow.topics.include
        if _PLAIN_NAME.fullmatch(pattern) and not any(re.fullmatch(pattern, name) for name in names)
    ]
    notes = [f"not on {flow.source} (yet): {abridged(absent)}"] if absent else []
    if not matched and not refused:
        wanted = ", ".join(flow.topics.include) or "(empty)"
        notes.insert(0, f"no topic of {flow.source} matches topics = {wanted}: nothing to mirror")
    return notes


def _that_are_there(
    flow: Flow, named: Iterable[tuple[str, TopicFacts]], on_target: Mapping[str, int]
) -> tuple[list[tuple[str, TopicFacts]], list[str]]:
    """A failback begins nowhere by itself, so it makes no topics either."""
    named = list(named)
    absent = [target for target, _ in named if target not in on_target]
    note = f"not on {flow.target}, and a failback makes no topics: {abridged(absent)}"
    return [each for each in named if each[0] in on_target], [note] if absent else []


def _replication_factor(flow: Flow, topic: TopicFacts) -> int | None:
    if flow.replication_factor == "source":
        return topic.replicas or None
    return flow.replication_factor


def _too_many_replicas(flow: Flow, topic: TopicFacts, new: NewTopicPlan, brokers: int) -> RefusedTopic:
    origin = "as on the source" if flow.replication_factor == "source" else "replication.factor"
    return RefusedTopic(
        topic.name,
        f"{new.name} would have a replication factor of {new.replication_factor} ({origin}),"
        f" and {flow.target} has {brokers} broker{'' if brokers == 1 else 's'}",
        f"write replication.factor: {brokers}, or -1 for {flow.target}'s own default",
    )


def _too_few_partitions(flow: Flow, topic: TopicFacts, target: str, existing: int) -> RefusedTopic:
    return RefusedTopic(
        topic.name,
        f"{target} on {flow.target} has {existing} partitions, {topic.name} has {topic.partitions},"
        f" and the flow didn't make it",
        f"delete {target} or give it {topic.partitions} partitions, if nothing else depends on it",
    )


_UNKNOWN_SETTING = re.compile(r"Unknown topic config name: ([a-z0-9.]+)")


def without_unknown_setting(new: NewTopicPlan, refusal: str) -> NewTopicPlan | None:
    """By the word of the target's brokers, which are of another version and name one at a time.

    None: they refused it for something else.
    """
    found = _UNKNOWN_SETTING.search(refusal)
    if found is None or found[1] not in dict(new.settings):
        return None
    kept = tuple((name, value) for name, value in new.settings if name != found[1])
    return replace(new, settings=kept, left_out=(*new.left_out, found[1]))
