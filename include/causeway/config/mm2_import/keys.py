"""Every key that MirrorMaker 2's file may say, and what becomes of it under Causeway.

`ruling_of` knows MirrorMaker's own keys, Kafka Connect's for its worker, and those of the Kafka clients.
A key that none of them knows is a mistake that MirrorMaker 2 passes over in silence; here it is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Fate(StrEnum):
    TAKEN = "taken over"
    HARMLESS = "not needed"
    NOT_TAKEN = "NOT TAKEN OVER"


@dataclass(frozen=True, slots=True)
class Ruling:
    fate: Fate
    why: str
    harmless_if: frozenset[str] = frozenset()
    """Values with which it says what Causeway does anyhow."""

    def of(self, value: str) -> Ruling:
        if value.strip().lower() in self.harmless_if:
            return Ruling(Fate.HARMLESS, "says what holds anyhow")
        return self


def _taken(why: str) -> Ruling:
    return Ruling(Fate.TAKEN, why)


def _harmless(why: str) -> Ruling:
    return Ruling(Fate.HARMLESS, why)


def _not_taken(why: str, *harmless_if: str) -> Ruling:
    return Ruling(Fate.NOT_TAKEN, why, frozenset(harmless_if))


_EVERY_ROUND = _harmless("each round looks for new topics and partitions")
_EVERY_SYNC = _harmless("a task after each copy does it")
_WORKER = _harmless("Kafka Connect's own; Airflow and Spark do its work")
_TUNING = _harmless("tunes MirrorMaker's clients; batches cross as they are, with the codec that they have")
_REPLICAS = _harmless("of MirrorMaker's own topics; Causeway's follow replication.factor")
_BY_ADOPTION = _taken("says where --adopt finds MirrorMaker's position")
_BY_WRITING = _taken("")
"""`mm2_import` says into what."""

FLOW_KEYS: dict[str, Ruling] = {
    **dict.fromkeys(
        (
            *("enabled", "topics", "topics.exclude", "topics.blacklist", "groups", "groups.exclude"),
            *("groups.blacklist", "config.properties.exclude", "config.properties.blacklist"),
            *("use.defaults.from", "replication.policy.class", "replication.policy.separator"),
            *("replication.factor", "sync.topic.configs.enabled", "sync.topic.acls.enabled"),
            *("sync.group.offsets.enabled", "emit.checkpoints.enabled", "emit.heartbeats.enabled"),
            *("heartbeats.replication.enabled", "emit.offset-syncs.enabled"),
        ),
        _BY_WRITING,
    ),
    "name": _BY_ADOPTION,
    "offsets.storage.topic": _BY_ADOPTION,
    "offset-syncs.topic.location": _taken("says where --adopt finds MirrorMaker's offset syncs"),
    "refresh.topics.enabled": _EVERY_ROUND,
    "refresh.topics.interval.seconds": _EVERY_ROUND,
    "refresh.groups.enabled": _harmless("each look at the groups finds new ones"),
    "refresh.groups.interval.seconds": _harmless("each look at the groups finds new ones"),
    "sync.topic.configs.interval.seconds": _EVERY_SYNC,
    "sync.topic.acls.interval.seconds": _EVERY_SYNC,
    "sync.group.offsets.interval.seconds": _EVERY_SYNC,
    "emit.checkpoints.interval.seconds": _EVERY_SYNC,
    "emit.heartbeats.interval.seconds": _EVERY_SYNC,
    "tasks.max": _harmless("lanes share the work out; 16 of them unless flows.yaml says otherwise"),
    "offset.lag.max": _harmless("the offset map is exact"),
    "exactly.once.support": _harmless("every flow is exactly once"),
    "transaction.boundary": _harmless("every flow is exactly once"),
    "transaction.boundary.interval.ms": _harmless("every flow is exactly once"),
    "admin.timeout.ms": _TUNING,
    "consumer.poll.timeout.ms": _TUNING,
    "connector.class": _harmless("there are no connectors"),
    "topic.creation.enable": _harmless("mirrors are made by Causeway"),
    "metric.names.formats": _harmless("a run's report has its numbers"),
    "task.assigned.partitions": _WORKER,
    "task.assigned.groups": _WORKER,
    "source.cluster.alias": _not_taken("the flow's own name says it (A->B)"),
    "target.cluster.alias": _not_taken("the flow's own name says it (A->B)"),
    "topic.filter.class": _not_taken(
        "a filter of your own: flows.yaml has topics and topics.exclude",
        "org.apache.kafka.connect.mirror.defaulttopicfilter",
    ),
    "group.filter.class": _not_taken(
        "a filter of your own: flows.yaml has groups and groups.exclude",
        "org.apache.kafka.connect.mirror.defaultgroupfilter",
    ),
    "config.property.filter.class": _not_taken(
        "a filter of your own: flows.yaml has config.properties.exclude",
        "org.apache.kafka.connect.mirror.defaultconfigpropertyfilter",
    ),
    "forwarding.admin.class": _not_taken(
        "Causeway makes and alters topics on the target itself: it needs the rights in docs/rights.md",
        "org.apache.kafka.clients.admin.forwardingadmin",
    ),
    "replication.policy.internal.topic.separator.enabled": _not_taken(
        "checkpoints and offset syncs go to topics with the separator in their names", "true"
    ),
    "errors.tolerance": _not_taken("a record that can't be copied parks its partition (on_refused)", "none"),
    "header.converter": _WORKER,
    "key.converter": _WORKER,
    "value.converter": _WORKER,
}
_FLOW_PREFIXES: tuple[tuple[str, Ruling], ...] = (
    ("transforms", _not_taken("records would be changed on their way, and Causeway copies them as they are")),
    ("predicates", _not_taken("they choose what transforms change, and Causeway copies records as they are")),
    ("errors.", _harmless("a record that can't be copied parks its partition (on_refused)")),
    ("source.cluster.", _not_taken("a cluster has one connection, for all of its flows")),
    ("target.cluster.", _not_taken("a cluster has one connection, for all of its flows")),
    ("topic.creation.", _not_taken("mirrors are made with the source's settings and replication.factor")),
    ("offset-syncs.topic.replication.factor", _REPLICAS),
    ("checkpoints.topic.replication.factor", _REPLICAS),
    ("heartbeats.topic.replication.factor", _REPLICAS),
    ("key.converter.", _WORKER),
    ("value.converter.", _WORKER),
    ("header.converter.", _WORKER),
)
_CLIENT_PREFIXES = ("producer.", "consumer.", "admin.", "source.", "target.")
WORKER_KEYS: dict[str, Ruling] = {
    "group.id": _taken("says by which group --adopt sees whether MirrorMaker still works"),
    "offset.storage.topic": _BY_ADOPTION,
    "plugin.path": _WORKER,
    "listeners": _WORKER,
    "cluster": _WORKER,
    "exactly.once.source.support": _harmless("every flow is exactly once"),
    "dedicated.mode.enable.internal.rest": _WORKER,
    "session.timeout.ms": _WORKER,
}
_WORKER_PREFIXES = (
    *("offset.storage.", "config.storage.", "status.storage.", "offset.flush.", "rest.", "admin.listeners"),
    *("connector.", "worker.", "task.", "metrics.", "metric.", "scheduled.rebalance.", "rebalance."),
    *("heartbeat.interval", "inter.worker.", "internal.", "plugin.", "topic.tracking.", "response.http."),
    *("access.control.", "advertised.", "header.converter", "key.converter", "value.converter", "listeners."),
    *("config.providers", "topic.creation.", "auto.include.jmx", "producer.override", "consumer.override"),
)
_TUNING_PREFIXES = (
    *("client.", "request.timeout", "retry.backoff", "retries", "reconnect.backoff", "metadata.", "socket."),
    *("connections.max", "send.buffer", "receive.buffer", "default.api", "default.dns"),
)
CONNECTION_KEYS = ("bootstrap.servers", "security.protocol")
_CONNECTION_PREFIXES = ("sasl.", "ssl.", "security.")
_OWN_CLASSES = _not_taken("classes of your own in MirrorMaker's clients; records cross as they are", "")
_OF_CLIENTS = {
    "auto.offset.reset": _taken("start: where a partition begins that was never mirrored"),
    "isolation.level": _taken("--adopt compares as it says; Causeway itself always reads what is committed"),
    "interceptor.classes": _OWN_CLASSES,
    "partitioner.class": _OWN_CLASSES,
}


def is_of_connection(key: str) -> bool:
    """How a cluster is reached, and as whom."""
    return key in CONNECTION_KEYS or key.startswith(_CONNECTION_PREFIXES)


def ruling_of_flow_key(key: str) -> Ruling | None:
    """After `A->B.`; None: nobody knows it."""
    if key in FLOW_KEYS:
        return FLOW_KEYS[key]
    found = next((ruling for prefix, ruling in _FLOW_PREFIXES if key.startswith(prefix)), None)
    return found or _of_client(key)


def ruling_of_cluster_key(key: str) -> Ruling | None:
    """After `A.`, but for the connection itself. What a flow reads isn't read there."""
    if key in WORKER_KEYS:
        return WORKER_KEYS[key]
    if key.startswith(_WORKER_PREFIXES):
        return _WORKER
    found = _of_client(key)
    return found or (_TUNING if key.startswith(_TUNING_PREFIXES) else None)


def ruling_of_common_key(key: str) -> Ruling | None:
    """Before which nothing stands."""
    if key == "config.providers" or key.startswith("config.providers."):
        return _not_taken("references like ${provider:key} aren't resolved here; those that matter are named")
    return (
        FLOW_KEYS.get(key)
        or WORKER_KEYS.get(key)
        or next((ruling for prefix, ruling in _FLOW_PREFIXES if key.startswith(prefix)), None)
        or ruling_of_cluster_key(key)
    )


def _of_client(key: str) -> Ruling | None:
    prefix = next((each for each in _CLIENT_PREFIXES if key.startswith(each)), None)
    if prefix is None:
        return None
    inner = key.removeprefix(prefix)
    if prefix in ("source.", "target.") and not inner.startswith(_CLIENT_PREFIXES[:3]):
        return None
    for each in (*_CLIENT_PREFIXES[:3], "override."):
        inner = inner.removeprefix(each)
    if is_of_connection(inner):
        return _not_taken("a cluster has one connection, for all that Causeway does there")
    return _OF_CLIENTS.get(inner, _TUNING)
