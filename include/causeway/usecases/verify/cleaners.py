"""On which side of a pair the log cleaner may take records out of the middle."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from causeway.brokers.admin.topics import ClusterAdmin
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import CausewayError, NotAuthorized, UnknownName
from causeway.usecases.verify.partition_pair import PartitionPair


@dataclass(frozen=True, slots=True)
class CleanedPairs:
    pairs: list[PartitionPair]
    notes: tuple[str, ...]
    """Of topics whose settings may not be described, where it matters."""


@dataclass(frozen=True, slots=True)
class _Topics:
    compacted: frozenset[str]
    hidden: dict[str, NotAuthorized]


def with_cleaners(
    source: ClusterEndpoint, target: ClusterEndpoint, pairs: Sequence[PartitionPair]
) -> CleanedPairs:
    """The same pairs, each with what its topics' settings say of it.

    Where settings may not be described a topic counts as not compacted: then at worst differences are shown
    that are the cleaner's, never the other way round.
    """
    here = _read_topics(source, {pair.source.topic for pair in pairs})
    there = _read_topics(target, {pair.target.topic for pair in pairs})
    told = [
        replace(
            pair,
            source_is_compacted=pair.source.topic in here.compacted,
            target_is_compacted=pair.target.topic in there.compacted,
        )
        for pair in pairs
    ]
    doubtful = {p.source.topic for p in told if p.target_is_compacted} & here.hidden.keys()
    doubtful_there = {p.target.topic for p in told if p.source_is_compacted} & there.hidden.keys()
    return CleanedPairs(told, (*_notes(source, here, doubtful), *_notes(target, there, doubtful_there)))


def _notes(endpoint: ClusterEndpoint, topics: _Topics, doubtful: Collection[str]) -> list[str]:
    return [
        f"{topic} on {endpoint} counts as not compacted, though its counterpart is: what its cleaner took "
        f"looks like a difference; {topics.hidden[topic]}"
        for topic in sorted(doubtful)
    ]


def _read_topics(endpoint: ClusterEndpoint, topics: set[str]) -> _Topics:
    compacted, hidden = set[str](), dict[str, NotAuthorized]()
    for topic, settings in ClusterAdmin(endpoint).topic_settings(topics).items():
        if isinstance(settings, NotAuthorized):
            hidden[topic] = settings
        elif isinstance(settings, UnknownName):
            continue  # whoever compares the logs says so
        elif isinstance(settings, CausewayError):
            raise settings
        elif any(s.name == "cleanup.policy" and "compact" in (s.value or "") for s in settings):
            compacted.add(topic)
    return _Topics(frozenset(compacted), hidden)
