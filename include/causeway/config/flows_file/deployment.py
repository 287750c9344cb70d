"""What flows.yaml says, as frozen values: what every entry point hands to the rooms below."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from causeway.config.values.refusal import suggestion
from causeway.core.kernel.errors import UnknownName
from causeway.core.model.flow import Flow
from causeway.core.model.group_filter import FlowGroups


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

    @property
    def connection_ids(self) -> tuple[str, ...]:
        return tuple(cluster.connection_id for cluster in self.clusters.values())

    def flow(self, name: str) -> Flow:
        """:raises UnknownName: no such flow; the message has the nearest name and the known ones."""
        if name not in self.flows:
            raise UnknownName(
                "flow", value=name, rule=f"{self.file} has no such flow", remedy=self._instead_of(name)
            )
        return self.flows[name]

    def _instead_of(self, name: str) -> str:
        """A flow's name says its direction; the wrong one looks like no other name to `suggestion`."""
        for flow in self.flows.values():
            turned = flow.target.join(
                part.replace(flow.target, flow.source) for part in name.split(flow.source)
            )
            if turned in self.flows:
                meant = self.flows[turned]
                return (
                    f"did you mean {turned}? it leads from {meant.source} to {meant.target}; "
                    f"known: {', '.join(sorted(self.flows))}"
                )
        return suggestion(name, self.flows)
