"""What Airflow's page shows of a flow: the form that starts a run, and the flow's own words."""

from __future__ import annotations

from airflow.sdk import Param

from causeway.config.flows_file.deployment import FlowSchedule
from causeway.core.model.flow import Flow

_UNITS_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}


def run_form(schedule: FlowSchedule) -> dict[str, Param]:
    """Typed: Airflow refuses other answers before there is a run. The defaults are those of flows.yaml."""
    run_for = schedule.run_for_seconds
    return {
        "until_caught_up": Param(
            run_for is None,
            type="boolean",
            title="Until caught up",
            description="End once the run has copied what the source held when it began. Overrides Run for",
        ),
        "run_for": Param(
            None if run_for is None else spell_duration(run_for),
            type=["null", "string"],
            pattern="^[1-9][0-9]{0,6}(s|m|h|d)$",
            title="Run for",
            description="Follow the source this long: 30s, 10m, 2h. Empty: until caught up",
        ),
        "take_over": Param(
            default=False,
            type="boolean",
            title="Take over",
            description="Take the flow from a run that still shows signs of life; that run ends",
        ),
    }


def spell_duration(seconds: float) -> str:
    """In the largest unit that is exact; the form has no fractions of a second."""
    whole = max(1, round(seconds))
    unit = next(unit for unit, length in _UNITS_SECONDS.items() if whole % length == 0)
    return f"{whole // _UNITS_SECONDS[unit]}{unit}"


def flow_document(flow: Flow, schedule: FlowSchedule) -> str:
    when = f"`{schedule.schedule}`" if schedule.schedule else "by hand"
    length = spell_duration(schedule.run_for_seconds) if schedule.run_for_seconds else "until caught up"
    include, exclude = (
        ", ".join(f"`{pattern}`" for pattern in patterns) or "nothing"
        for patterns in (flow.topics.include, flow.topics.exclude)
    )
    return f"""\
### {flow.source} → {flow.target}

| | |
|---|---|
| topics | {include} |
| except | {exclude} |
| runs | {when}, {length} |
| lanes | {flow.lanes} |

**topics** makes the target's topics, **copy** is one Spark application, **report** shows what it did and
updates the asset `causeway_{flow.name}`. **parked** is red if partitions were left out: the others went
on, and its last line says why and what to do. **drift** says in what mirrors differ from their sources, and
**sync** makes them equal, as far as flows.yaml asks for it; **heartbeat** writes one to {flow.source}.
"""
