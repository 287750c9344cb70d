"""Settings of the target's brokers that decide whether what was promised can be kept.

Each rule says what happens if it is broken; the numbers are Kafka's defaults or follow from the protocol:
positions are renewed daily, so offsets must live longer than a day; a lane's claim is remembered only as long
as its transactional id.
"""

from __future__ import annotations

from collections.abc import Mapping

from causeway.core.doctor.finding import Finding, failed, passed, some, warn
from causeway.core.kernel.acl_vocabulary import Operation, grant_command
from causeway.core.kernel.cluster_facts import ClusterView, TopicView
from causeway.core.model.flow import Flow

CHECK_SETTINGS, CHECK_REPLICATION = "settings", "replication"
OFFSETS_RETENTION, ID_EXPIRATION = "offsets.retention.minutes", "transactional.id.expiration.ms"
MOST_TIMEOUT, AUTO_CREATE = "transaction.max.timeout.ms", "auto.create.topics.enable"
UNCLEAN, IN_SYNC = "unclean.leader.election.enable", "min.insync.replicas"
KAFKAS_OWN = {
    "__consumer_offsets": "offsets.topic.replication.factor",
    "__transaction_state": "transaction.state.log.replication.factor",
}

_DAY_MINUTES, _DAY_MS = 24 * 60, 24 * 3_600_000
_ENOUGH_REPLICAS = 3


def judge_brokers(flow: Flow, view: ClusterView, kafkas_own: Mapping[str, TopicView]) -> list[Finding]:
    """Only of a target. `kafkas_own`: its topics for offsets and transactions, as far as they are there."""
    if view.settings is None:
        grant = grant_command(view.principal, Operation.DESCRIBE_CONFIGS.word, "cluster", "")
        return [warn(CHECK_SETTINGS, view.alias, "broker settings can't be seen", grant)]
    return [
        _offsets_retention(view),
        _id_expiration(view),
        _most_timeout(flow, view),
        _auto_create(view),
        _unclean(view),
        *(_replicas(view, topic, kafkas_own.get(topic)) for topic in KAFKAS_OWN),
        _transaction_log_in_sync(view, kafkas_own.get("__transaction_state")),
        _defaults_for_new_topics(flow, view),
    ]


def _offsets_retention(view: ClusterView) -> Finding:
    minutes = view.least(OFFSETS_RETENTION)
    said = f"{OFFSETS_RETENTION} is {minutes:,}"
    remedy = f"set {OFFSETS_RETENTION}=10080 (a week) on every broker of {view.alias}"
    if minutes <= _DAY_MINUTES:
        why = "positions of idle partitions are renewed daily, and are gone before"
        return failed(CHECK_SETTINGS, view.alias, f"{said}: {why}", remedy)
    if minutes < 3 * _DAY_MINUTES:
        return warn(
            CHECK_SETTINGS, view.alias, f"{said}: a flow that rests over a weekend loses positions", remedy
        )
    return passed(CHECK_SETTINGS, view.alias, said)


def _id_expiration(view: ClusterView) -> Finding:
    milliseconds = view.least(ID_EXPIRATION)
    said = f"{ID_EXPIRATION} is {milliseconds:,}"
    if milliseconds < _DAY_MS:
        return warn(
            CHECK_SETTINGS,
            view.alias,
            f"{said}: the claim of a lane that rests longer is forgotten, and its epochs with it",
            f"set {ID_EXPIRATION}=604800000 (a week) on every broker of {view.alias}",
        )
    return passed(CHECK_SETTINGS, view.alias, said)


def _most_timeout(flow: Flow, view: ClusterView) -> Finding:
    most, ours = view.least(MOST_TIMEOUT), flow.limits.transaction_timeout_ms
    said = f"{MOST_TIMEOUT} is {most:,}"
    if most < ours:
        return failed(
            CHECK_SETTINGS,
            view.alias,
            f"{said}: a lane asks for {ours:,}, so no claim is granted",
            f"set {MOST_TIMEOUT}={ours} or more on every broker of {view.alias}",
        )
    return passed(CHECK_SETTINGS, view.alias, f"{said}; a lane asks for {ours:,}")


def _auto_create(view: ClusterView) -> Finding:
    if view.any_says(AUTO_CREATE, "true"):
        return warn(
            CHECK_SETTINGS,
            view.alias,
            f"{AUTO_CREATE} is true: who only asks for a mirror makes it, empty, with default settings",
            f"set {AUTO_CREATE}=false on every broker of {view.alias}",
        )
    return passed(CHECK_SETTINGS, view.alias, f"{AUTO_CREATE} is false")


