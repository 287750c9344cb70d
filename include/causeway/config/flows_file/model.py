"""The shape of flows.yaml: which keys there are, their types, their defaults and rules.

MirrorMaker 2's words and defaults where it has them. Unknown keys are refused; validators raise Refusal,
and `load` adds file and line. Each key says here what it means: docs/configuration.md is made from that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator

from causeway.config.flows_file.schedule import PRESETS, check_schedule
from causeway.config.values.refusal import Refusal
from causeway.config.values.units import parse_duration_seconds, parse_instant_ms, parse_size_bytes
from causeway.core.model.flow import RefusedPolicy, Start
from causeway.core.model.naming import is_internal, is_legal
from causeway.core.model.pattern import compiled
from causeway.core.model.pattern_list import is_name
from causeway.core.model.pattern_syntax import PatternError
from causeway.core.model.topic_filter import DEFAULT_GROUPS_EXCLUDE, DEFAULT_TOPICS_EXCLUDE

DEFAULT_CONFIG_EXCLUDE = (
    r"follower\.replication\.throttled\.replicas",
    r"leader\.replication\.throttled\.replicas",
    r"message\.timestamp\.difference\.max\.ms",
    r"message\.timestamp\.type",
    r"unclean\.leader\.election\.enable",
    r"min\.insync\.replicas",
)


def _pattern(text: str) -> str:
    if is_name(text):  # of which a list may have ten thousands
        return text
    try:
        compiled(text)
    except PatternError as reason:
        raise Refusal(reason.rule, reason.remedy) from None
    return text


def _crossing(text: str) -> str:
    if is_legal(text) and is_internal(text):
        raise Refusal("names an internal topic, and those never cross", "remove it")
    return text


def _schedule(text: str) -> str:
    return check_schedule(text)


def _parse_start(value: object) -> Start:
    if value == "earliest":
        return Start("earliest")
    if value == "latest":
        return Start("latest")
    return Start("timestamp", parse_instant_ms(str(value)))


def _factor(value: object) -> int | Literal["source"]:
    if value == "source":
        return "source"
    if type(value) is not int:
        raise Refusal("must be a whole number or source", "write -1 for the target's own default")
    if not -1 <= value <= 32767 or value == 0:
        raise Refusal("must be 1 to 32767, or -1 for the target's own default", "write -1")
    return value


def _separator(text: str) -> str:
    if not text or not is_legal(f"a{text}b") or any(character.isalnum() for character in text):
        raise Refusal("must be made of ., _ and - only", "write the default, a dot in quotes")
    return text


def _connection(text: str) -> str:
    if not text.isascii() or not text.replace("_", "a").isalnum():
        raise Refusal("must be an Airflow connection id of letters, digits and _", "write kafka_sf")
    return text


@dataclass(frozen=True, slots=True)
class Written:
    """How people write a value, for docs/configuration.md. pydantic passes over it."""

    kind: str
    allowed: str = ""


_NAME_OR_PATTERN = Written("name or regular expression")
Pattern = Annotated[str, AfterValidator(_pattern), _NAME_OR_PATTERN]
TopicPattern = Annotated[str, AfterValidator(_pattern), AfterValidator(_crossing), _NAME_OR_PATTERN]
DurationSeconds = Annotated[float, BeforeValidator(parse_duration_seconds), Written("duration")]
SizeBytes = Annotated[int, BeforeValidator(parse_size_bytes), Written("size")]
ConnectionId = Annotated[
    str,
    Field(max_length=200),
    AfterValidator(_connection),
    Written("Airflow connection id", "letters, digits and `_`, at most 200"),
]
_START = Written("moment", "`earliest`, `latest`, or a time with its zone such as `2026-01-31T12:00:00Z`")
_FACTOR = Written("whole number or word", "1 to 32767, `source`, or `-1`")
_SEPARATOR = Written("text", "1 to 10 of `.`, `_` and `-`")
_SCHEDULE = Written("schedule", f"{', '.join(f'`{each}`' for each in sorted(PRESETS))}, or a cron line")


class _Strict(BaseModel):
    """No key that we don't know, no type that merely looks like the right one."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, arbitrary_types_allowed=True)


class ClusterModel(_Strict):
    connection: ConnectionId = Field(
        description="The Airflow connection that says how to reach this cluster."
    )
    insecure: bool = Field(
        default=False,
        description="**With `true`, others on the network can read passwords and data, or answer in the "
        "cluster's name.** It allows SASL without TLS, and TLS without verification.",
    )


