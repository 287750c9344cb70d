"""A consumer of the target that never stops: writes down what it sees, 16 bytes a record.

    python reader.py follow|once BOOTSTRAP ISOLATION FOLDER '{"TOPIC": PARTITIONS, ...}'

Each record becomes (offset, digest of timestamp, key, value and headers) in FOLDER/TOPIC-PARTITION.seen.
It reads by assignment from offset 0, keeps its place over broker restarts, and treats a jump back as an
error. SIGTERM asks it to read to the ends of that moment and to exit 0; `once` does that right away.
"""

from __future__ import annotations

import json
import logging
import signal
import struct
import sys
import time
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

_RECORD = struct.Struct("<qQ")
_silent = logging.getLogger("chaos.reader")
_silent.addHandler(logging.NullHandler())
_silent.propagate = False

Place = tuple[str, int]


class Reader:
    def __init__(self, bootstrap: str, isolation: str, folder: Path, topics: dict[str, int]) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "chaos-reader-without-group",
                "isolation.level": isolation,
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "enable.partition.eof": True,
                "check.crcs": True,
                "fetch.wait.max.ms": 50,
                "queued.max.messages.kbytes": 16384,
                "reconnect.backoff.ms": 50,
                "reconnect.backoff.max.ms": 250,
            },
            logger=_silent,
        )
        self._places = [(topic, number) for topic, count in topics.items() for number in range(count)]
        self._files: dict[Place, BinaryIO] = {
            place: (folder / f"{place[0]}-{place[1]}.seen").open("ab") for place in self._places
        }
        self._last = dict.fromkeys(self._places, -1)
        self._ends_seen = dict.fromkeys(self._places, -1)
        self.is_stopping = False

    def run(self) -> None:
        self._wait_for_topics()
        self._consumer.assign([TopicPartition(topic, number, 0) for topic, number in self._places])
        ends: dict[Place, int] | None = None
        while ends is None or any(self._ends_seen[place] < end for place, end in ends.items()):
            if self.is_stopping and ends is None:
                ends = self._ends()
            self._take(self._consumer.consume(5000, 0.1))
        for file in self._files.values():
            file.close()
        self._consumer.close()

    def _wait_for_topics(self) -> None:
        wanted = {topic for topic, _ in self._places}
        while not self.is_stopping:
            try:
                if wanted <= self._consumer.list_topics(timeout=2).topics.keys():
                    return
            except KafkaException:
                pass  # the broker may be away: that is what the campaign is about
            time.sleep(0.1)

    def _ends(self) -> dict[Place, int]:
        return {
            place: self._consumer.get_watermark_offsets(TopicPartition(*place), timeout=30)[1]
            for place in self._places
        }

    def _take(self, messages: list[Any]) -> None:
        lines: dict[Place, list[bytes]] = {}
        for message in messages:
            error = message.error()
            if error is not None:
                self._take_event(message, error)
                continue
            place = message.topic(), message.partition()
            offset = message.offset()
            if offset <= self._last[place]:
                raise RuntimeError(f"{place} went back from {self._last[place]} to {offset}")
            self._last[place] = offset
            lines.setdefault(place, []).append(_RECORD.pack(offset, digest(message)))
        for place, packed in lines.items():
            self._files[place].write(b"".join(packed))
            self._files[place].flush()

    def _take_event(self, message: Any, error: KafkaError) -> None:
        if error.code() == KafkaError._PARTITION_EOF:
            self._ends_seen[message.topic(), message.partition()] = message.offset()
        elif error.code() == KafkaError._AUTO_OFFSET_RESET or error.fatal():
            raise KafkaException(error)


def digest(message: Any) -> int:
    content = repr((message.timestamp(), message.key(), message.value(), message.headers()))
    return int.from_bytes(blake2b(content.encode(), digest_size=8).digest(), "little")


def main(arguments: list[str]) -> None:
    mode, bootstrap, isolation, folder, topics = *arguments[:4], json.loads(arguments[4])
    reader = Reader(bootstrap, isolation, Path(folder), topics)
    reader.is_stopping = mode == "once"

    def stop(*_: object) -> None:
        reader.is_stopping = True

    signal.signal(signal.SIGTERM, stop)
    reader.run()


if __name__ == "__main__":
    main(sys.argv[1:])
