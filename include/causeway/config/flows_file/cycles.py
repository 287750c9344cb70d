"""Flows that form a cycle: refused unless it is sure that no record goes round forever.

Two things make it sure. *Prefixes* with one separator all the way round: each flow sees by the name that a
topic came from its target, through any number of clusters. Or a flow that lists *plain names*: each of them
is carried, with the names that it gets on its way, wherever the flows lead; if none arrives at that flow
again, nothing passes it twice, and every circle through it is open.

Identity naming and mapping rules keep no trace of where a record came from. So a circle that neither closes
is taken for endless: growing forever is worse than a file that isn't accepted.

A flow and its failback (`failback_of`) are no circle: never more than one of the two is open, and neither
reads what the other one wrote (`core/state/reverse_flow.py`).
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from causeway.config.flows_file.document import Document
from causeway.config.flows_file.failback import failback_of, topics_of
from causeway.config.flows_file.model import FlowModel
from causeway.config.flows_file.naming import naming_of
from causeway.core.kernel.errors import ConfigError
from causeway.core.model.naming import NamingPolicy, PrefixNaming, is_legal
from causeway.core.model.topic_filter import TopicFilter

_PLAIN = re.compile(r"(?:[A-Za-z0-9_-]|\\\.)+", re.ASCII)
_MOST_NAMES = 10_000


@dataclass(frozen=True, slots=True)
class _Step:
    """A flow as it passes names on."""

    name: str
    source: str
    target: str
    topics: TopicFilter
    naming: NamingPolicy
    opposite: str
    """Its failback, or the flow whose failback it is; empty: neither."""

    def passes(self, topic: str) -> str | None:
        """The name on the target; None: it doesn't cross."""
        if not self.topics.matches(topic) or self.naming.comes_from(topic, self.target):
            return None
        if not self.naming.covers(topic):
            return None
        name = self.naming.target_topic(topic)
        return name if is_legal(name) else None

    @property
    def plain_names(self) -> list[str] | None:
        """What it lists, if that is names and no patterns."""
        if not all(_PLAIN.fullmatch(text) for text in self.topics.include):
            return None
        return [text.replace("\\.", ".") for text in self.topics.include]


def check_cycles(flows: Mapping[str, FlowModel], document: Document) -> None:
    """:raises ConfigError: a circle that might never end."""
    steps = [
        _Step(
            name,
            flow.source,
            flow.target,
            topics_of(name, flows),
            naming_of(flow),
            flow.failback_of or failback_of(name, flows),
        )
        for name, flow in flows.items()
    ]
    unproved = [step for step in steps if not _is_passed_once(step, steps)]
    for step in unproved:
        way = _way_round(step, unproved)
        if way:
            raise ConfigError(
                document.place(("flows", step.name, "replication.policy")),
                value=flows[step.name].policy,
                rule=f"{' -> '.join((*way, step.name))} is a cycle: records would go round forever",
                remedy="use prefix with one separator in all of them, or list in one only names that don't "
                "come back to it",
            )


def _is_passed_once(chosen: _Step, steps: Iterable[_Step]) -> bool:
    """Whether it lists plain names, none of which comes back to it, under whatever name."""
    waiting = deque(
        (chosen.target, passed) for name in chosen.plain_names or () if (passed := chosen.passes(name))
    )
    if chosen.plain_names is None:
        return False
    met, steps = set(waiting), _without_opposite(chosen, steps)
    while waiting and len(met) < _MOST_NAMES:
        cluster, topic = waiting.popleft()
        for step in (each for each in steps if each.source == cluster):
            name = step.passes(topic)
            if name is None:
                continue
            if step is chosen:
                return False
            if (step.target, name) not in met:
                met.add((step.target, name))
                waiting.append((step.target, name))
    return not waiting


def _way_round(step: _Step, steps: list[_Step]) -> list[str]:
    """The flows of a circle through this one in which not all prefixes tell where a topic came from."""
    steps = _without_opposite(step, steps)
    back = _way(step.target, step.source, steps)
    if back is None:
        return []
    if not isinstance(step.naming, PrefixNaming):
        return [step.name, *back]
    for other in (each for each in steps if not _tell_alike(step, each)):
        open_steps = _without_opposite(other, steps)
        there, back = _way(step.target, other.source, open_steps), _way(other.target, step.source, open_steps)
        if there is not None and back is not None:
            return [step.name, *there, other.name, *back]
    return []


def _without_opposite(step: _Step, steps: Iterable[_Step]) -> list[_Step]:
    """Those that may be open while it is."""
    return [each for each in steps if each.name != step.opposite]


def _tell_alike(one: _Step, other: _Step) -> bool:
    namings = (one.naming, other.naming)
    separators = {each.separator for each in namings if isinstance(each, PrefixNaming)}
    return all(isinstance(each, PrefixNaming) for each in namings) and len(separators) == 1


def _way(begin: str, end: str, steps: list[_Step]) -> list[str] | None:
    """The names of the fewest flows that lead from one cluster to another; None: none do."""
    ways: dict[str, list[str]] = {begin: []}
    waiting = deque([begin])
    while waiting and end not in ways:
        cluster = waiting.popleft()
        for step in steps:
            if step.source == cluster and step.target not in ways:
                ways[step.target] = [*ways[cluster], step.name]
                waiting.append(step.target)
    return ways.get(end)