class RuleModel(_Strict):
    pattern: Pattern = Field(
        alias="from", description="A pattern that must match the whole name of the source topic."
    )
    to: Annotated[str, Field(min_length=1, max_length=300)] = Field(
        description="The name of the mirror. `$1` stands for what the first group of the pattern matched, "
        "`${10}` for the tenth, `$0` for the whole name."
    )


class FlowModel(_Strict):
    source: Annotated[str, Written("cluster alias")] = Field(
        description="The cluster that Causeway copies from."
    )
    target: Annotated[str, Written("cluster alias")] = Field(
        description="The cluster that Causeway copies to. It also holds the flow's positions, offset map and "
        "fences."
    )
    topics: list[TopicPattern] = Field(
        default=[".*"],
        min_length=1,
        description="The source topics to mirror. Causeway never mirrors internal topics, nor the exports of "
        "a failback.",
    )
    topics_exclude: list[Pattern] = Field(
        default=list(DEFAULT_TOPICS_EXCLUDE),
        alias="topics.exclude",
        description="Source topics to leave out, although `topics` matches them.",
    )
    # The way back of another flow, under the same names: see core/state/reverse_flow.py.
    failback_of: Annotated[str, Written("flow name")] | None = Field(
        default=None,
        description="Makes this flow the return direction of that flow; both need `replication.policy: "
        "identity`. It mirrors that flow's topics, and starts only where a failback or an operator says.",
    )
    groups: list[Pattern] = Field(
        default=[".*"],
        description="The consumer groups of the source whose offsets Causeway translates. It never touches "
        "groups named `causeway.*`.",
    )
    groups_exclude: list[Pattern] = Field(
        default=list(DEFAULT_GROUPS_EXCLUDE),
        alias="groups.exclude",
        description="Consumer groups to leave out, although `groups` matches them.",
    )
    sync_group_offsets: bool = Field(
        default=False,
        alias="sync.group.offsets.enabled",
        description="**Kafka reports a group as idle if its consumers use `assign()`: exclude such groups.** "
        "With `true`, Causeway commits translated offsets on the target, for groups that are idle there.",
    )
    follow_rewinds: bool = Field(
        default=False,
        description="Moves a group on the target back too, where the group itself went back on the source. "
        "Needs `sync.group.offsets.enabled: true`.",
    )
    emit_checkpoints: bool = Field(
        default=True,
        alias="emit.checkpoints.enabled",
        description="Writes checkpoints to `<source>.checkpoints.internal` on the target, in MirrorMaker 2's "
        "format. `RemoteClusterUtils` reads them.",
    )
    emit_offset_syncs: bool = Field(
        default=True,
        alias="emit.offset-syncs.enabled",
        description="Writes offset syncs to `mm2-offset-syncs.<source>.internal` on the target, in "
        "MirrorMaker 2's format.",
    )
    policy: Literal["prefix", "identity", "rules"] = Field(
        default="prefix",
        alias="replication.policy",
        description="How mirrors are named. `prefix`: `orders` of `sf` becomes `sf.orders`. `identity`: the "
        "name stays. `rules`: by `replication.policy.rules`.",
    )
    rules: list[RuleModel] = Field(
        default=[],
        alias="replication.policy.rules",
        description="The naming rules for `replication.policy: rules`. The first rule that matches counts. "
        "Causeway refuses a topic that no rule matches.",
    )
    separator: Annotated[str, Field(max_length=10), AfterValidator(_separator), _SEPARATOR] = Field(
        default=".",
        alias="replication.policy.separator",
        description="The text between the source's alias and the topic's name. Only for "
        "`replication.policy: prefix`.",
    )
    # MirrorMaker 2 creates topics with 2 replicas whatever the target's owner chose. -1 (its word too) is
    # the target's own default, and ours: a mirror must not weaken what it lands on.
    replication_factor: Annotated[int | Literal["source"], PlainValidator(_factor), _FACTOR] = Field(
        default=-1,
        alias="replication.factor",
        description="The replicas of topics that Causeway creates on the target. `-1` is the target's own "
        "default; `source` is as many as the source topic has.",
    )
    config_exclude: list[Pattern] = Field(
        default=list(DEFAULT_CONFIG_EXCLUDE),
        alias="config.properties.exclude",
        description="Topic settings that Causeway does not copy to mirrors.",
    )
    sync_settings: bool = Field(
        default=True,
        alias="sync.topic.configs.enabled",
        description="Makes the settings of mirrors equal to those of their source topics, after each copy of "
        "the DAG.",
    )
    use_defaults_from: Literal["target", "source"] = Field(
        default="target",
        alias="use.defaults.from",
        description="For settings that are at their default on the source. `target`: the mirror has the "
        "target's default. `source`: the mirror gets the source's default.",
    )
    # MirrorMaker 2 has both of these on. ACLs need the right to alter the whole target, and heartbeats one to
    # write on the source: here somebody has to ask for them.
    sync_acls: bool = Field(
        default=False,
        alias="sync.topic.acls.enabled",
        description="**Needs the right to alter the whole target cluster.** Copies ACLs of source topics to "
        "their mirrors: those that let users read, and those that deny.",
    )
    emit_heartbeats: bool = Field(
        default=False,
        alias="emit.heartbeats.enabled",
        description="**Writes to the source.** Causeway appends heartbeats to the topic `heartbeats` of the "
        "source.",
    )
    mirror_heartbeats: bool | None = Field(
        default=None,
        alias="heartbeats.replication.enabled",
        description="Mirrors topics of heartbeats, whatever `topics` says. Without this key, the value of "
        "`emit.heartbeats.enabled` counts.",
    )
    start: Annotated[Start, BeforeValidator(_parse_start), _START] = Field(
        default=Start("earliest"),
        description="Where a partition begins that the flow has never mirrored.",
    )
    lanes: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=16,
        description="How many lanes copy side by side. Each lane is a Spark task with its own transactional "
        "id. The number may change between runs.",
    )
    transaction_bytes: Annotated[SizeBytes, Field(ge=64 << 10, le=1 << 30)] = Field(
        default=16 << 20,
        alias="transaction.max.bytes",
        description="A transaction on the target ends after about this many bytes. Larger: fewer commits. "
        "Smaller: less to repeat after a crash.",
    )
    # The transaction times out on the broker after a minute: half of it is left for a slow commit.
    transaction_seconds: Annotated[DurationSeconds, Field(ge=0.1, le=30)] = Field(
        default=5.0,
        alias="transaction.max.time",
        description="A transaction on the target ends after about this time. Then `read_committed` readers "
        "see its records.",
    )
    settle: bool = Field(
        default=False,
        description="With `true`, Causeway keeps what a dead worker left open, after comparing it with the "
        "source. Default readers then see no repeats. Not together with `on_refused: quarantine`.",
    )
    on_refused: Literal["park", "raise_limit", "quarantine"] = Field(
        default=RefusedPolicy.PARK.value,
        description="What Causeway does with a record that the target refuses. `park` stops its partition. "
        "`raise_limit` raises the limit of the mirror. `quarantine` puts the record into a topic of its own.",
    )
    schedule: Annotated[str, AfterValidator(_schedule), _SCHEDULE] | None = Field(
        default=None,
        description="When Airflow starts a run. Without this key, operators start runs by hand.",
    )
    follow: bool = Field(
        default=False,
        description='`true` means the same as `schedule: "@continuous"`: a run begins when the last one has '
        "ended.",
    )
    run_for: Annotated[DurationSeconds, Field(ge=1, le=86_400)] | None = Field(
        default=None,
        description="How long a run follows the source. Without this key, a run ends once it has copied what "
        "the source held at its start.",
    )
    pool: Annotated[str, Field(min_length=1, max_length=250)] = Field(
        default="default_pool", description="The Airflow pool in which the flow's tasks take a slot."
    )
    retries: Annotated[int, Field(ge=0, le=100)] = Field(
        default=2, description="How often Airflow tries a failed task again."
    )
    retry_delay: Annotated[DurationSeconds, Field(ge=1, le=86_400)] = Field(
        default=30.0, description="How long Airflow waits before it tries a failed task again."
    )


class FileModel(_Strict):
    clusters: dict[str, ClusterModel] = Field(
        min_length=1,
        description="The clusters by alias, 1 to 60 letters, digits, `_` and `-`. With `prefix` naming the "
        "alias is part of every mirror's name.",
    )
    flows: dict[str, FlowModel] = Field(
        min_length=1,
        description="The flows by name, 1 to 60 of `a-z`, `0-9`, `_`. **A renamed flow is another flow and "
        "has no positions: `causeway reconcile` finds them.**",
    )


def known_keys(model: type[BaseModel]) -> frozenset[str]:
    return frozenset(field.alias or name for name, field in model.model_fields.items())
