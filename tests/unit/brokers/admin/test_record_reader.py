"""When a reader has seen all that it was opened for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from causeway.brokers.admin.record_reader import RecordReader
from causeway.brokers.error_codes import LibrdkafkaCode
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.identity import TopicPartition

NYC = ClusterEndpoint("nyc", {"bootstrap.servers": "127.0.0.1:1"})
AT = TopicPartition("orders", 0)


@dataclass
class Event:
    """A record, or with a code the end of the partition as its leader says it."""

    at: int
    code_: int | None = None

    def offset(self) -> int:
        return self.at

    def error(self) -> Event | None:
        return self if self.code_ is not None else None

    def code(self) -> int | None:
        return self.code_

    def __len__(self) -> int:
        return 1

    def timestamp(self) -> tuple[int, int]:
        return 1, 1_700_000_000_000

    def key(self) -> None:
        return None

    def value(self) -> bytes:
        return b"%d" % self.at

    def headers(self) -> None:
        return None


def end(at: int) -> Event:
    return Event(at, LibrdkafkaCode.PARTITION_EOF)


class Consumer:
    def __init__(self, *answers: list[Event]) -> None:
        self._answers: Iterator[list[Event]] = iter(answers)

    def assign(self, _: Any) -> None:
        pass

    def consume(self, *_: Any) -> list[Event]:
        return next(self._answers)


def read(*answers: list[Event]) -> list[int]:
    """Of `[0, 4)`."""
    reader = RecordReader(NYC)
    reader._consumer = Consumer(*answers)
    reader.open(AT, 0, 4)
    return [offset for offset, _ in reader.shown()]


def test_markers_at_the_end_are_no_records() -> None:
    assert read([Event(0), Event(1)], [end(4)]) == [0, 1]
    assert read([Event(0), Event(5)]) == [0]


@pytest.mark.parametrize("together", [False, True])
def test_an_end_before_the_one_that_was_asked_for_is_waited_out(together: bool) -> None:
    """A new leader may not know for a moment how far its log is committed."""
    first = [[Event(0), Event(1), end(2)]] if together else [[Event(0), Event(1)], [end(2)]]
    assert read(*first, [], [Event(2), Event(3)]) == [0, 1, 2, 3]
