"""The form that starts a failover on Airflow's page; the same wish as `causeway failover`'s options."""

from __future__ import annotations

from airflow.sdk import Param

from causeway.entrypoints.airflow_approval import approval_form


def failover_form() -> dict[str, Param]:
    """Typed: Airflow refuses other answers before there is a run. What they mean is checked by `plan`."""
    return {
        "timestamp": Param(
            None,
            type=["null", "string"],
            format="date-time",
            title="Fail over to",
            description="The moment from which on groups read, in the zone that the picker names. "
            "Empty: each group goes on where it was last known to stand (latest)",
        ),
        "mode": _mode(),
        "safety": Param(
            None,
            type=["null", "string"],
            pattern="^[0-9]{1,7}(ms|s|m|h|d)$",
            title="Step back",
            description="So far from the moment, to be on the safe side: 30s. Empty: not at all",
        ),
        "groups": _names("Groups", "One name or pattern per line. Empty: all of the flow"),
        "topics": _names("Topics", "Of the source, one name or pattern per line. Empty: all of the flow"),
        "active": Param(
            "refuse",
            type="string",
            enum=["refuse", "leave"],
            title="Groups at work on the target",
            description="refuse: move none at all. leave: move the others",
        ),
        "clamp": Param(
            default=False,
            type="boolean",
            title="Clamp to the oldest record",
            description="Where retention took the records of that moment",
        ),
        **approval_form("sheet"),
    }


def _mode() -> Param:
    return Param(
        "unplanned",
        type="string",
        enum=["unplanned", "planned"],
        title="Mode",
        description="unplanned: the source may be gone. planned: its writers have stopped; what is left "
        "is mirrored first, and groups go to where they stand",
    )


def _names(title: str, description: str) -> Param:
    return Param([], type=["null", "array"], items={"type": "string"}, title=title, description=description)
