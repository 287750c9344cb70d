"""One flow of MirrorMaker 2's file: its entries for flows.yaml, and what taking over needs besides."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from causeway.config.mm2_import.properties_file import PropertiesFile, Property
from causeway.config.values.refusal import Refusal
from causeway.core.kernel.errors import ConfigError
from causeway.core.model.naming import is_internal, is_legal, offset_syncs_topic
from causeway.core.model.pattern import compiled
from causeway.core.model.pattern_syntax import PatternError
from causeway.core.takeover.mm2_mirror import MirrorMakerPlaces

Entry = bool | int | str | list[str]
_IDENTITY = frozenset(
    {
        "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
        "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy",
    }
)
_PREFIX = "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"
_BOOLEANS = (
    "sync.topic.configs.enabled",
    "sync.topic.acls.enabled",
    "sync.group.offsets.enabled",
    "emit.checkpoints.enabled",
    "heartbeats.replication.enabled",
    "emit.offset-syncs.enabled",
)
_LISTS = (
    ("topics", "topics"),
    ("topics.exclude", "topics.exclude"),
    ("topics.blacklist", "topics.exclude"),
    ("groups", "groups"),
    ("groups.exclude", "groups.exclude"),
    ("groups.blacklist", "groups.exclude"),
    ("config.properties.exclude", "config.properties.exclude"),
    ("config.properties.blacklist", "config.properties.exclude"),
)
_CONNECTOR = "MirrorSourceConnector"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mm2Flow:
    name: str
    source: str
    target: str
    places: MirrorMakerPlaces
    entries: dict[str, Entry] = field(default_factory=dict)
    taken: tuple[tuple[Property, str], ...] = ()


def flow_entries(file: PropertiesFile, source: str, target: str) -> Mm2Flow:
    """:raises ConfigError: a value that flows.yaml couldn't say."""
    reading = _Flow(file, source, target)
    reading.read()
    return Mm2Flow(
        name=reading.name,
        source=source,
        target=target,
        places=reading.places(),
        entries=reading.entries,
        taken=tuple(reading.taken),
    )


def boolean_of(found: Property) -> bool:
    """:raises Refusal: neither true nor false; MirrorMaker 2 takes some of those for false."""
    text = found.value.strip().lower()
    if text not in ("true", "false"):
        raise Refusal("must be true or false", "write one of the two")
    return text == "true"


