"""What a source topic is called on the target."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from causeway.core.kernel.errors import UnknownName
from causeway.core.model.pattern_groups import capturer

FLOWS_TOPIC = "causeway-flows.internal"
HEARTBEATS_TOPIC = "heartbeats"
_LEGAL = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_REFERENCE = re.compile(r"\$(?:([0-9])|\{([0-9]{1,2})\})", re.ASCII)
_MIRROR_MAKERS = re.compile(r".*([._-]+)checkpoints\1internal|mm2.*[._-]internal")
EXPORT_MARK = ".diverged."
_EXPORT = re.compile(rf".+{re.escape(EXPORT_MARK)}[0-9]{{8}}T[0-9]{{6}}Z", re.DOTALL)


class NamingPolicy(Protocol):
    def covers(self, source_topic: str) -> bool:
        """Whether it has a name for this topic."""
        ...

    def target_topic(self, source_topic: str) -> str:
        """The name on the target, of a topic that is covered."""
        ...

    def comes_from(self, topic: str, alias: str) -> bool:
        """Whether a topic of the source mirrors the cluster `alias`: copying it there would be a cycle."""
        ...


@dataclass(frozen=True, slots=True)
class PrefixNaming:
    """MirrorMaker 2's DefaultReplicationPolicy: `orders` of `sf` becomes `sf.orders`."""

    source_alias: str
    separator: str = "."

    def covers(self, source_topic: str) -> bool:
        return True

    def target_topic(self, source_topic: str) -> str:
        return f"{self.source_alias}{self.separator}{source_topic}"

    def comes_from(self, topic: str, alias: str) -> bool:
        """True if any of the prefixes is the alias: cycles of any length."""
        return alias in topic.split(self.separator)[:-1]


@dataclass(frozen=True, slots=True)
class IdentityNaming:
    """Names stay as they are; a pair of flows in both directions must not share topics.

    Heartbeats get a prefix all the same, as MirrorMaker 2 gives them one: their way is in their name.
    """

    source_alias: str = ""

    def covers(self, source_topic: str) -> bool:
        return True

    def target_topic(self, source_topic: str) -> str:
        return _with_way(self.source_alias, source_topic) or source_topic

    def comes_from(self, topic: str, alias: str) -> bool:
        return _came_by(topic, alias)


@dataclass(frozen=True, slots=True)
class NamingRule:
    """A topic that `pattern` matches as a whole is called `to`, with `$1` for what the first group holds.

    `$0` is the whole name; of two digits and more, `${10}`.
    """

    pattern: str
    to: str

    def named(self, topic: str) -> str | None:
        """The new name; None: the rule says nothing of this topic."""
        groups = capturer(self.pattern).groups_of(topic)
        return None if groups is None else _REFERENCE.sub(lambda found: groups[_group_number(found)], self.to)

    @property
    def references(self) -> tuple[int, ...]:
        return tuple(_group_number(found) for found in _REFERENCE.finditer(self.to))

    @property
    def own_text(self) -> str:
        """What of `to` stands in every name that it makes."""
        return _REFERENCE.sub("", self.to)

    def could_make(self, topic: str) -> bool:
        """Whether some topic might get this name: its own text is there, in that order."""
        shape = ".*".join(re.escape(part) for part in _REFERENCE.sub("\0", self.to).split("\0"))
        return bool(re.fullmatch(shape, topic))


@dataclass(frozen=True, slots=True)
class RuleNaming:
    """Mapping rules: the first one that matches names the topic.

    Names tell nothing of where a record came from; a cycle of flows must not share topics. Heartbeats
    are named as with IdentityNaming.
    """

    rules: tuple[NamingRule, ...]
    source_alias: str = ""

    def covers(self, source_topic: str) -> bool:
        return self._target_name(source_topic) is not None

    def target_topic(self, source_topic: str) -> str:
        """:raises UnknownName: no rule names it."""
        name = self._target_name(source_topic)
        if name is None:
            raise UnknownName("topic", value=source_topic, rule=NO_RULE, remedy=ADD_A_RULE)
        return name

    def comes_from(self, topic: str, alias: str) -> bool:
        return _came_by(topic, alias)

    def _target_name(self, topic: str) -> str | None:
        return _with_way(self.source_alias, topic) or _by_rule(self.rules, topic)


NO_RULE = "no rule of replication.policy.rules gives it a name on the target"
ADD_A_RULE = 'add a rule, at the end {from: ".*", to: "$0"} for names that stay, or exclude it'


@lru_cache(maxsize=65_536)
def _by_rule(rules: tuple[NamingRule, ...], topic: str) -> str | None:
    """Remembered, because every round asks the same question of every topic of the source."""
    return next((name for rule in rules if (name := rule.named(topic)) is not None), None)


def _with_way(alias: str, topic: str) -> str:
    return f"{alias}.{topic}" if alias and is_heartbeats(topic) else ""


def _came_by(topic: str, alias: str) -> bool:
    return is_heartbeats(topic) and alias in topic.split(".")[:-1]


def _group_number(reference: re.Match[str]) -> int:
    return int(reference[1] or reference[2])


def is_heartbeats(topic: str, separator: str = ".") -> bool:
    """Whether these are heartbeats, of this cluster or mirrored ones."""
    return topic == HEARTBEATS_TOPIC or topic.endswith(f"{separator}{HEARTBEATS_TOPIC}")


def way_of(topic: str, separator: str = ".") -> list[str]:
    """By which clusters these heartbeats came, the last one first; empty: by none, or no heartbeats."""
    if topic == HEARTBEATS_TOPIC or not is_heartbeats(topic, separator):
        return []
    return topic.removesuffix(f"{separator}{HEARTBEATS_TOPIC}").split(separator)


def is_internal(topic: str) -> bool:
    """Names that never cross, whatever the filter says: Kafka's own, Connect's, MirrorMaker 2's and ours.

    MirrorMaker 2's with every separator: other flows than this one may have written them.
    """
    if topic.startswith(("__", ".")) or topic.endswith(("-internal", ".internal")):
        return True
    return bool(_MIRROR_MAKERS.fullmatch(topic))


def is_export(topic: str) -> bool:
    """Whether a failback made it for records that never crossed, or it is a mirror of such a topic.

    Its records belong to people. Mirrored by a pattern, they would reach consumers as if they were new.
    """
    return bool(_EXPORT.fullmatch(topic))


def is_legal(topic: str) -> bool:
    return bool(_LEGAL.fullmatch(topic)) and topic not in {".", ".."}


def checkpoints_topic(source_alias: str, separator: str = ".") -> str:
    return f"{source_alias}{separator}checkpoints{separator}internal"


def offset_syncs_topic(source_alias: str, separator: str = ".") -> str:
    """As MirrorMaker 2 calls it where `offset-syncs.topic.location = target`."""
    return f"mm2-offset-syncs{separator}{source_alias}{separator}internal"


SCRATCH_PREFIX = "causeway-doctor."
