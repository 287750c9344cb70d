"""Settings of topics, source against mirror: what would park a partition, change a record or drop it early.

Each rule is asked of every pair and gives one finding, with the topics that break it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from causeway.core.doctor.finding import Finding, Result, failed, failed_by, passed, some, together, warn
from causeway.core.kernel.acl_vocabulary import NeededRight, Operation, grant_command
from causeway.core.kernel.cluster_facts import UNLIMITED, ClusterView, TopicView
from causeway.core.kernel.errors import CausewayError, NotAuthorized, UnfitTarget
from causeway.core.kernel.plurals import counted
from causeway.core.model.flow import Flow
from causeway.core.model.naming import FLOWS_TOPIC

CHECK_TOPICS, CHECK_OWN = "topics", "own topics"
_DAY_MS = 24 * 3_600_000
_HOUR_MS = 3_600_000
_FROM_BROKER = {
    "max.message.bytes": "message.max.bytes",
    "message.timestamp.type": "log.message.timestamp.type",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "compression.type": "compression.type",
    "cleanup.policy": "log.cleanup.policy",
    "retention.bytes": "log.retention.bytes",
    "min.insync.replicas": "min.insync.replicas",
}
AFTER = "message.timestamp.after.max.ms"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPair:
    """A source topic's settings and those that its mirror has, or would be made with."""

    source: str
    target: str
    source_settings: Mapping[str, str]
    target_settings: Mapping[str, str]
    target_replicas: int | None = None


@dataclass(frozen=True, slots=True)
class _Rule:
    what: str
    broken: Callable[[TopicPair], str]
    """What is wrong with this pair; empty: nothing."""
    remedy: Callable[[TopicPair], str]
    result: Result = Result.WARN


def defaults_of(settings: Mapping[str, str]) -> dict[str, str]:
    """What a topic gets that names no setting of its own, from its broker's settings."""
    found = {topic: settings[broker] for topic, broker in _FROM_BROKER.items() if broker in settings}
    for name, milliseconds in (
        ("log.retention.ms", 1),
        ("log.retention.minutes", 60_000),
        ("log.retention.hours", _HOUR_MS),
    ):
        if name in settings:
            number = int(settings[name])
            found["retention.ms"] = str(number if number < 0 else number * milliseconds)
            break
    return found


def judge_topics(flow: Flow, pairs: Collection[TopicPair]) -> list[Finding]:
    return [_judged(flow, rule, pairs) for rule in _RULES] if pairs else []


def _judged(flow: Flow, rule: _Rule, pairs: Collection[TopicPair]) -> Finding:
    broken = [(pair, why) for pair in pairs if (why := rule.broken(pair))]
    if not broken:
        number = counted(len(pairs), "topic")
        return passed(CHECK_TOPICS, flow.name, f"{rule.what}: nothing in the way of {number}")
    first, why = broken[0]
    others = [pair.source for pair, _ in broken[1:]]
    finding = f"{rule.what}: {why}" + (f"; so {some(others)}" if others else "")
    make = failed if rule.result is Result.FAILED else warn
    return make(CHECK_TOPICS, flow.name, finding, rule.remedy(first))


def _limit_of(settings: Mapping[str, str], name: str) -> int:
    """-1 is Kafka's word for "without limit"; a broker too old for a setting has no limit either."""
    number = int(settings.get(name, -1))
    return UNLIMITED if number < 0 else number


def _kept_ms(settings: Mapping[str, str]) -> int:
    is_deleted = "delete" in settings.get("cleanup.policy", "delete")
    return _limit_of(settings, "retention.ms") if is_deleted else UNLIMITED


def _set(topic: str, name: str, value: object) -> str:
    return f"kafka-configs.sh --alter --entity-type topics --entity-name {topic} --add-config {name}={value}"


def _size(pair: TopicPair) -> str:
    here, there = (_limit_of(s, "max.message.bytes") for s in (pair.source_settings, pair.target_settings))
    if there >= here:
        return ""
    return f"{pair.source} takes batches of {here:,} B, {pair.target} of {there:,} B: a bigger one parks"


def _old(pair: TopicPair) -> str:
    window, kept = (
        _limit_of(pair.target_settings, "message.timestamp.before.max.ms"),
        _kept_ms(pair.source_settings),
    )
    if window >= kept:
        return ""
    refused = f"{pair.target} refuses those older than {_time(window)}"
    return f"{pair.source} keeps records for {_time(kept)}, {refused}"


def _future(pair: TopicPair) -> str:
    here, there = (_limit_of(s, AFTER) for s in (pair.source_settings, pair.target_settings))
    if there >= here:
        return ""
    return (
        f"{pair.source} takes records {_time(here)} ahead of its clock, "
        f"{pair.target} refuses those {_time(there)} ahead"
    )


def _stamped(pair: TopicPair) -> str:
    if pair.target_settings.get("message.timestamp.type", "CreateTime") == "CreateTime":
        return ""
    return f"{pair.target} stamps each record with its own time (LogAppendTime): timestamps aren't kept"


def _forgets(pair: TopicPair) -> str:
    here, there = _kept_ms(pair.source_settings), _kept_ms(pair.target_settings)
    if there < here:
        return f"{pair.source} keeps records for {_time(here)}, {pair.target} for {_time(there)}"
    here, there = (_limit_of(s, "retention.bytes") for s in (pair.source_settings, pair.target_settings))
    if there < here:
        return f"{pair.source} keeps {_bytes(here)} a partition, {pair.target} {_bytes(there)}"
    return ""


