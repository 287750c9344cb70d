"""What a source topic is called on the target."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

FLOWS_TOPIC = "causeway-flows.internal"
_LEGAL = re.compile(r"[a-zA-Z0-9._-]{1,249}")


class NamingPolicy(Protocol):
    def target_topic(self, source_topic: str) -> str:
        """The name on the target."""
        ...

    def comes_from(self, topic: str, alias: str) -> bool:
        """Whether a topic of the source mirrors the cluster `alias`: copying it there would be a cycle."""
        ...


@dataclass(frozen=True, slots=True)
class PrefixNaming:
    """MirrorMaker 2's DefaultReplicationPolicy: `orders` of `sf` becomes `sf.orders`."""

    source_alias: str
    separator: str = "."

    def target_topic(self, source_topic: str) -> str:
        return f"{self.source_alias}{self.separator}{source_topic}"

    def comes_from(self, topic: str, alias: str) -> bool:
        """True if any of the prefixes is the alias: cycles of any length."""
        return alias in topic.split(self.separator)[:-1]


@dataclass(frozen=True, slots=True)
class IdentityNaming:
    """Names stay as they are; a pair of flows in both directions must not share topics."""

    def target_topic(self, source_topic: str) -> str:
        return source_topic

    def comes_from(self, topic: str, alias: str) -> bool:
        return False


def is_internal(topic: str) -> bool:
    """Names that never cross, whatever the filter says: Kafka's own, Connect's, MirrorMaker 2's and ours."""
    return topic.startswith(("__", ".")) or topic.endswith(("-internal", ".internal"))


def is_legal(topic: str) -> bool:
    return bool(_LEGAL.fullmatch(topic)) and topic not in {".", ".."}
