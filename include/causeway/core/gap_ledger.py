"""The ledger of accepted gaps: what a person has decided to do without, kept for good in the flow's state.

One entry for each range of each partition, so accepting the same gap twice is one entry. A topic that was
made anew has another id, and a ledger of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from causeway.core.gaps import Gap, GapKind
from causeway.core.identity import TopicPartition


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
    partition = _int(value["partition"])
    return AcceptedGap(
        gap=Gap(
            kind=GapKind[str(value["kind"]).upper()],
            source=TopicPartition(str(value["source_topic"]), partition),
            first=_int(value["first"]),
            end=_int(value["end"]),
            log_start=_int(value["log_start"]),
        ),
        target=TopicPartition(str(value["target_topic"]), partition),
        source_topic_id=UUID(str(value["source_id"])),
        by=str(value["by"]),
        because=str(value["because"]),
        at_ms=_int(value["at_ms"]),
    )


def _int(value: object) -> int:
    if type(value) is not int:  # a bool is an int to Python, not to us
        raise ValueError(f"{value!r} isn't a number")
    return value