def _short_lived(pair: TopicPair) -> str:
    kept = _kept_ms(pair.source_settings)
    if kept >= _DAY_MS:
        return ""
    return f"{pair.source} keeps records for {_time(kept)}: a mirror that rests longer loses them"


def _recompressed(pair: TopicPair) -> str:
    here, there = (
        s.get("compression.type", "producer") for s in (pair.source_settings, pair.target_settings)
    )
    if there in ("producer", here):
        return ""
    return f"{pair.target} has compression.type {there}: its broker unpacks and packs every batch again"


def _cleaned(pair: TopicPair) -> str:
    here, there = (s.get("cleanup.policy", "delete") for s in (pair.source_settings, pair.target_settings))
    if set(here.split(",")) == set(there.split(",")):
        return ""
    return f"{pair.source} has cleanup.policy {here}, {pair.target} {there}: they don't keep the same records"


def _in_sync(pair: TopicPair) -> str:
    needed = int(pair.target_settings.get("min.insync.replicas", "1"))
    if pair.target_replicas is None or needed <= pair.target_replicas:
        return ""
    return _unwritable(pair.target, pair.target_replicas, needed)


def _unwritable(topic: str, replicas: int, needed: int) -> str:
    return f"{topic} has {replicas} replicas and min.insync.replicas {needed}: it can't be written"


def _of_source(name: str) -> Callable[[TopicPair], str]:
    return lambda pair: _set(pair.target, name, pair.source_settings.get(name, -1))


_RULES = (
    _Rule("message size", _size, _of_source("max.message.bytes")),
    _Rule("old records", _old, lambda pair: _set(pair.target, "message.timestamp.before.max.ms", UNLIMITED)),
    _Rule("records from the future", _future, _of_source(AFTER)),
    _Rule(
        "timestamps",
        _stamped,
        lambda pair: _set(pair.target, "message.timestamp.type", "CreateTime"),
        Result.FAILED,
    ),
    _Rule(
        "retention",
        _forgets,
        lambda pair: f"{_of_source('retention.ms')(pair)}; the same for retention.bytes",
    ),
    _Rule(
        "retention of the source",
        _short_lived,
        lambda pair: f"keep records of {pair.source} for a day or more, or let the flow follow its source",
    ),
    _Rule("compression", _recompressed, lambda pair: _set(pair.target, "compression.type", "producer")),
    _Rule(
        "cleanup",
        _cleaned,
        lambda pair: _set(
            pair.target, "cleanup.policy", f"[{pair.source_settings.get('cleanup.policy', 'delete')}]"
        ),
    ),
    _Rule(
        "replicas in sync",
        _in_sync,
        lambda pair: _set(pair.target, "min.insync.replicas", max(1, (pair.target_replicas or 1) - 1)),
        Result.FAILED,
    ),
)


def judge_own_topics(flow: Flow, view: ClusterView, own: Mapping[str, TopicView]) -> list[Finding]:
    """The flow's two topics on the target; one that isn't there yet will be made right."""
    return [_own_topic(view, name, own.get(name)) for name in (FLOWS_TOPIC, flow.map_topic)]


def _own_topic(view: ClusterView, name: str, topic: TopicView | None) -> Finding:
    if topic is None:
        return passed(CHECK_OWN, view.alias, f"{name} isn't on {view.alias} yet; the first run makes it")
    if name == FLOWS_TOPIC and topic.partitions != 1:
        return failed(
            CHECK_OWN,
            view.alias,
            f"{name} has {topic.partitions} partitions: turns have one order only in one partition",
            f"delete {name} if no flow has run yet; otherwise ask for help",
        )
    if topic.settings is None:
        return warn(CHECK_OWN, view.alias, f"settings of {name} can't be seen", _grant(view, name))
    policy = topic.settings.get("cleanup.policy", "compact")
    if policy != "compact":
        return failed(
            CHECK_OWN,
            view.alias,
            f"{name} has cleanup.policy {policy}: in time it forgets what the flow must know",
            _set(name, "cleanup.policy", "compact"),
        )
    in_sync = int(topic.settings.get("min.insync.replicas", "1"))
    if in_sync > topic.fewest_replicas:
        return failed(
            CHECK_OWN,
            view.alias,
            _unwritable(name, topic.fewest_replicas, in_sync),
            _set(name, "min.insync.replicas", max(1, topic.fewest_replicas - 1)),
        )
    return passed(CHECK_OWN, view.alias, f"{name} is compacted")


def _grant(view: ClusterView, name: str) -> str:
    return grant_command(view.principal, Operation.DESCRIBE_CONFIGS.word, "topic", name)


def unseen_settings(
    flow: Flow, grants: Iterable[NeededRight], principal: str, topics: Collection[str]
) -> Finding:
    """For pairs of which one side's settings may not be read."""
    remedy = together(grant.command(principal) for grant in grants)
    return warn(CHECK_TOPICS, flow.name, f"settings of {some(topics)} can't be seen", remedy)


def judge_creation(flow: Flow, refused: Mapping[str, CausewayError]) -> list[Finding]:
    """By the target's own word on a trial; a missing right is reported with the rights."""
    return [
        failed_by("creation", flow.name, error)
        for error in refused.values()
        if not isinstance(error, NotAuthorized | UnfitTarget)
    ]


def _time(milliseconds: int) -> str:
    if milliseconds >= UNLIMITED:
        return "ever"
    for unit, length in (("d", _DAY_MS), ("h", _HOUR_MS), ("min", 60_000)):
        if milliseconds >= length and milliseconds % length == 0:
            return f"{milliseconds // length} {unit}"
    return f"{milliseconds:,} ms"


def _bytes(number: int) -> str:
    return "everything" if number >= UNLIMITED else f"{number:,} B"
