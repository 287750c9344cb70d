"""Ready means: a real client, with the settings that users get, is served by every node that runs."""

from __future__ import annotations

import time
from collections.abc import Mapping

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.lab.clients import admin_client
from causeway.lab.errors import LabTrouble
from causeway.lab.processes import ProcessIdentity, is_alive

_POLL_SECONDS = 0.1
_REQUEST_SECONDS = 2.0


def wait_until_served(
    endpoint: ClusterEndpoint, running: Mapping[int, ProcessIdentity], *, timeout_seconds: float
) -> int | None:
    """The number of a node that ended meanwhile; None: all that run are members of the cluster, and serve.

    :raises LabTrouble: the time is over.
    """
    client = admin_client(endpoint)
    deadline = time.monotonic() + timeout_seconds
    while time.monotonic() < deadline:
        for number, process in running.items():
            if not is_alive(process):
                return number
        if running.keys() <= _members(client):
            return None
        time.sleep(_POLL_SECONDS)
    raise LabTrouble(
        f"lab cluster {endpoint}",
        rule=f"nodes {sorted(running)} run, and after {timeout_seconds:.0f} s not all of them serve clients",
        remedy="look at the brokers' logs",
    )


def _members(client: AdminClient) -> set[int]:
    try:
        return set(client.list_topics(timeout=_REQUEST_SECONDS).brokers)
    except KafkaException:
        return set()
