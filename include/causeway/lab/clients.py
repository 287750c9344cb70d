"""librdkafka clients as the lab uses them: quiet, and quick to try again.

That a broker is away is, in a lab, mostly on purpose; librdkafka would print it on every attempt.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from causeway.brokers.admin.leaders import partitions_of, still_silent
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.lab.errors import LabTrouble

_silent = logging.getLogger(__name__)
_silent.addHandler(logging.NullHandler())
_silent.propagate = False

_IMPATIENCE: dict[str, str | int] = {"reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 250}


def admin_client(endpoint: ClusterEndpoint) -> AdminClient:
    """Keep it in a variable until its answers are there: they fail with _DESTROY when it is collected."""
    return AdminClient({**endpoint.settings, **_IMPATIENCE, "socket.timeout.ms": 5000}, logger=_silent)


def producer(endpoint: ClusterEndpoint, **settings: str | int) -> Producer:
    """Idempotent: a partition has the order of the calls. In a setting's name `_` stands for a dot."""
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return Producer(
        {
            **endpoint.settings,
            **_IMPATIENCE,
            "enable.idempotence": "true",
            "partitioner": "murmur2_random",  # as Java's clients
            "linger.ms": 20,
            **named,
        },
        logger=_silent,
    )


def wait_for_leaders(
    client: AdminClient, topics: Mapping[str, int], *, timeout_seconds: float = 60.0
) -> None:
    """Until each partition of the new `topics` (name -> partitions) answers.

    A new leader that refuses a producer's first batch and takes its second counts the first as a repeat
    when it is sent again: librdkafka then reports a record as delivered that no log holds.

    :raises LabTrouble: one doesn't, and none other did within the time.
    """
    if silent := still_silent(client, partitions_of(topics), patience_seconds=timeout_seconds):
        raise LabTrouble(
            "new topics",
            value=", ".join(sorted({tp.topic for tp in silent})),
            rule=f"their leaders don't answer, no other one did in the last {timeout_seconds:.0f} s",
            remedy="look at the brokers' logs",
        )
