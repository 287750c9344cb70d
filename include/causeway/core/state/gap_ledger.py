"""The ledger of accepted gaps: what a person has decided to do without, kept permanently in the flow's state.

One entry for each range of each partition, so accepting the same gap twice is one entry. A topic that was
recreated has another id, and a ledger of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.json_fields import whole_number
from causeway.core.state.gaps import Gap, GapKind


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedGap:
    gap: Gap
    target: TopicPartition
    source_topic_id: UUID
    by: str
    because: str
    at_ms: int

    @property
    def name(self) -> str:
        """What no other entry of the flow has."""
        gap = self.gap
        return f"{self.target.topic}/{self.target.partition}/{self.source_topic_id.hex}/{gap.first}-{gap.end}"

    def as_dict(self) -> dict[str, object]:
        gap = self.gap
        return {
            "kind": gap.kind.name.lower(),
            "source_topic": gap.source.topic,
            "partition": gap.source.partition,
            "target_topic": self.target.topic,
            "first": gap.first,
            "end": gap.end,
            "log_start": gap.log_start,
            "source_id": str(self.source_topic_id),
            "by": self.by,
            "because": self.because,
            "at_ms": self.at_ms,
        }


def parse_accepted(value: dict[str, object]) -> AcceptedGap:
    """:raises KeyError: | :raises ValueError: it isn't one."""
    partition = whole_number(value["partition"])
    return AcceptedGap(
        gap=Gap(
            kind=GapKind[str(value["kind"]).upper()],
            source=TopicPartition(str(value["source_topic"]), partition),
            first=whole_number(value["first"]),
            end=whole_number(value["end"]),
            log_start=whole_number(value["log_start"]),
        ),
        target=TopicPartition(str(value["target_topic"]), partition),
        source_topic_id=UUID(str(value["source_id"])),
        by=str(value["by"]),
        because=str(value["because"]),
        at_ms=whole_number(value["at_ms"]),
    )
