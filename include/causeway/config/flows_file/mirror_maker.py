"""MirrorMaker 2's words that Causeway doesn't take, and what to do instead: people bring their old file."""

from __future__ import annotations

_EVERY_ROUND = "each round looks for new topics and partitions by itself; remove it"
_EVERY_GROUP = "each look at the groups finds new ones by itself; remove it"
_AFTER_EACH_COPY = "it is done after each copy, and each minute while a flow follows; remove it"
_EVERY_RUN = "a task of each run of the DAG does it; remove it"
_CONNECTION = "how to reach a cluster belongs in its Airflow connection's extra"

INSTEAD = {
    "enabled": "a flow that shouldn't run is paused in Airflow; remove it",
    "source.cluster.alias": "write source: and the cluster's alias",
    "target.cluster.alias": "write target: and the cluster's alias",
    "replication.policy.class": "write replication.policy: prefix, identity or rules",
    "topics.blacklist": "write topics.exclude",
    "groups.blacklist": "write groups.exclude",
    "config.properties.blacklist": "write config.properties.exclude",
    "tasks.max": "write lanes",
    "exactly.once.support": "every flow is exactly once; remove it",
    "exactly.once.source.support": "every flow is exactly once; remove it",
    "offset.lag.max": "the offset map is exact; remove it",
    "offset-syncs.topic.location": "nothing is written to the source; remove it",
    "refresh.topics.enabled": _EVERY_ROUND,
    "refresh.topics.interval.seconds": _EVERY_ROUND,
    "refresh.groups.enabled": _EVERY_GROUP,
    "refresh.groups.interval.seconds": _EVERY_GROUP,
    "sync.group.offsets.interval.seconds": _AFTER_EACH_COPY,
    "sync.topic.configs.interval.seconds": _EVERY_RUN,
    "sync.topic.acls.interval.seconds": _EVERY_RUN,
    "emit.checkpoints.interval.seconds": _AFTER_EACH_COPY,
    "emit.heartbeats.interval.seconds": _EVERY_RUN,
    "bootstrap.servers": _CONNECTION,
    "security.protocol": _CONNECTION,
}
