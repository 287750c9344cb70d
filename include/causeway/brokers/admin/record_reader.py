"""Read what a `read_committed` reader sees of one partition at a time, up to a known end, in bounded buffers.

No group is joined and nothing is committed. Reading starts at the given offset, or fails: an offset that
isn't there any more is an error, never a silent jump.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import TracebackType

import confluent_kafka
from confluent_kafka import Consumer, KafkaException, Message

from causeway import interruption
from causeway.brokers.admin.probe import SILENT
from causeway.brokers.error_codes import LibrdkafkaCode
from causeway.brokers.error_map import mapped
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import ClusterTrouble, ClusterUnreachable
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode
from causeway.core.verify.comparison import CREATE_TIME, LOG_APPEND_TIME, Content, RecordBuffer

_BUFFER_RECORDS = 4000
_BUFFER_BYTES = 16 << 20
_FIRST_STEP_RECORDS = 64
_STEP_SECONDS = 0.01
_REQUEST_SECONDS = 30.0
_SILENCE_SECONDS = 30.0
_SETTINGS: dict[str, str | int | bool] = {
    "group.id": "causeway-reader-without-group",  # required, never used: there are only assignments
    "isolation.level": "read_committed",
    "check.crcs": True,
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
    "allow.auto.create.topics": False,
    "fetch.wait.max.ms": 20,
    "queued.max.messages.kbytes": _BUFFER_BYTES >> 10,
}
# Either librdkafka tries again by itself, or it is about a group that isn't used (an assignment needs no
# coordinator). If it stays, nothing comes any more, and that is seen.
_PASSING = frozenset(
    {
        LibrdkafkaCode.TRANSPORT,
        LibrdkafkaCode.RESOLVE,
        LibrdkafkaCode.ALL_BROKERS_DOWN,
        LibrdkafkaCode.TIMED_OUT,
        KafkaErrorCode.GROUP_AUTHORIZATION_FAILED,
    }
)


class RecordReader:
    """One consumer, and the partition that it reads now."""

    def __init__(
        self, endpoint: ClusterEndpoint, *, as_mirrored: bool = False, is_isolated: bool = True
    ) -> None:
        """`as_mirrored`: show timestamps of any type as the CreateTime that a mirror must have of them.

        Without isolation aborted records, and those of open transactions, are shown as well.
        """
        self._endpoint = endpoint
        self._log_append_time = CREATE_TIME if as_mirrored else LOG_APPEND_TIME
        with mapped(cluster=endpoint):
            isolation = {} if is_isolated else {"isolation.level": "read_uncommitted"}
            self._consumer = Consumer({**endpoint.settings, **_SETTINGS, **isolation}, logger=SILENT)
        self._place = TopicPartition("", 0)
        self._position = self._end = 0
        self._last_heard = ""
        self._record_bytes = _BUFFER_BYTES // _FIRST_STEP_RECORDS
        self.buffer = RecordBuffer()

    def __enter__(self) -> RecordReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer.close()

    def bounds(self, place: TopicPartition) -> tuple[int, int]:
        """Log start, and the end as a `read_committed` reader has it, now."""
        where = confluent_kafka.TopicPartition(place.topic, place.partition)
        with mapped(cluster=self._endpoint, resource=place.topic, operation="Describe"):
            self._check_topic(place.topic)
            start, end = self._consumer.get_watermark_offsets(where, timeout=_REQUEST_SECONDS)
        return int(start), int(end)

    def _check_topic(self, topic: str) -> None:
        """Only metadata tells a missing right from a missing topic; later both are an unknown partition."""
        error = self._consumer.list_topics(topic, timeout=_REQUEST_SECONDS).topics[topic].error
        if error is not None:
            raise KafkaException(error)

    def open(self, place: TopicPartition, start: int, end: int) -> None:
        """Go on with this partition from `start`; records at or after `end` aren't shown."""
        self._place, self._position, self._end = place, start, end
        self.buffer = RecordBuffer()
        self.buffer.is_complete = start >= end
        if not self.buffer.is_complete:
            where = confluent_kafka.TopicPartition(place.topic, place.partition, start)
            with mapped(cluster=self._endpoint, resource=place.topic, operation="Read"):
                self._consumer.assign([where])

    def fill(self) -> None:
        """Read until the buffer holds enough or all there is.

        :raises ClusterUnreachable: nothing came for half a minute.
        :raises CausewayError: what the broker reported.
        """
        silent_until = time.monotonic() + _SILENCE_SECONDS
        while (room := self._room()) > 0:
            interruption.check()
            messages = self._consumer.consume(min(room, self._end - self._position), _STEP_SECONDS)
            if messages:
                silent_until = time.monotonic() + _SILENCE_SECONDS
                self._take_messages(messages)
            elif time.monotonic() > silent_until:
                raise ClusterUnreachable(
                    f"cluster {self._endpoint}, {self._place} at offset {self._position}",
                    rule=f"no record came for {_SILENCE_SECONDS:.0f} s{self._last_heard}",
                    remedy="look at the partition's leader",
                )

    def shown(self) -> Iterator[tuple[int, Content]]:
        """Offset and content of all that was opened, in order; errors as `fill`."""
        while True:
            self.fill()
            buffer = self.buffer
            yield from zip(list(buffer.offsets), list(buffer.contents), strict=True)
            if buffer.is_complete:
                return
            buffer.drop(len(buffer))

    def _room(self) -> int:
        """How many more records to ask for, by the size of the last ones: buffers are bounded in bytes."""
        if self.buffer.is_complete:
            return 0
        most = min(_BUFFER_RECORDS, max(2, _BUFFER_BYTES // self._record_bytes))
        return max(0, most - len(self.buffer))

    def _take_messages(self, messages: list[Message]) -> None:
        records = [message for message in messages if message.error() is None]
        for message in messages:
            if message.error() is not None:
                self._take_event(message)
        if not records:
            return
        buffer, log_append_time = self.buffer, self._log_append_time
        self._record_bytes = 1 + sum(map(len, records)) // len(records)
        self._position = records[-1].offset() + 1
        if self._position >= self._end:
            buffer.is_complete = True
            records = [message for message in records if message.offset() < self._end]
        buffer.offsets += [message.offset() for message in records]
        buffer.contents += [
            (
                (
                    CREATE_TIME if (stamp := message.timestamp())[0] != LOG_APPEND_TIME else log_append_time,
                    stamp[1],
                ),
                message.key(),
                message.value(),
                message.headers(),
            )
            for message in records
        ]

    def _take_event(self, message: Message) -> None:
        error = message.error()
        if error.code() in _PASSING:
            self._last_heard = f" ({error.str()})"
        elif error.code() == LibrdkafkaCode.PARTITION_EOF:
            # Between the last visible record and the end there may be markers and aborted records. An end
            # before ours is a new leader's, which hasn't heard yet how far its log is committed.
            self.buffer.is_complete |= message.offset() >= self._end
        elif error.code() == LibrdkafkaCode.AUTO_OFFSET_RESET:
            raise ClusterTrouble(
                f"cluster {self._endpoint}, {self._place} at offset {self._position}",
                rule=f"the broker has no such offset any more ({error.str()})",
                remedy="retention deleted records while they were compared: verify again",
            )
        else:
            with mapped(cluster=self._endpoint, resource=self._place.topic, operation="Read"):
                raise KafkaException(error)
