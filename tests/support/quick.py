"""Clients of librdkafka that wait for nothing on a calm cluster.

An idempotent producer asks for its id half a second after its birth. A consumer learns of the end of a
partition from an empty fetch, which a broker holds for half a second. The suite writes and reads thousands of
times.
"""

from __future__ import annotations

from confluent_kafka import Producer

from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.lab.clients import producer

QUICK_READER: dict[str, str | int] = {"fetch.wait.max.ms": 250}
"""Settings of a consumer that reads up to the end of a partition. A fetch waits so long at the end of what is
decided: the marker of a transaction that was committed just now comes in that time."""


def quick_producer(endpoint: ClusterEndpoint, **settings: str | int) -> Producer:
    """In order; but a record may come twice if its broker goes away. Take `producer` where one does."""
    return producer(endpoint, **{"enable_idempotence": "false", "max_in_flight": 1, **settings})


def init_transactions(client: Producer, timeout_seconds: float) -> None:
    """A producer without a connection asks for its coordinator again half a second later."""
    client.poll(0.1)
    client.init_transactions(timeout_seconds)
