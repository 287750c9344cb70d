"""The environment variable in which a connection is found."""

from __future__ import annotations


def environment_variable(connection_id: str) -> str:
    return f"AIRFLOW_CONN_{connection_id.upper()}"
