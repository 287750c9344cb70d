"""Why an offset has no counterpart."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from causeway.core.kernel.identity import SourceOffset, TargetOffset


@dataclass(frozen=True, slots=True)
class NeverMirrored:
    """No record of the partition, and no position: the flow hasn't begun with it."""

    reason = "never mirrored"

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True, slots=True)
class OlderThanMap:
    """Before the start of the map: the mirror began later, or the target's retention has taken it."""

    source_begins: SourceOffset
    target_begins: TargetOffset
    reason = "older than the map"

    def __str__(self) -> str:
        return f"{self.reason}, which begins with {self.source_begins} -> {self.target_begins}"


@dataclass(frozen=True, slots=True)
class AheadOfMirror:
    """After what is mirrored so far: later there is an answer."""

    source_next: SourceOffset
    target_next: TargetOffset
    reason = "ahead of the mirror"

    def __str__(self) -> str:
        return f"{self.reason}, which ends with {self.source_next} -> {self.target_next}"


@dataclass(frozen=True, slots=True)
class OtherGeneration:
    """What was mirrored belongs to a topic that has been recreated since, on either side."""

    source_topic_id: UUID
    target_topic_id: UUID
    reason = "other generation"

    def __str__(self) -> str:
        return f"{self.reason}: the map knows topic ids {self.source_topic_id} -> {self.target_topic_id}"


@dataclass(frozen=True, slots=True)
class NotInFlow:
    """The flow has never written a mirror of this topic."""

    topic: str
    reason = "topic not in the flow"

    def __str__(self) -> str:
        return self.reason


WhyNot = NeverMirrored | OlderThanMap | AheadOfMirror | OtherGeneration | NotInFlow