class _Flow:
    def __init__(self, file: PropertiesFile, source: str, target: str) -> None:
        self._file, self._source, self._target = file, source, target
        plain = re.sub(r"[^a-z0-9_]+", "_", f"{source}_to_{target}".lower())
        self.name = plain[:60]
        self.entries: dict[str, Entry] = {}
        self.taken: list[tuple[Property, str]] = []

    def read(self) -> None:
        for key, entry in _LISTS:
            self._take_key(key, entry, self._patterns)
        self._take_naming()
        self._take_key("replication.factor", "replication.factor", self._parse_replication_factor)
        for key in _BOOLEANS:
            self._take_key(key, key, self._boolean)
        self._take_key("use.defaults.from", "use.defaults.from", self._default_from)
        self._take_heartbeats()
        self._take_start()

    def places(self) -> MirrorMakerPlaces:
        separator = self._value("replication.policy.separator", ".")
        if self._value("replication.policy.internal.topic.separator.enabled", "true").lower() == "false":
            separator = "."
        on_source = self._value("offset-syncs.topic.location", "source") != "target"
        named = self._file.properties
        offsets = self._found("offsets.storage.topic") or self._of_worker("offset.storage.topic")
        group = self._of_worker("group.id")
        connector = self._found("name")
        isolation = self._of_consumer("isolation.level")
        altering = next((key for key in named if re.match(rf"({self._arrow}\.)?transforms\s*$", key)), "")
        return MirrorMakerPlaces(
            connector=connector.value.strip() if connector else _CONNECTOR,
            offsets_topic=offsets.value.strip() if offsets else f"mm2-offsets.{self._source}.internal",
            syncs_topic=offset_syncs_topic(self._target if on_source else self._source, separator),
            syncs_on_source=on_source,
            group=group.value.strip() if group else f"{self._source}-mm2",
            is_isolated=isolation is not None and isolation.value.strip().lower() == "read_committed",
            altering=altering if altering and named[altering].value.strip() else "",
        )

    # what counts, of what is written in several places

    @property
    def _arrow(self) -> str:
        return re.escape(f"{self._source}->{self._target}")

    def _found(self, key: str) -> Property | None:
        said = self._file.properties
        return said.get(f"{self._source}->{self._target}.{key}") or said.get(key)

    def _value(self, key: str, default: str) -> str:
        found = self._found(key)
        return default if found is None else found.value.strip()

    def _of_worker(self, key: str) -> Property | None:
        """What the workers read of a flow into this target; of all that is common, only their storage."""
        said = self._file.properties
        common = said.get(key) if key.startswith("offset.storage") else None
        return said.get(f"{self._target}.{key}") or common

    def _of_consumer(self, key: str) -> Property | None:
        said, flow = self._file.properties, f"{self._source}->{self._target}"
        places = (f"{flow}.source.consumer.{key}", f"{self._source}.consumer.{key}", f"{flow}.consumer.{key}")
        return next((said[place] for place in places if place in said), None)

    # the entries

    def _take_key(self, key: str, entry: str, parse: Callable[[Property], Entry]) -> None:
        found = self._found(key)
        if found is not None and entry not in self.entries:
            self._enter(found, entry, parse)

    def _enter(self, found: Property, entry: str, parse: Callable[[Property], Entry]) -> None:
        try:
            self.entries[entry] = parse(found)
        except Refusal as refusal:
            raise ConfigError(
                self._file.place(found), value=found.value[:200], rule=refusal.rule, remedy=refusal.remedy
            ) from None
        self.taken.append((found, f"{entry} of flow {self.name}"))

    def _patterns(self, found: Property) -> list[str]:
        patterns = [each.strip() for each in found.value.split(",") if each.strip()]
        is_topics = found.key.endswith("topics")
        if is_topics and not patterns:
            raise Refusal("matches nothing", "name the topics, or write enabled = false")
        for each in patterns:
            try:
                compiled(each)
            except PatternError as reason:
                raise Refusal(f"{each[:80]}: {reason.rule}", reason.remedy) from None
            if is_topics and is_legal(each) and is_internal(each):
                raise Refusal(f"{each[:80]} is an internal topic, and those never cross", "remove it")
        return patterns

    def _boolean(self, found: Property) -> bool:
        return boolean_of(found)

    def _parse_replication_factor(self, found: Property) -> int:
        text = found.value.strip()
        if not re.fullmatch(r"-1|[1-9][0-9]{0,4}", text, re.ASCII):
            raise Refusal("must be 1 to 32767, or -1 for the target's own default", "write -1")
        return int(text)

    def _default_from(self, found: Property) -> str:
        text = found.value.strip()
        if text not in ("source", "target"):
            raise Refusal("must be source or target", "write target")
        return text

    def _take_naming(self) -> None:
        self._take_key("replication.policy.class", "replication.policy", self._policy)
        separator = self._found("replication.policy.separator")
        if separator is not None and self.entries.get("replication.policy") == "identity":
            self.taken.append((separator, "says where --adopt finds MirrorMaker's offset syncs"))
        else:
            self._take_key(
                "replication.policy.separator", "replication.policy.separator", lambda f: f.value.strip()
            )

    def _policy(self, found: Property) -> str:
        name = found.value.strip()
        if name in _IDENTITY:
            return "identity"
        if name != _PREFIX:
            raise Refusal(
                "is a class of your own, and what it calls a mirror can't be known",
                "write the flow by hand: replication.policy: rules says names by patterns",
            )
        return "prefix"

    def _take_heartbeats(self) -> None:
        """MirrorMaker's flow back writes the heartbeats that this one carries."""
        said = self._file.properties
        back = f"{self._target}->{self._source}.emit.heartbeats.enabled"
        found = said.get(back) or said.get("emit.heartbeats.enabled")
        if found is not None:
            self._enter(found, "emit.heartbeats.enabled", self._boolean)

    def _take_start(self) -> None:
        found = self._of_consumer("auto.offset.reset")
        if found is not None:
            self._enter(found, "start", self._parse_start)

    def _parse_start(self, found: Property) -> str:
        text = found.value.strip().lower()
        if text not in ("earliest", "latest"):
            rule = "must be earliest or latest: a partition has to begin somewhere"
            raise Refusal(rule, "write earliest, which is MirrorMaker 2's default")
        return text