def _unclean(view: ClusterView) -> Finding:
    if view.any_says(UNCLEAN, "true"):
        return warn(
            CHECK_SETTINGS,
            view.alias,
            f"{UNCLEAN} is true: an unclean election takes committed records and positions away",
            f"set {UNCLEAN}=false on every broker of {view.alias}",
        )
    return passed(CHECK_SETTINGS, view.alias, f"{UNCLEAN} is false")


def _replicas(view: ClusterView, topic: str, made: TopicView | None) -> Finding:
    """What the topic has counts; what it would be made with, before it is there."""
    setting = KAFKAS_OWN[topic]
    replicas = made.fewest_replicas if made else view.least(setting, default=0)
    wanted = min(_ENOUGH_REPLICAS, len(view.brokers))
    said = f"{topic} {'has' if made else 'will have'} {_replicas_said(replicas)} on {view.number_of_brokers}"
    if replicas > len(view.brokers) and not made:
        return failed(
            CHECK_REPLICATION,
            view.alias,
            f"{said}: it can't be made, and no lane can be claimed without it",
            f"set {setting}={wanted} on every broker of {view.alias}",
        )
    if replicas < wanted:
        remedy = (
            f"kafka-reassign-partitions.sh: give {topic} {wanted} replicas"
            if made
            else f"set {setting}={wanted} on every broker of {view.alias}, before {topic} is made"
        )
        return warn(CHECK_REPLICATION, view.alias, f"{said}: a lost disk loses positions or claims", remedy)
    return passed(CHECK_REPLICATION, view.alias, said)


def _replicas_said(replicas: int) -> str:
    return "1 replica" if replicas == 1 else f"{replicas} replicas"


def _transaction_log_in_sync(view: ClusterView, made: TopicView | None) -> Finding:
    setting = "transaction.state.log.min.isr"
    needed = view.most(setting, default=1)
    replicas = made.fewest_replicas if made else view.least(KAFKAS_OWN["__transaction_state"], default=1)
    said = f"{setting} is {needed}, with {_replicas_said(replicas)}"
    if needed > replicas:
        return failed(
            CHECK_REPLICATION,
            view.alias,
            f"{said}: no transaction can be written down",
            f"set {setting}={max(1, replicas - 1)} on every broker of {view.alias}",
        )
    return passed(CHECK_REPLICATION, view.alias, said)


def judge_source_factors(flow: Flow, view: ClusterView, replicas: Mapping[str, int]) -> list[Finding]:
    """`replicas`: by source topic, of those whose mirror isn't there yet."""
    if flow.replication_factor != "source" or not replicas:
        return []
    greatest = max(replicas.values())
    said = f"{len(replicas)} mirrors to be made" if len(replicas) > 1 else "1 mirror to be made"
    said = f"{said} as on {flow.source} (replication.factor: source), with up to {_replicas_said(greatest)}"
    beyond = [name for name, count in sorted(replicas.items()) if count > len(view.brokers)]
    if not beyond:
        return [passed(CHECK_REPLICATION, view.alias, said)]
    return [
        failed(
            CHECK_REPLICATION,
            view.alias,
            f"{said}, and the cluster has {view.number_of_brokers}: no mirror of {some(beyond)} can be made",
            f"write replication.factor: {len(view.brokers)} of the flow in flows.yaml, or -1 for the "
            f"default of {view.alias}",
        )
    ]


def _defaults_for_new_topics(flow: Flow, view: ClusterView) -> Finding:
    replicas = flow.own_replication_factor or view.least("default.replication.factor", default=1)
    in_sync = view.most(IN_SYNC, default=1)
    said = f"new topics get {_replicas_said(replicas)}, {IN_SYNC} is {in_sync}"
    remedy = "set replication.factor of the flow in flows.yaml"
    if replicas > len(view.brokers):
        return failed(
            CHECK_REPLICATION,
            view.alias,
            f"{said}, and the cluster has {view.number_of_brokers}: they can't be made",
            f"{remedy} to {len(view.brokers)} or less",
        )
    if in_sync > replicas:
        return failed(
            CHECK_REPLICATION, view.alias, f"{said}: they can't be written", f"{remedy} to {in_sync}"
        )
    if replicas < min(_ENOUGH_REPLICAS, len(view.brokers)):
        return warn(CHECK_REPLICATION, view.alias, f"{said}: a lost disk loses mirrors", f"{remedy} to 3")
    if in_sync < 2 <= replicas:
        return warn(
            CHECK_REPLICATION,
            view.alias,
            f"{said}: what one broker alone acknowledged is lost with it",
            f"set {IN_SYNC}=2 on every broker of {view.alias}",
        )
    return passed(CHECK_REPLICATION, view.alias, said)
