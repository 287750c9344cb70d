"""flows.yaml -> Deployment. Reads one small file, in milliseconds: DAG files call it when Airflow parses.

Every refusal is a ConfigError that begins with file, line and field. Neither Airflow nor a Kafka client
is imported here, nothing is looked up, no secret is touched.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from pydantic import ValidationError

from causeway.config.flows_file.crosscheck import (
    check_flows,
    check_names,
    check_no_secrets,
    mirrors_heartbeats,
)
from causeway.config.flows_file.deployment import ClusterReference, Deployment, FlowSchedule
from causeway.config.flows_file.document import Document, read_document
from causeway.config.flows_file.explain import explain
from causeway.config.flows_file.failback import failback_of, topics_of
from causeway.config.flows_file.model import FileModel, FlowModel
from causeway.config.flows_file.naming import naming_of
from causeway.config.flows_file.schedule import CONTINUOUS
from causeway.core.model.flow import CopyLimits, Flow, RefusedPolicy, Upkeep
from causeway.core.model.group_filter import FlowGroups


def load_flows(path: Path | str, *, shown_as: str | None = None) -> Deployment:
    """:raises ConfigError: the file can't be read or says something that isn't accepted."""
    return deployment_from(read_document(Path(path), shown_as=shown_as))


def deployment_from(document: Document) -> Deployment:
    check_no_secrets(document)
    check_names(document)
    try:
        model = FileModel.model_validate(document.content)
    except ValidationError as reason:
        raise explain(reason, document) from None
    check_flows(model, document)
    return Deployment(
        file=document.name,
        clusters=_clusters(model),
        flows=MappingProxyType({name: _flow(name, model.flows) for name in model.flows}),
        schedules=MappingProxyType({name: _schedule(flow) for name, flow in model.flows.items()}),
        groups=MappingProxyType({name: _groups(flow) for name, flow in model.flows.items()}),
    )


def _clusters(model: FileModel) -> Mapping[str, ClusterReference]:
    return MappingProxyType(
        {
            alias: ClusterReference(alias=alias, connection_id=found.connection, insecure=found.insecure)
            for alias, found in model.clusters.items()
        }
    )


def _flow(name: str, flows: Mapping[str, FlowModel]) -> Flow:
    model = flows[name]
    return Flow(
        name=name,
        source=model.source,
        target=model.target,
        topics=topics_of(name, flows),
        naming=naming_of(model),
        start=model.start,
        lanes=model.lanes,
        replication_factor=None if model.replication_factor == -1 else model.replication_factor,
        config_properties_exclude=tuple(model.config_exclude),
        limits=CopyLimits(
            transaction_bytes=model.transaction_bytes,
            transaction_seconds=model.transaction_seconds,
            fetch_bytes=min(model.transaction_bytes, CopyLimits().fetch_bytes),
        ),
        settle=model.settle,
        upkeep=_upkeep(model),
        on_refused=RefusedPolicy(model.on_refused),
        failback_of=model.failback_of or "",
        failback=failback_of(name, flows),
    )


def _upkeep(model: FlowModel) -> Upkeep:
    return Upkeep(
        sync_settings=model.sync_settings,
        use_defaults_from=model.use_defaults_from,
        sync_acls=model.sync_acls,
        emit_heartbeats=model.emit_heartbeats,
        mirror_heartbeats=mirrors_heartbeats(model),
    )


def _schedule(model: FlowModel) -> FlowSchedule:
    return FlowSchedule(
        schedule=CONTINUOUS if model.follow else model.schedule,
        run_for_seconds=model.run_for,
        pool=model.pool,
        retries=model.retries,
        retry_delay_seconds=model.retry_delay,
    )


def _groups(model: FlowModel) -> FlowGroups:
    return FlowGroups(
        include=tuple(model.groups),
        exclude=tuple(model.groups_exclude),
        sync_offsets=model.sync_group_offsets,
        follow_rewinds=model.follow_rewinds,
        emit_checkpoints=model.emit_checkpoints,
        emit_offset_syncs=model.emit_offset_syncs,
    )
