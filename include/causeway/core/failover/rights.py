"""The rights that a failover, a drill and a failback need besides those of their flows: the one list of them.

In the words of `core/rights.py`. What is asked before anything is written, what doctor judges and what
docs/rights.md shows comes from here. Each list is in the view of one flow; to go home is a failover of the
flow that leads back.
"""

from __future__ import annotations

from collections.abc import Iterable

from causeway.core.failback.plan import export_prefix
from causeway.core.failover.drill import clones_of
from causeway.core.failover.journal_format import FAILOVERS_TOPIC
from causeway.core.flow import Flow
from causeway.core.naming import FLOWS_TOPIC
from causeway.core.rights import NeededRight, Operation, Resource, Side, is_covered, needed_rights


def failover_rights(flow: Flow, groups: Iterable[str]) -> tuple[NeededRight, ...]:
    """Of these groups; with what a rollback needs. Describe on the target comes with Read."""
    names = sorted(groups)
    return (*_looking(flow, names), *journal_rights(), *moving_rights(names), *forgetting_rights(names))


def drill_rights(flow: Flow, groups: Iterable[str]) -> tuple[NeededRight, ...]:
    """Less than a failover: the groups themselves are only looked at."""
    names = sorted(groups)
    see = [
        _right("target", "group", n, Operation.DESCRIBE, "see it and what it has committed") for n in names
    ]
    return (*_looking(flow, names), *see, *journal_rights(), *clone_rights(flow))


def failback_rights(topics: Iterable[str], compacted: Iterable[str]) -> tuple[NeededRight, ...]:
    """Of the flow that was failed over, with its topics, which have one name on both sides; besides what a
    failover needs. Of some the policy is `compact` on the source."""
    names = sorted(topics)
    return (*export_rights(names), *emptying_rights(names), *widening_rights(sorted(compacted)))


def journal_rights() -> tuple[NeededRight, ...]:
    uses = (
        (Operation.READ, "know of failovers before"),
        (Operation.CREATE, "make the topic that keeps failovers"),
        (Operation.WRITE, "keep offsets of before, and what was done"),
    )
    return tuple(_right("target", "topic", FAILOVERS_TOPIC, operation, why) for operation, why in uses)


def moving_rights(groups: Iterable[str]) -> tuple[NeededRight, ...]:
    return tuple(_right("target", "group", name, Operation.READ, "move it") for name in sorted(groups))


def forgetting_rights(groups: Iterable[str]) -> tuple[NeededRight, ...]:
    why = "roll back where it had no offset before"
    return tuple(_right("target", "group", name, Operation.DELETE, why) for name in sorted(groups))


def clone_rights(flow: Flow) -> tuple[NeededRight, ...]:
    uses = ((Operation.READ, "move clones and read in their names"), (Operation.DELETE, "remove the clones"))
    return tuple(
        _right("target", "group", clones_of(flow.name), operation, why, is_prefix=True)
        for operation, why in uses
    )


def export_rights(topics: Iterable[str]) -> tuple[NeededRight, ...]:
    uses = (
        (Operation.CREATE, "make the topic of what never crossed"),
        (Operation.WRITE, "export what never crossed"),
        (Operation.READ, "compare the export"),
    )
    return tuple(
        _right("target", "topic", export_prefix(topic), operation, why, is_prefix=True)
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
        _right("source", "topic", topic, operation, why) for topic in topics for operation, why in uses
    )


def widening_rights(compacted: Iterable[str]) -> tuple[NeededRight, ...]:
    why = "let a compacted topic be emptied, and make its policy what it was"
    return tuple(_right("source", "topic", topic, Operation.ALTER_CONFIGS, why) for topic in compacted)


def turn_rights(flow: Flow) -> tuple[NeededRight, ...]:
    """Of the flow's own: to fence it and to open it again, but for the claims."""
    return tuple(
        right
        for right in needed_rights(flow, ())
        if (right.side, right.name) == ("target", FLOWS_TOPIC) and right.operation is not Operation.CREATE
    )


def closing_rights(flow: Flow) -> tuple[NeededRight, ...]:
    """Of the flow's own: to fence it and to claim its lanes."""
    claims = (right for right in needed_rights(flow, ()) if right.resource == "transactional-id")
    return (*turn_rights(flow), *claims)


def writing_rights(flow: Flow, topics: Iterable[str]) -> tuple[NeededRight, ...]:
    """Of the flow's own: to write these topics, which are there."""
    in_use = (Operation.READ, Operation.WRITE)
    return tuple(
        right for right in needed_rights(flow, topics) if right.side == "target" and right.operation in in_use
    )


def _looking(flow: Flow, names: list[str]) -> list[NeededRight]:
    there = [
        _right(
            "source", "group", name, Operation.DESCRIBE, "know where it stands, as long as the source answers"
        )
        for name in names
    ]
    if is_covered(flow, flow.checkpoints_topic):
        return there
    why = "know where groups last stood when the source is silent"
    return [*there, _right("target", "topic", flow.checkpoints_topic, Operation.READ, why)]


def _right(
    side: Side, resource: Resource, name: str, operation: Operation, why: str, *, is_prefix: bool = False
) -> NeededRight:
    return NeededRight(
        side=side, resource=resource, name=name, operation=operation, why=why, is_prefix=is_prefix
    )
