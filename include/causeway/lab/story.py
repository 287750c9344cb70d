"""A story worth mirroring: what a real cluster holds, small, and the same for the same seed.

    orders         4 partitions, keys, headers, one tombstone in twenty
    payments-eu    3 partitions, keys            (and payments-us)
    events-<codec> 2 partitions, batches in each codec that Kafka has
    ledger         2 partitions, transactions, one in five aborted: both kinds are in the log
    clicks         1 partition, log-compacted: few keys, written again and again
    quiet          2 partitions, no records

Keys, values, headers and their order in a partition depend on the seed alone; timestamps also on
`ends_at_ms`.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import NewTopic

from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import ClusterTrouble
from causeway.lab.clients import admin_client, producer, wait_for_leaders
from causeway.lab.live import LiveProducer
from causeway.lab.places import Say

__all__ = ["CODECS", "LiveProducer", "Story", "tell_story"]

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_COMPACTED = {"cleanup.policy": "compact", "segment.ms": "300000", "min.cleanable.dirty.ratio": "0.01"}
_TOPICS = {
    "orders": (4, {}),
    "payments-eu": (3, {}),
    "payments-us": (3, {}),
    **{f"events-{codec}": (2, {}) for codec in CODECS},
    "ledger": (2, {}),
    "clicks": (1, _COMPACTED),
    "quiet": (2, {}),
}
_SHARES = {"orders": 6, "payments-eu": 2, "payments-us": 2, "ledger": 3, "clicks": 2} | {
    f"events-{codec}": 1 for codec in CODECS
}
_SPAN_MS = 3_600_000
"""An hour: `clicks` has a segment for each five minutes of it, and all but the last get compacted."""
_TRANSACTION_RECORDS = 25
_ANSWER_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class _Record:
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class Story:
    """What was written, by topic; a `read_committed` reader sees `records`."""

    records: dict[str, int]
    aborted: dict[str, int]

    @property
    def total(self) -> int:
        return sum(self.records.values())


def tell_story(
    endpoint: ClusterEndpoint,
    *,
    seed: int = 1906,
    records: int = 20_000,
    ends_at_ms: int | None = None,
    say: Say | None = None,
) -> Story:
    """Create the story's topics where they are missing, and write about `records` records into them.

    Called again it continues after what is there. `ends_at_ms` is the time of the last record; without it,
    now. A time more than a week ago has the brokers delete the story: that is their default retention.

    :raises ClusterTrouble: the cluster refused a topic or a record.
    """
    _create_topics(endpoint)
    clock = _StoryTime(time.time_ns() // 1_000_000 if ends_at_ms is None else ends_at_ms)
    committed: dict[str, int] = {}
    aborted: dict[str, int] = {}
    for topic, share in _SHARES.items():
        count = max(1, records * share // sum(_SHARES.values()))
        chance = random.Random(f"{seed} {topic}")  # noqa: S311 - the same story for the same seed
        told = _records_of(topic, count, chance)
        if topic == "ledger":
            committed[topic], aborted[topic] = _write_in_transactions(endpoint, topic, list(told), clock)
        else:
            committed[topic] = _write_topic(endpoint, topic, list(told), clock)
        if say:
            say(f"story: {topic} has {committed[topic]:,} more records")
    return Story(committed, aborted)


@dataclass(frozen=True, slots=True)
class _StoryTime:
    ends_at_ms: int

    def of(self, index: int, count: int) -> int:
        """The records of each topic are spread evenly over the story's hour."""
        return self.ends_at_ms - _SPAN_MS + (index + 1) * _SPAN_MS // count


def _create_topics(endpoint: ClusterEndpoint) -> None:
    wishes = [NewTopic(name, partitions, config=config) for name, (partitions, config) in _TOPICS.items()]
    client = admin_client(endpoint)  # a client that nobody holds is taken down under its requests
    for name, answer in client.create_topics(wishes).items():
        try:
            answer.result(_ANSWER_SECONDS)
        except KafkaException as refusal:
            if refusal.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise _trouble(endpoint, name, refusal.args[0]) from refusal
    wait_for_leaders(client, {name: partitions for name, (partitions, _) in _TOPICS.items()})


