"""The form that starts a failover on Airflow's page; the same wish as `causeway failover`'s options."""

from __future__ import annotations

from airflow.sdk import Param

from causeway.airflow.approval_form import approval_form


def failover_form() -> dict[str, Param]:
    """Typed: Airflow refuses other answers before there is a run. What they mean is checked by `plan`."""
    return {
        "timestamp": Param(
            None,
            type=["null", "string"],
            format="date-time",
            title="Fail over to",
            description="Groups begin at the first record of this time, or later. The picker names the zone. "
            "Empty: latest, where each group last stood",
        ),
        "mode": _mode(),
        "safety": Param(
            None,
            type=["null", "string"],
            pattern="^[0-9]{1,7}(ms|s|m|h|d)$",
            title="Step back",
            description="Begin this much earlier than that time: 30s. Empty: not earlier",
        ),
        "groups": _names("Groups", "One name or pattern per line. Empty: all of the flow"),
        "topics": _names("Topics", "Of the source, one name or pattern per line. Empty: all of the flow"),
        "active": Param(
            "refuse",
            type="string",
            enum=["refuse", "leave"],
            title="Groups with members on the target",
            description="refuse: move no group. leave: move the other groups",
        ),
        "clamp": Param(
            default=False,
            type="boolean",
            title="Clamp to the oldest record",
            description="If retention deleted the records of that time, begin with the oldest record",
        ),
        **approval_form("sheet"),
    }


def _mode() -> Param:
    return Param(
        "unplanned",
        type="string",
        enum=["unplanned", "planned"],
        title="Mode",
        description="planned: only after the source's writers have stopped. Causeway mirrors the rest first, "
        "then moves each group to where it stands. unplanned: the source may be gone",
    )


def _names(title: str, description: str) -> Param:
    return Param([], type=["null", "array"], items={"type": "string"}, title=title, description=description)
