"""The admin side of one cluster: who it is, its topics and their settings, new topics, more partitions.

Plain values go in and come out; client errors leave as ours. A refusal that concerns one topic is a value
(`create_topics` and `create_partitions` answer with a table of refusals), so that one bad topic doesn't stop
the others; only trouble with the cluster itself is raised. Nothing here deletes anything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    ResourceType,
    TopicMetadata,
)

from causeway.brokers.admin.leaders import partitions_of, still_silent
from causeway.brokers.admin.probe import SILENT, ClusterFacts, probe
from causeway.brokers.error_map import mapped, mapped_error
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import CausewayError, ClusterUnreachable, UnfitTarget
from causeway.core.kernel.kafka_errors import KafkaErrorCode
from causeway.core.kernel.plurals import counted
from causeway.core.model.naming import is_internal
from causeway.core.topics.carried_settings import SettingSource, TopicSetting
from causeway.core.topics.plan import Growth, NewTopicPlan
from causeway.core.topics.topic_facts import TopicFacts

__all__ = ["ClusterAdmin", "ClusterFacts", "probe"]

REQUEST_SECONDS = 30.0
_BROKER_DEFAULT = -1
_SOURCES = {
    ConfigSource.DYNAMIC_TOPIC_CONFIG.value: SettingSource.TOPIC,
    ConfigSource.DYNAMIC_BROKER_CONFIG.value: SettingSource.BROKER_DYNAMIC,
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG.value: SettingSource.CLUSTER_DYNAMIC,
    ConfigSource.STATIC_BROKER_CONFIG.value: SettingSource.BROKER_FILE,
    ConfigSource.DEFAULT_CONFIG.value: SettingSource.DEFAULT,
}


class ClusterAdmin:
    """One cluster's admin client; it is cheap to keep and needs no closing."""

    def __init__(self, endpoint: ClusterEndpoint) -> None:
        """:raises ConfigError: a client setting that librdkafka doesn't take."""
        self.endpoint = endpoint
        with mapped(cluster=endpoint):
            self._client = AdminClient(dict(endpoint.settings), logger=SILENT)

    def facts(self) -> ClusterFacts:
        """Who the cluster is, or the true reason why it can't be used; at most ten seconds."""
        return probe(self.endpoint)

    def cluster_id(self) -> str:
        with mapped(cluster=self.endpoint):
            described = self._client.describe_cluster(request_timeout=REQUEST_SECONDS).result()
        return str(described.cluster_id)

    def number_of_brokers(self) -> int:
        """Those that are up: as many replicas as a new topic can have."""
        with mapped(cluster=self.endpoint, operation="Describe"):
            return len(self._client.list_topics(timeout=REQUEST_SECONDS).brokers)

    def topics(self) -> tuple[TopicFacts, ...]:
        """All topics that this user may see, internal ones too, by name; without their settings."""
        return tuple(
            TopicFacts(
                name, len(topic.partitions), is_internal=is_internal(name), replicas=_most_replicas(topic)
            )
            for name, topic in sorted(self._metadata().items())
            if topic.error is None or topic.partitions
        )

    def topic_settings(
        self, topics: Collection[str], *, with_defaults: bool = False
    ) -> dict[str, tuple[TopicSetting, ...] | CausewayError]:
        """What each topic's settings are and who set them, less Kafka's own defaults; one request for all."""
        if not topics:
            return {}
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
        with mapped(cluster=self.endpoint):
            answers = self._client.describe_configs(resources, request_timeout=REQUEST_SECONDS)
        found: dict[str, tuple[TopicSetting, ...] | CausewayError] = {}
        for resource, answer in answers.items():
            error = self._error_of(answer, resource.name, "DescribeConfigs")
            if error and error.retriable:
                raise error
            found[resource.name] = error or _settings(answer.result().values(), with_defaults=with_defaults)
        return found

    def alter_settings(
        self, changes: Mapping[str, Mapping[str, str | None]], *, validate_only: bool = False
    ) -> dict[str, CausewayError]:
        """Set topics' settings, or (None) delete what was set; the refused topics with their reasons.

        Incremental: what isn't named stays. Of one topic the broker takes all or nothing.
        """
        if not changes:
            return {}
        resources = [
            ConfigResource(
                ResourceType.TOPIC,
                topic,
                incremental_configs=[_alteration(name, value) for name, value in settings.items()],
            )
            for topic, settings in changes.items()
        ]
        with mapped(cluster=self.endpoint, operation="AlterConfigs"):
            answers = self._client.incremental_alter_configs(
                resources, request_timeout=REQUEST_SECONDS, validate_only=validate_only
            )
        by_topic = {resource.name: answer for resource, answer in answers.items()}
        return self._refusals(by_topic, "AlterConfigs", KafkaErrorCode.NONE)[0]

    def create_topics(
        self, plans: Collection[NewTopicPlan], *, validate_only: bool = False
    ) -> dict[str, CausewayError]:
        """Create topics and wait for the broker's word; the refused ones with their reasons.

        A topic that exists already, with as many partitions, is as good as created.
        """
        if not plans:
            return {}
        news = [
            NewTopic(
                plan.name,
                num_partitions=plan.partitions,
                replication_factor=plan.replication_factor or _BROKER_DEFAULT,
                config=dict(plan.settings),
            )
            for plan in plans
        ]
        with mapped(cluster=self.endpoint, operation="Create"):
            answers = self._client.create_topics(
                news, request_timeout=REQUEST_SECONDS, validate_only=validate_only
            )
        refused, existing = self._refusals(answers, "Create", KafkaErrorCode.TOPIC_ALREADY_EXISTS)
        wanted = {plan.name: plan.partitions for plan in plans if plan.name in existing}
        return refused | self._with_other_partition_counts(wanted)

    def create_partitions(
        self, growths: Collection[Growth], *, validate_only: bool = False
    ) -> dict[str, CausewayError]:
        """Give topics more partitions and wait for the broker's word; the refused ones, with reasons."""
        if not growths:
            return {}
        news = [NewPartitions(growth.name, growth.to_partitions) for growth in growths]
        with mapped(cluster=self.endpoint, operation="Alter"):
            answers = self._client.create_partitions(
                news, request_timeout=REQUEST_SECONDS, validate_only=validate_only
            )
        refused, grown = self._refusals(answers, "Alter", KafkaErrorCode.INVALID_PARTITIONS)
        wanted = {growth.name: growth.to_partitions for growth in growths if growth.name in grown}
        return refused | self._with_other_partition_counts(wanted)

    def wait_for_leaders(self, partitions: Mapping[str, int], *, timeout_seconds: float = 20.0) -> None:
        """Until each partition of these topics (name -> partitions) answers: only then can it be written.

        :raises ClusterUnreachable: for so long none more of them has answered; names the topics.
        """
        silent = still_silent(self._client, partitions_of(partitions), patience_seconds=timeout_seconds)
        if silent:
            raise ClusterUnreachable(
                f"cluster {self.endpoint}, {', '.join(sorted({tp.topic for tp in silent})[:5])}",
                rule=f"{counted(len(silent), 'partition')} without a leader that answers, "
                f"no other one in the last {timeout_seconds:.0f} s",
                remedy="look at the brokers' logs",
            )

    def _metadata(self) -> dict[str, TopicMetadata]:
        with mapped(cluster=self.endpoint, operation="Describe"):
            return dict(self._client.list_topics(timeout=REQUEST_SECONDS).topics)

    def _refusals(
        self, answers: Mapping[str, Future[Any]], operation: str, harmless: KafkaErrorCode
    ) -> tuple[dict[str, CausewayError], set[str]]:
        """Errors by topic, and the topics with the error that is `harmless` if they are as they should be."""
        refused: dict[str, CausewayError] = {}
        to_look_at: set[str] = set()
        for topic, answer in answers.items():
            exc = answer.exception()
            if isinstance(exc, KafkaException) and exc.args[0].code() == harmless:
                to_look_at.add(topic)
            elif error := self._error_of(answer, topic, operation):
                if error.retriable:
                    raise error
                refused[topic] = error
        return refused, to_look_at

    def _error_of(self, answer: Future[Any], topic: str, operation: str) -> CausewayError | None:
        exc = answer.exception()
        if exc is None:
            return None
        error = mapped_error(exc, cluster=self.endpoint, resource=topic, operation=operation)
        error.__cause__ = exc
        return error

    def _with_other_partition_counts(self, wanted: Mapping[str, int]) -> dict[str, CausewayError]:
        if not wanted:
            return {}
        partitions = {topic.name: topic.partitions for topic in self.topics()}
        return {
            topic: UnfitTarget(
                f"cluster {self.endpoint}, {topic}",
                value=f"{partitions.get(topic, 0)} partitions",
                rule=f"it exists already and must have {count}",
                remedy=f"delete {topic} or give it {count} partitions, if nothing else depends on it",
            )
            for topic, count in wanted.items()
            if partitions.get(topic) != count
        }


def _alteration(name: str, value: str | None) -> ConfigEntry:
    operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    return ConfigEntry(name, value, incremental_operation=operation)


def _settings(entries: Iterable[ConfigEntry], *, with_defaults: bool) -> tuple[TopicSetting, ...]:
    settings = (_setting(entry) for entry in entries)
    return tuple(
        setting for setting in settings if with_defaults or setting.source is not SettingSource.DEFAULT
    )


def _setting(entry: ConfigEntry) -> TopicSetting:
    return TopicSetting(
        name=entry.name,
        value=entry.value,
        source=_SOURCES.get(int(entry.source), SettingSource.OTHER),
        is_read_only=bool(entry.is_read_only),
        is_sensitive=bool(entry.is_sensitive),
    )


def _most_replicas(topic: TopicMetadata) -> int:
    return max((len(partition.replicas) for partition in topic.partitions.values()), default=0)
