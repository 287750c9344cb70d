"""Which topics a flow mirrors, under which name, and what must happen on the target first.

A plan is a pure function of the flow, both clusters' topics and the target topics that the flow already
knows. Invariants:

- one bad topic never stops the others: it is a `RefusedTopic` with a reason and a way out;
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
from enum import Enum

from causeway.core.flow import Flow
from causeway.core.naming import ADD_A_RULE, NO_RULE, is_export, is_internal, is_legal
from causeway.core.pattern import compiled

MAX_NAME_CHARACTERS = 249
_PLAIN_NAME = re.compile(r"[a-zA-Z0-9._-]+")
_UNKNOWN_SETTING = re.compile(r"Unknown topic config name: ([a-z0-9.]+)")
_NAMES_IN_A_NOTE = 5
_EXPORTS_STAY = "exports of a failback are never mirrored: people look at them where they are"


class SettingSource(Enum):
    """Who set a topic's setting; the words are Kafka's."""

    TOPIC = "topic"
    BROKER_DYNAMIC = "dynamic broker"
    CLUSTER_DYNAMIC = "dynamic default broker"
    BROKER_FILE = "static broker"
    DEFAULT = "default"
    OTHER = "other"


_CROSSING = frozenset({SettingSource.TOPIC, SettingSource.BROKER_DYNAMIC, SettingSource.CLUSTER_DYNAMIC})


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSetting:
    name: str
    value: str | None
    source: SettingSource
    is_read_only: bool = False
    is_sensitive: bool = False


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """A topic as its cluster describes it."""

    name: str
    partitions: int
    settings: tuple[TopicSetting, ...] = ()
    is_internal: bool = False
    replicas: int = 0
    """Of its best replicated partition; 0: not asked."""


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


@dataclass(frozen=True, slots=True)
class RefusedTopic:
    """A source topic that the flow leaves alone, and what a person can do about it."""

    topic: str
    reason: str
    remedy: str


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
    named, unfit_names = _named(flow, matched)
    partitions_on_target = {topic.name: topic.partitions for topic in target_topics}
    if flow.failback_of:
        named, left = _that_are_there(flow, named, partitions_on_target)
        notes += left
    fit, colliding = _without_collisions(named, partitions_on_target)
    mirrored, to_create, to_grow = [], [], []
    refused = [*refused, *unfit_names, *colliding]
    for target, topic in fit:
        existing = partitions_on_target.get(target)
        if existing is None:
            if target not in known_target_topics:  # one that was written and is gone is never made again
                new = _new_topic(flow, target, topic)
                if target_brokers is not None and (new.replication_factor or 1) > target_brokers:
                    refused.append(_too_many_replicas(flow, topic, new, target_brokers))
                    continue
                to_create.append(new)
        elif existing < topic.partitions:
            if target not in known_target_topics:
                refused.append(_too_few_partitions(flow, topic, target, existing))
                continue
            to_grow.append(Growth(target, existing, topic.partitions))
        mirrored.append(MirroredTopic(topic.name, target, topic.partitions))
    return TopicPlan(
        mirrored=tuple(mirrored),
        to_create=tuple(to_create),
        to_grow=tuple(to_grow),
        refused=tuple(sorted(refused, key=lambda each: each.topic)),
        notes=tuple(notes),
    )


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


def settings_to_carry(
    settings: Iterable[TopicSetting], exclude: Iterable[str]
) -> tuple[tuple[str, str], ...]:
    """What a new topic on the target takes over from its source; `exclude` are full regular expressions."""
    patterns = [compiled(pattern) for pattern in exclude]
    return tuple(
        sorted(
            (setting.name, setting.value)
            for setting in settings
            if setting.source in _CROSSING
            and setting.value is not None
            and not setting.is_read_only
            and not setting.is_sensitive
            and not any(pattern.matches(setting.name) for pattern in patterns)
        )
    )


def without_unknown_setting(new: NewTopicPlan, refusal: str) -> NewTopicPlan | None:
    """By the word of the target's brokers, which are of another version and name one at a time.

    None: they refused it for something else.
    """
    found = _UNKNOWN_SETTING.search(refusal)
    if found is None or found[1] not in dict(new.settings):
        return None
    kept = tuple((name, value) for name, value in new.settings if name != found[1])
    return replace(new, settings=kept, left_out=(*new.left_out, found[1]))


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
    notes = [f"left out, {reason}: {_some(names)}" for reason, names in sorted(skipped.items())]
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
    notes = [f"not on {flow.source} (yet): {_some(absent)}"] if absent else []
    if not matched and not refused:
        wanted = ", ".join(flow.topics.include) or "(empty)"
        notes.insert(0, f"no topic of {flow.source} matches topics = {wanted}: nothing to mirror")
    return notes


def _named(
    flow: Flow, matched: Iterable[TopicFacts]
) -> tuple[list[tuple[str, TopicFacts]], list[RefusedTopic]]:
    """Each topic with its target name, less those whose name is illegal or wanted by another topic too."""
    by_target: dict[str, list[TopicFacts]] = defaultdict(list)
    named: list[tuple[str, TopicFacts]] = []
    refused: list[RefusedTopic] = []
    for topic in matched:
        if flow.naming.covers(topic.name):
            by_target[flow.naming.target_topic(topic.name)].append(topic)
        else:
            refused.append(RefusedTopic(topic.name, NO_RULE, ADD_A_RULE))
    for target, topics in sorted(by_target.items()):
        if not is_legal(target) or is_internal(target) or is_export(target):
            refused += [_illegal_name(topic.name, target) for topic in topics]
        elif len(topics) > 1:
            rivals = _some([topic.name for topic in topics])
            remedy = "exclude all but one of them, or change the replication policy"
            refused += [
                RefusedTopic(topic.name, f"{rivals} would all be called {target}", remedy) for topic in topics
            ]
        else:
            named.append((target, topics[0]))
    return named, refused


def _illegal_name(topic: str, target: str) -> RefusedTopic:
    if is_export(target):
        rule = "only a failback gives a topic such a name, for records that never crossed"
    elif is_legal(target):
        rule = "names of internal topics are Kafka's, MirrorMaker 2's and Causeway's own"
    elif len(target) > MAX_NAME_CHARACTERS:
        rule = f"{len(target)} characters; at most {MAX_NAME_CHARACTERS} are allowed"
    else:
        rule = "only letters, digits, '.', '_' and '-' are allowed"
    return RefusedTopic(
        topic, f"its name on the target, {target}, is illegal: {rule}", "exclude it, or change the naming"
    )


def _without_collisions(
    named: Iterable[tuple[str, TopicFacts]], on_target: Mapping[str, int]
) -> tuple[list[tuple[str, TopicFacts]], list[RefusedTopic]]:
    """Brokers refuse a new topic whose name differs from another's only by '.' and '_' (metric names).

    What exists stays; of several new ones the first by name wins, so that the next plan says the same.
    """
    taken = {_metric_name(name): name for name in on_target}
    fit: list[tuple[str, TopicFacts]] = []
    refused: list[RefusedTopic] = []
    for target, topic in named:
        rival = taken.setdefault(_metric_name(target), target)
        if rival == target or target in on_target:
            fit.append((target, topic))
            continue
        refused.append(
            RefusedTopic(
                topic.name,
                f"its name on the target, {target}, differs from {rival} only by '.' and '_'",
                "exclude it, or change the naming",
            )
        )
    return fit, refused


def _that_are_there(
    flow: Flow, named: Iterable[tuple[str, TopicFacts]], on_target: Mapping[str, int]
) -> tuple[list[tuple[str, TopicFacts]], list[str]]:
    """A failback begins nowhere by itself, so it makes no topics either."""
    named = list(named)
    absent = [target for target, _ in named if target not in on_target]
    note = f"not on {flow.target}, and a failback makes no topics: {_some(absent)}"
    return [each for each in named if each[0] in on_target], [note] if absent else []


def _metric_name(topic: str) -> str:
    return topic.replace(".", "_")


def _new_topic(flow: Flow, target: str, topic: TopicFacts) -> NewTopicPlan:
    return NewTopicPlan(
        name=target,
        partitions=topic.partitions,
        settings=settings_to_carry(topic.settings, flow.config_properties_exclude),
        replication_factor=_replication_factor(flow, topic),
    )


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


def _some(names: Collection[str]) -> str:
    listed = ", ".join(sorted(names)[:_NAMES_IN_A_NOTE])
    return listed if len(names) <= _NAMES_IN_A_NOTE else f"{listed} and {len(names) - _NAMES_IN_A_NOTE} more"
