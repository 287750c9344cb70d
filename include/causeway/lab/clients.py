"""librdkafka clients as the lab uses them: quiet, and quick to try again.

That a broker is away is, in a lab, mostly on purpose; librdkafka would print it on every attempt.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from causeway.brokers.leaders import partitions_of, silent_ones
from causeway.core.endpoint import ClusterEndpoint
from causeway.lab.errors import LabTrouble

_silent = logging.getLogger(__name__)
_silent.addHandler(logging.NullHandler())
_silent.propagate = False

_LOOK_SECONDS = 0.05
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

    :raises LabTrouble: one doesn't within the time.
    """
    waiting = partitions_of(topics)
    deadline = time.monotonic() + timeout_seconds
    while waiting := silent_ones(client, waiting):
        if time.monotonic() > deadline:
            raise LabTrouble(
                "new topics",
                value=", ".join(sorted({tp.topic for tp in waiting})),
                rule=f"their leaders didn't answer within {timeout_seconds:.0f} s",
                remedy="look at the brokers' logs",
            )
        time.sleep(_LOOK_SECONDS)
