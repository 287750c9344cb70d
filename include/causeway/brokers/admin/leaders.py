"""Which partitions have a leader that answers: metadata names it some time before the broker leads.

Of a thousand new partitions the last ones answer seconds after the first.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from contextlib import suppress

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from causeway import interruption

_ANSWER_SECONDS = 5.0
_POLL_SECONDS = 0.05


def partitions_of(topics: Mapping[str, int]) -> set[TopicPartition]:
    """All partitions of topics, by their numbers."""
    return {TopicPartition(name, number) for name, count in topics.items() for number in range(count)}


def still_silent(
    client: AdminClient, partitions: Collection[TopicPartition], *, patience_seconds: float
) -> set[TopicPartition]:
    """Waits until all of them answer, or none more has answered for so long: returns the ones that didn't."""
    waiting, deadline = set(partitions), time.monotonic() + patience_seconds
    while (silent := silent_ones(client, waiting)) and time.monotonic() < deadline:
        if len(silent) < len(waiting):
            deadline = time.monotonic() + patience_seconds
        waiting = silent
        interruption.check()
        time.sleep(_POLL_SECONDS)
    return silent


def silent_ones(client: AdminClient, partitions: Collection[TopicPartition]) -> set[TopicPartition]:
    """Those that don't answer yet when they are asked for their ends. That one may not ask is an answer."""
    if not partitions:
        return set()
    answers = client.list_offsets(
        dict.fromkeys(partitions, OffsetSpec.latest()), request_timeout=_ANSWER_SECONDS
    )
    silent: set[TopicPartition] = set()
    for tp, answer in answers.items():
        try:
            answer.result()
        except KafkaException as refusal:
            if refusal.args[0].code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
                silent.add(tp)
    for topic in {tp.topic for tp in silent}:
        # librdkafka remembers that a topic was unknown, and asks no more for its offsets (seen: for a
        # minute); its metadata, asked for by name, is news to it.
        with suppress(KafkaException):
            client.list_topics(topic, timeout=_ANSWER_SECONDS)
    return silent
