"""The rights that a failover, a drill and a failback need besides those of their flows: the one list of them.

In the words of `core/permissions/flow.py`. What is asked before anything is written, what doctor judges and
what docs/rights.md shows comes from here. Each list is in the view of one flow; to complete a failback is a
failover of the reverse flow.
"""

from __future__ import annotations

from collections.abc import Iterable

from causeway.core.failover.drill_run import clones_of
from causeway.core.journal.journal_format import FAILOVERS_TOPIC
from causeway.core.kernel.acl_vocabulary import NeededRight, Operation, needed_right
from causeway.core.model.flow import Flow
from causeway.core.model.naming import FLOWS_TOPIC
from causeway.core.permissions.flow import is_covered, needed_rights


def failover_rights(flow: Flow, groups: Iterable[str]) -> tuple[NeededRight, ...]:
    """Of these groups; with what a rollback needs. Describe on the target comes with Read."""
    names = sorted(groups)
    return (*_looking(flow, names), *journal_rights(), *moving_rights(names), *forgetting_rights(names))


def drill_rights(flow: Flow, groups: Iterable[str]) -> tuple[NeededRight, ...]:
    """Less than a failover: the groups themselves are only looked at."""
    names = sorted(groups)
    see = [
        needed_right("target", "group", n, Operation.DESCRIBE, "see it and what it has committed")
        for n in names
    ]
    return (*_looking(flow, names), *see, *journal_rights(), *clone_rights(flow))


def journal_rights() -> tuple[NeededRight, ...]:
    uses = (
        (Operation.READ, "know of failovers before"),
        (Operation.CREATE, "make the topic that keeps failovers"),
        (Operation.WRITE, "keep offsets of before, and what was done"),
    )
    return tuple(needed_right("target", "topic", FAILOVERS_TOPIC, operation, why) for operation, why in uses)


def moving_rights(groups: Iterable[str]) -> tuple[NeededRight, ...]:
    return tuple(needed_right("target", "group", name, Operation.READ, "move it") for name in sorted(groups))


def forgetting_rights(groups: Iterable[str]) -> tuple[NeededRight, ...]:
    why = "roll back where it had no offset before"
    return tuple(needed_right("target", "group", name, Operation.DELETE, why) for name in sorted(groups))


def clone_rights(flow: Flow) -> tuple[NeededRight, ...]:
    uses = ((Operation.READ, "move clones and read in their names"), (Operation.DELETE, "remove the clones"))
    return tuple(
        needed_right("target", "group", clones_of(flow.name), operation, why, is_prefix=True)
        for operation, why in uses
    )


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
        needed_right(
            "source", "group", name, Operation.DESCRIBE, "know where it stands, as long as the source answers"
        )
        for name in names
    ]
    if is_covered(flow, flow.checkpoints_topic):
        return there
    why = "know where groups last stood when the source is silent"
    return [*there, needed_right("target", "topic", flow.checkpoints_topic, Operation.READ, why)]
