"""One rule of an authorizer about topics."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

ANY_TOPIC = "*"
_BEHIND_ALL_NAMES = "\x7f"  # of topics: they have letters, digits, '.', '_' and '-'


@dataclass(frozen=True, slots=True, order=True)
class Acl:
    """One rule of an authorizer about topics, in the words of `kafka-acls.sh`."""

    topic: str
    pattern: Literal["literal", "prefixed"]
    principal: str
    host: str
    operation: str
    permission: Literal["Allow", "Deny"]

    def __str__(self) -> str:
        host = "" if self.host == "*" else f" from {self.host}"
        named = f"{self.topic}*" if self.pattern == "prefixed" else self.topic
        return f"{self.permission} {self.principal}{host} to {self.operation} {named}"

    def covered(self, topics: Sequence[str]) -> Sequence[str]:
        """Those of these sorted names that it is about."""
        first = bisect_left(topics, self.topic)
        if self.pattern == "prefixed":
            return topics[first : bisect_left(topics, f"{self.topic}{_BEHIND_ALL_NAMES}")]
        if self.topic == ANY_TOPIC:
            return topics
        return [self.topic] if first < len(topics) and topics[first] == self.topic else []
