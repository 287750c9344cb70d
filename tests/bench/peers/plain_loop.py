"""The loop that everybody writes first: consume, produce, with confluent-kafka, tuned, at least once.

    python -m tests.bench.peers.plain_loop <source> <target> <codec> <source topic>=<target topic> ...

Reads to the ends that it finds when it starts, waits for all acknowledgements, and ends.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from confluent_kafka import Consumer, Message, Producer, TopicPartition

from tests.bench.peers.contender import Launch, Scene
from tests.bench.peers.copies import make_copies

_CONSUMER = {
    "group.id": "bench-loop",
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "queued.min.messages": 200_000,
    "queued.max.messages.kbytes": 64 << 10,
    "fetch.message.max.bytes": 8 << 20,
    "fetch.max.bytes": 64 << 20,
    "check.crcs": False,
}
_PRODUCER = {
    "enable.idempotence": True,
    "linger.ms": 50,
    "batch.size": 512 << 10,
    "batch.num.messages": 50_000,
    "queue.buffering.max.messages": 500_000,
    "queue.buffering.max.kbytes": 256 << 10,
}
_AT_ONCE = 10_000
_ANSWER_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class PlainLoop:
    name: str = "consume-produce loop"

    def prepare(self, scene: Scene) -> Launch:
        make_copies(scene)
        pairs = [f"{topic}={scene.copy_of(topic)}" for topic in scene.workload.topic_names]
        clusters = [scene.source.bootstrap_servers, scene.target.bootstrap_servers]
        command = [sys.executable, "-m", __name__, *clusters, scene.workload.codec, *pairs]
        return Launch(command=command, kind_of=lambda _: "Python")


def copy(source: str, target: str, codec: str, pairs: dict[str, str]) -> int:
    """How many records it copied."""
    consumer = Consumer({"bootstrap.servers": source, **_CONSUMER})
    producer = Producer({"bootstrap.servers": target, "compression.type": codec, **_PRODUCER})
    topics = consumer.list_topics(timeout=_ANSWER_SECONDS).topics
    places = [TopicPartition(name, p, 0) for name in pairs for p in topics[name].partitions]
    wanted = sum(consumer.get_watermark_offsets(place, timeout=_ANSWER_SECONDS)[1] for place in places)
    consumer.assign(places)
    done = 0
    while done < wanted:
        for message in consumer.consume(_AT_ONCE, 1.0):
            if message.error() is not None:
                raise SystemExit(f"loop: {message.error()}")
            _forward(producer, message, pairs[message.topic()])
            done += 1
    if producer.flush(_ANSWER_SECONDS):
        raise SystemExit("loop: the target didn't acknowledge everything")
    consumer.close()
    return done


def _forward(producer: Producer, message: Message, topic: str) -> None:
    while True:
        try:
            producer.produce(
                topic,
                message.value(),
                message.key(),
                message.partition(),
                timestamp=message.timestamp()[1],
                headers=message.headers(),
            )
        except BufferError:
            producer.poll(0.05)
        else:
            return


if __name__ == "__main__":
    _source, _target, _codec, *_pairs = sys.argv[1:]
    print(copy(_source, _target, _codec, dict(pair.split("=") for pair in _pairs)), "records")
