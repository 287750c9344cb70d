"""The shape of flows.yaml: which keys there are, their types, their defaults and rules.

MirrorMaker 2's words and defaults where it has them. Unknown keys are refused; validators raise Refusal,
and `load` puts file and line in front.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator

from causeway.config.refusal import Refusal
from causeway.config.schedule import check_schedule
from causeway.config.units import parse_duration_seconds, parse_instant_ms, parse_size_bytes
from causeway.core.flow import RefusedPolicy, Start
from causeway.core.naming import is_internal, is_legal
from causeway.core.pattern import compiled
from causeway.core.pattern_list import is_name
from causeway.core.pattern_syntax import PatternError
from causeway.core.topic_filter import DEFAULT_GROUPS_EXCLUDE, DEFAULT_TOPICS_EXCLUDE

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


def _start(value: object) -> Start:
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


Pattern = Annotated[str, AfterValidator(_pattern)]
TopicPattern = Annotated[str, AfterValidator(_pattern), AfterValidator(_crossing)]
DurationSeconds = Annotated[float, BeforeValidator(parse_duration_seconds)]
SizeBytes = Annotated[int, BeforeValidator(parse_size_bytes)]
ConnectionId = Annotated[str, Field(max_length=200), AfterValidator(_connection)]


class _Strict(BaseModel):
    """No key that we don't know, no type that merely looks like the right one."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, arbitrary_types_allowed=True)


class ClusterModel(_Strict):
    connection: ConnectionId
    insecure: bool = False


class RuleModel(_Strict):
    pattern: Pattern = Field(alias="from")
    to: Annotated[str, Field(min_length=1, max_length=300)]


class FlowModel(_Strict):
    source: str
    target: str
    topics: list[TopicPattern] = Field(default=[".*"], min_length=1)
    topics_exclude: list[Pattern] = Field(default=list(DEFAULT_TOPICS_EXCLUDE), alias="topics.exclude")
    # The way back of another flow, under the same names: see core/opposite.py.
    failback_of: str | None = None
    groups: list[Pattern] = [".*"]
    groups_exclude: list[Pattern] = Field(default=list(DEFAULT_GROUPS_EXCLUDE), alias="groups.exclude")
    sync_group_offsets: bool = Field(default=False, alias="sync.group.offsets.enabled")
    follow_rewinds: bool = False
    emit_checkpoints: bool = Field(default=True, alias="emit.checkpoints.enabled")
    emit_offset_syncs: bool = Field(default=True, alias="emit.offset-syncs.enabled")
    policy: Literal["prefix", "identity", "rules"] = Field(default="prefix", alias="replication.policy")
    rules: list[RuleModel] = Field(default=[], alias="replication.policy.rules")
    separator: Annotated[str, Field(max_length=10), AfterValidator(_separator)] = Field(
        default=".", alias="replication.policy.separator"
    )
    # MirrorMaker 2 creates topics with 2 replicas whatever the target's owner chose. -1 (its word too) is
    # the target's own default, and ours: a mirror must not weaken what it lands on.
    replication_factor: Annotated[int | Literal["source"], PlainValidator(_factor)] = Field(
        default=-1, alias="replication.factor"
    )
    config_exclude: list[Pattern] = Field(
        default=list(DEFAULT_CONFIG_EXCLUDE), alias="config.properties.exclude"
    )
    sync_settings: bool = Field(default=True, alias="sync.topic.configs.enabled")
    use_defaults_from: Literal["target", "source"] = Field(default="target", alias="use.defaults.from")
    # MirrorMaker 2 has both of these on. ACLs need the right to alter the whole target, and heartbeats one to
    # write on the source: here somebody has to ask for them.
    sync_acls: bool = Field(default=False, alias="sync.topic.acls.enabled")
    emit_heartbeats: bool = Field(default=False, alias="emit.heartbeats.enabled")
    mirror_heartbeats: bool | None = Field(default=None, alias="heartbeats.replication.enabled")
    start: Annotated[Start, BeforeValidator(_start)] = Start("earliest")
    lanes: Annotated[int, Field(ge=1, le=1000)] = 16
    transaction_bytes: Annotated[SizeBytes, Field(ge=64 << 10, le=1 << 30)] = Field(
        default=16 << 20, alias="transaction.max.bytes"
    )
    # The transaction times out on the broker after a minute: half of it is left for a slow commit.
    transaction_seconds: Annotated[DurationSeconds, Field(ge=0.1, le=30)] = Field(
        default=5.0, alias="transaction.max.time"
    )
    settle: bool = False
    on_refused: Literal["park", "raise_limit", "quarantine"] = RefusedPolicy.PARK.value
    schedule: Annotated[str, AfterValidator(_schedule)] | None = None
    follow: bool = False
    run_for: Annotated[DurationSeconds, Field(ge=1, le=86_400)] | None = None
    pool: Annotated[str, Field(min_length=1, max_length=250)] = "default_pool"
    retries: Annotated[int, Field(ge=0, le=100)] = 2
    retry_delay: Annotated[DurationSeconds, Field(ge=1, le=86_400)] = 30.0


class FileModel(_Strict):
    clusters: dict[str, ClusterModel] = Field(min_length=1)
    flows: dict[str, FlowModel] = Field(min_length=1)


def known_keys(model: type[BaseModel]) -> frozenset[str]:
    return frozenset(field.alias or name for name, field in model.model_fields.items())
