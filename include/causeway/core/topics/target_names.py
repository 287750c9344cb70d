"""Which name each topic gets on the target, and which topics get none."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from causeway.core.model.flow import Flow
from causeway.core.model.naming import ADD_A_RULE, NO_RULE, is_export, is_internal, is_legal
from causeway.core.topics.topic_facts import RefusedTopic, TopicFacts

MAX_NAME_CHARACTERS = 249
_NAMES_IN_A_NOTE = 5


def name_topics(
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
            rivals = abridged([topic.name for topic in topics])
            remedy = "exclude all but one of them, or change the replication policy"
            refused += [
                RefusedTopic(topic.name, f"{rivals} would all be called {target}", remedy) for topic in topics
            ]
        else:
            named.append((target, topics[0]))
    return named, refused


def _illegal_name(topic: str, target: str) -> RefusedTopic:
    if is_export(target):
        rule = "only a failback gives a topic such a name, for records that were never mirrored"
    elif is_legal(target):
        rule = "names of internal topics are Kafka's, MirrorMaker 2's and Causeway's own"
    elif len(target) > MAX_NAME_CHARACTERS:
        rule = f"{len(target)} characters; at most {MAX_NAME_CHARACTERS} are allowed"
    else:
        rule = "only letters, digits, '.', '_' and '-' are allowed"
    return RefusedTopic(
        topic, f"its name on the target, {target}, is illegal: {rule}", "exclude it, or change the naming"
    )


def without_collisions(
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


def _metric_name(topic: str) -> str:
    return topic.replace(".", "_")


def abridged(names: Collection[str]) -> str:
    """As a sentence has them: the first few by name, and how many more."""
    listed = ", ".join(sorted(names)[:_NAMES_IN_A_NOTE])
    return listed if len(names) <= _NAMES_IN_A_NOTE else f"{listed} and {len(names) - _NAMES_IN_A_NOTE} more"