def _records_of(topic: str, count: int, chance: random.Random) -> Iterator[_Record]:
    make = {"orders": _order, "clicks": _click, "ledger": _entry}.get(topic.split("-", maxsplit=1)[0], _event)
    return (make(number, chance) for number in range(count))


def _order(number: int, chance: random.Random) -> _Record:
    key = f"order-{chance.randrange(max(1, number)):06d}".encode()
    headers = (("trace", chance.randbytes(8)), ("region", chance.choice((b"west", b"east", b""))))
    if number % 20 == 19:
        return _Record(key, None, headers)
    return _Record(
        key, _json(number=number, items=chance.randint(1, 9), cents=chance.randint(99, 99_999)), headers
    )


def _event(number: int, chance: random.Random) -> _Record:
    kind = chance.choice(("opened", "paid", "refunded", "closed"))
    return _Record(
        f"account-{chance.randrange(500)}".encode(), _json(number=number, kind=kind, note=kind * 10)
    )


def _entry(number: int, chance: random.Random) -> _Record:
    return _Record(
        f"book-{chance.randrange(20)}".encode(), _json(number=number, cents=chance.randint(-9999, 9999))
    )


def _click(number: int, chance: random.Random) -> _Record:
    return _Record(
        f"page-{chance.randrange(12)}".encode(), _json(number=number, clicks=chance.randint(1, 99))
    )


def _json(**content: object) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()


def _write_topic(endpoint: ClusterEndpoint, topic: str, records: list[_Record], clock: _StoryTime) -> int:
    codec = topic.removeprefix("events-") if topic.startswith("events-") else "none"
    writer = _Writer(endpoint, topic, producer(endpoint, compression_type=codec))
    for index, record in enumerate(records):
        writer.write(record, clock.of(index, len(records)))
    writer.flush()
    return len(records)


def _write_in_transactions(
    endpoint: ClusterEndpoint, topic: str, records: list[_Record], clock: _StoryTime
) -> tuple[int, int]:
    """Committed and aborted records; what is aborted has reached the log before."""
    client = producer(endpoint, transactional_id=f"causeway-story-{topic}", compression_type="lz4")
    writer = _Writer(endpoint, topic, client)
    client.init_transactions(_ANSWER_SECONDS)
    outcome: Counter[bool] = Counter()
    for number, first in enumerate(range(0, len(records), _TRANSACTION_RECORDS)):
        chapter = records[first : first + _TRANSACTION_RECORDS]
        client.begin_transaction()
        for index, record in enumerate(chapter, first):
            writer.write(record, clock.of(index, len(records)))
        writer.flush()
        is_aborted = number % 5 == 3
        (client.abort_transaction if is_aborted else client.commit_transaction)(_ANSWER_SECONDS)
        outcome[is_aborted] += len(chapter)
    return outcome[False], outcome[True]


class _Writer:
    """Writes into one topic and raises what the cluster refuses."""

    def __init__(self, endpoint: ClusterEndpoint, topic: str, client: Producer) -> None:
        self._endpoint, self._topic, self._client = endpoint, topic, client
        self._refusal: KafkaError | None = None

    def write(self, record: _Record, timestamp_ms: int) -> None:
        while True:
            try:
                self._client.produce(
                    self._topic,
                    record.value,
                    record.key,
                    headers=list(record.headers),
                    timestamp=timestamp_ms,
                    on_delivery=self._delivered,
                )
            except BufferError:
                self._client.poll(0.1)
            else:
                self._client.poll(0)
                return

    def flush(self) -> None:
        left = self._client.flush(_ANSWER_SECONDS)
        if self._refusal is not None:
            raise _trouble(self._endpoint, self._topic, self._refusal)
        if left:
            raise ClusterTrouble(
                f"topic {self._topic} of {self._endpoint}",
                rule=f"{left} records were not taken within {_ANSWER_SECONDS:.0f} s",
                remedy="look at the broker's log",
            )

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        self._refusal = self._refusal or error


def _trouble(endpoint: ClusterEndpoint, topic: str, error: KafkaError) -> ClusterTrouble:
    return ClusterTrouble(f"topic {topic} of {endpoint}", rule=error.str(), remedy="look at the broker's log")
