"""What a run asks of the clusters' admin clients: topics, their settings, their limits.

Each question blocks its thread. So a run asks between two of its steps (`Administer`), never inside of one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from causeway.brokers.admin.raise_limit import raise_topic_limit
from causeway.brokers.admin.topics import ClusterAdmin
from causeway.core.copy.target_limits import LimitRaise
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import CausewayError
from causeway.core.model.flow import Flow
from causeway.core.topics.carried_settings import TopicSetting
from causeway.core.topics.topic_choice import TopicChoice
from causeway.usecases.copy.prepare_topics import TopicOutcome, prepare_topics
from causeway.usecases.run_lock.internal_topics import create_internal_topics

SettingsOrError = tuple[TopicSetting, ...] | CausewayError


class Administration(Protocol):
    def create_internal_topics(self, existing: frozenset[str]) -> None:
        """:raises CausewayError: one can't be made; then none is."""
        ...

    def prepare_topics(self, known: frozenset[str], choice: TopicChoice) -> TopicOutcome:
        """Create and grow the target's topics, as `prepare_topics` has it.

        :raises ClusterTrouble: a cluster can't be used at all.
        """
        ...

    def topic_settings(self, topics: Collection[str]) -> Mapping[str, SettingsOrError]:
        """Of the target. :raises CausewayError: they may not be seen, or not now."""
        ...

    def raise_limit(self, topic: str, limit: LimitRaise) -> None:
        """Of a topic of the target. :raises CausewayError: why it can't be done."""
        ...


class AdminClients:
    """`Administration` by the admin clients of both clusters."""

    def __init__(self, flow: Flow, source: ClusterEndpoint, target: ClusterEndpoint) -> None:
        """:raises ConfigError: a client setting that librdkafka doesn't take."""
        self._flow, self._source, self._target = flow, ClusterAdmin(source), ClusterAdmin(target)

    def create_internal_topics(self, existing: frozenset[str]) -> None:
        create_internal_topics(self._flow, self._target, existing)

    def prepare_topics(self, known: frozenset[str], choice: TopicChoice) -> TopicOutcome:
        return prepare_topics(self._flow, self._source, self._target, known, choice)

    def topic_settings(self, topics: Collection[str]) -> Mapping[str, SettingsOrError]:
        return self._target.topic_settings(topics)

    def raise_limit(self, topic: str, limit: LimitRaise) -> None:
        raise_topic_limit(self._target.endpoint, topic, limit.setting, limit.at_least)
