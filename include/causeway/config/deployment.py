"""What flows.yaml says, as frozen values: what every entry point hands to the rooms below."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from causeway.config.refusal import suggestion
from causeway.core.errors import UnknownName
from causeway.core.flow import Flow
from causeway.core.group_filter import FlowGroups


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterReference:
    """Where to look a cluster up; the secrets stay there."""

    alias: str
    connection_id: str
    insecure: bool
    """Somebody accepted in writing that passwords or data cross the network unprotected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowSchedule:
    """When a flow runs and how Airflow treats it; None: only by hand, and until it is caught up."""

    schedule: str | None
    run_for_seconds: float | None
    pool: str
    retries: int
    retry_delay_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """All mappings are read-only, by alias or by flow name, in the file's order."""

    file: str
    clusters: Mapping[str, ClusterReference]
    flows: Mapping[str, Flow]
    schedules: Mapping[str, FlowSchedule]
    groups: Mapping[str, FlowGroups]

    def flow(self, name: str) -> Flow:
        """:raises UnknownName: no such flow; the message has the nearest name and the known ones."""
        if name not in self.flows:
            raise UnknownName(
                "flow", value=name, rule=f"{self.file} has no such flow", remedy=suggestion(name, self.flows)
            )
        return self.flows[name]
