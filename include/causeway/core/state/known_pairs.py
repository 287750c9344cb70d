"""Pairs of topics that a flow has begun with: what its state keeps of them, what two records add up to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from causeway.core.kernel.json_fields import list_of, whole_number


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownPair:
    """A target topic that this flow has written, with the topics' ids at that time."""

    source_topic: str
    source_topic_id: UUID
    target_topic_id: UUID
    partitions: int
    adopted_at: int = -1
    """Generation of the last adoption of one of its partitions; -1: none."""
    adopted: Mapping[int, int] = field(default_factory=dict)
    """Generations of the last adoptions, by partition, of those that name their partitions."""
    all_adopted_at: int = -1
    """Generation of the last adoption that doesn't: it counts for each."""
    not_begun: frozenset[int] = frozenset()
    """Partitions whose start couldn't be asked when the flow began with their siblings: each begins once its
    start is written down, or a person sets it."""
    source_emptied: bool = False
    """The source was emptied, to be filled again from the target: what this flow wrote there may go back.
    Until the next adoption."""

    @property
    def ids(self) -> tuple[UUID, UUID]:
        return self.source_topic_id, self.target_topic_id

    def adopted_at_of(self, partition: int) -> int:
        """Generation of the partition's last adoption; -1: none. What the offset map knows of earlier times
        says nothing about where to go on."""
        return max(self.adopted.get(partition, -1), self.all_adopted_at)

    def has_begun(self, partition: int, *, has_start: bool) -> bool:
        """False: no lane has ever had it. It came later, or nobody could say yet where it begins."""
        if partition not in self.not_begun:
            return partition < self.partitions
        return has_start or self.adopted_at_of(partition) >= 0


def after(before: KnownPair, pair: KnownPair, *, is_adoption: bool) -> KnownPair:
    """What is known of a target topic once `pair` is read, which a run or a person wrote.

    A run's record changes nothing that an operator set; nor does an adoption of other topics that comes late.
    """
    if pair.ids == before.ids:  # a run that was superseded may come late, with less than is known by now
        not_begun = before.not_begun if is_adoption else before.not_begun & pair.not_begun
        new = frozenset(n for n in pair.not_begun if n >= before.partitions)
        pair = replace(pair, not_begun=not_begun | new, partitions=max(pair.partitions, before.partitions))
    if before.adopted_at < 0:
        return pair
    is_late = pair.adopted_at < before.adopted_at
    if pair.ids != before.ids:
        return before if is_late or not is_adoption else pair
    newest = {n: max(before.adopted.get(n, -1), at) for n, at in pair.adopted.items()}
    return replace(
        before if is_late else pair,
        partitions=pair.partitions,
        adopted_at=max(pair.adopted_at, before.adopted_at),
        adopted={**before.adopted, **newest},
        all_adopted_at=max(before.all_adopted_at, pair.all_adopted_at),
        source_emptied=(pair if is_adoption and not is_late else before).source_emptied,
    )


def parse_pair(value: Mapping[str, object], *, is_adoption: bool) -> KnownPair:
    """:raises KeyError: | :raises ValueError: it isn't one."""
    adopted_at, named = whole_number(value.get("adopted_at", -1)), value.get("adopted")
    partitions = named if isinstance(named, list) else []
    return KnownPair(
        source_topic=str(value["source_topic"]),
        source_topic_id=UUID(str(value["source_id"])),
        target_topic_id=UUID(str(value["target_id"])),
        partitions=whole_number(value["partitions"]),
        adopted_at=adopted_at,
        adopted={whole_number(number): adopted_at for number in partitions},
        all_adopted_at=adopted_at if is_adoption and named is None else -1,
        not_begun=frozenset(map(whole_number, list_of(value.get("not_begun", [])))),
        source_emptied=bool(value.get("source_emptied", False)),
    )


def pair_value(target_topic: str, pair: KnownPair) -> dict[str, object]:
    said: dict[str, object] = {
        "target_topic": target_topic,
        "source_topic": pair.source_topic,
        "source_id": str(pair.source_topic_id),
        "target_id": str(pair.target_topic_id),
        "partitions": pair.partitions,
        "adopted_at": pair.adopted_at,
    }
    if pair.not_begun:
        said["not_begun"] = sorted(pair.not_begun)
    return {**said, "source_emptied": True} if pair.source_emptied else said
