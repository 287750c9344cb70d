"""A flow's clusters, as Airflow's connections know them; resolved only while a task runs.

From the moment a connection is read here, its secrets are masked in the task's log.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import mask_secret

from causeway.config.connection.connections import (
    FoundConnection,
    parse_connection,
    refuse_twin,
    resolve_endpoint,
)
from causeway.config.flows_file.deployment import Deployment
from causeway.config.values.environment import environment_variable
from causeway.core.kernel.endpoint import ClusterEndpoint

_SECRET_KEY = re.compile(r"password|secret|token|jaas|key\.pem|keystore|private", re.IGNORECASE)
_SHORTEST_SECRET_LINE = 8


@dataclass(frozen=True, slots=True)
class HandedOver:
    """What the driver's process gets that nobody else may see."""

    environment: Mapping[str, str] = field(repr=False)
    secrets: Sequence[str] = field(repr=False)
    """Longest first, so that a secret that is part of another one leaves nothing of it."""

    def redact(self, line: str) -> str:
        for secret in self.secrets:
            line = line.replace(secret, "***")
        return line


def hand_over(deployment: Deployment, aliases: Sequence[str]) -> HandedOver:
    """The clusters' connections, checked, as the environment in which the driver finds them.

    :raises ConfigError: Airflow doesn't have the connection, or it says something that isn't accepted.
    """
    environment: dict[str, str] = {}
    secrets: list[str] = []
    for alias in aliases:
        endpoint = airflow_endpoint(deployment, alias)
        secrets += endpoint.secrets
        connection_id = deployment.clusters[alias].connection_id
        connection = BaseHook.get_connection(connection_id)
        secrets += secret_values(connection.password, connection.extra_dejson)
        environment[environment_variable(connection_id)] = connection.as_json()
    return HandedOver(environment, tuple(sorted(set(secrets), key=len, reverse=True)))


def airflow_endpoint(deployment: Deployment, alias: str) -> ClusterEndpoint:
    """:raises ConfigError: as `hand_over`."""
    reference = deployment.clusters[alias]
    refuse_twin(reference.connection_id, deployment.connection_ids, os.environ)  # Airflow looks there, too
    return resolve_endpoint(alias, reference.connection_id, {}, _from_airflow, insecure=reference.insecure)


def _from_airflow(connection_id: str) -> FoundConnection | None:
    try:
        connection = BaseHook.get_connection(connection_id)
    except AirflowNotFoundException:
        return None
    for secret in secret_values(connection.password, connection.extra_dejson):
        mask_secret(secret)
    return parse_connection(connection_id, connection.as_json(), "Airflow")


def secret_values(password: str | None, extra: Mapping[str, Any]) -> list[str]:
    """What must not show: of a key in PEM also each of its lines, for logs are written in lines."""
    whole = [password] if password else []
    whole += [str(value) for key, value in extra.items() if value and _SECRET_KEY.search(key)]
    lines = [line for value in whole for line in value.splitlines() if len(line) >= _SHORTEST_SECRET_LINE]
    return list(dict.fromkeys([*whole, *lines]))
