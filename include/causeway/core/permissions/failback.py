"""The rights that a failback needs besides those of a failover and of its flows."""

from __future__ import annotations

from collections.abc import Iterable

from causeway.core.failback.divergence import export_prefix
from causeway.core.kernel.acl_vocabulary import NeededRight, Operation, needed_right


def failback_rights(topics: Iterable[str], compacted: Iterable[str]) -> tuple[NeededRight, ...]:
    """Of the flow that was failed over, with its topics, which have one name on both sides; besides what a
    failover needs. Of some the policy is `compact` on the source."""
    names = sorted(topics)
    return (*export_rights(names), *emptying_rights(names), *widening_rights(sorted(compacted)))


def export_rights(topics: Iterable[str]) -> tuple[NeededRight, ...]:
    uses = (
        (Operation.CREATE, "make the topic of what never crossed"),
        (Operation.WRITE, "export what never crossed"),
        (Operation.READ, "compare the export"),
    )
    return tuple(
        needed_right("target", "topic", export_prefix(topic), operation, why, is_prefix=True)
        for topic in topics
        for operation, why in uses
    )


def emptying_rights(topics: Iterable[str]) -> tuple[NeededRight, ...]:
    """Of a rebuild only, as what follows."""
    uses = (
        (Operation.DELETE, "delete its records, up to where they were exported"),
        (Operation.DESCRIBE_CONFIGS, "see whether it is compacted"),
    )
    return tuple(
        needed_right("source", "topic", topic, operation, why) for topic in topics for operation, why in uses
    )


def widening_rights(compacted: Iterable[str]) -> tuple[NeededRight, ...]:
    why = "let a compacted topic be emptied, and make its policy what it was"
    return tuple(needed_right("source", "topic", topic, Operation.ALTER_CONFIGS, why) for topic in compacted)
