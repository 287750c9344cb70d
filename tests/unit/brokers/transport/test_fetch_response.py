"""Fetch's answer by hand is what kafka-python reads in the same bytes, and not a copy of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer import FetchRequest, FetchResponse
from kafka.protocol.parser import KafkaProtocol

from causeway.brokers.transport.fetch_response import VERSION, FetchAnswers
from causeway.brokers.transport.lean_network import Frame, FrameReader

TOPIC = FetchResponse.FetchableTopicResponse
PARTITION = TOPIC.PartitionData
int64s = st.integers(-1, 2**63 - 1)
int32s = st.integers(-1, 2**31 - 1)
aborted = st.builds(PARTITION.AbortedTransaction, producer_id=int64s, first_offset=int64s)
partitions = st.builds(
    PARTITION,
    partition_index=st.integers(0, 2**31 - 1),
    error_code=st.sampled_from((0, 1, 6, 77)),
    high_watermark=int64s,
    last_stable_offset=int64s,
    log_start_offset=int64s,
    diverging_epoch=st.builds(PARTITION.EpochEndOffset, epoch=int32s, end_offset=int64s),
    current_leader=st.builds(PARTITION.LeaderIdAndEpoch, leader_id=int32s, leader_epoch=int32s),
    aborted_transactions=st.none() | st.lists(aborted, max_size=3),
    preferred_read_replica=int32s,
    records=st.none() | st.binary(max_size=300) | st.just(b"x" * 200_000),
)
answers = st.builds(
    FetchResponse,
    version=st.just(VERSION),
    throttle_time_ms=st.integers(0, 2**31 - 1),
    error_code=st.sampled_from((0, 31)),
    session_id=int32s,
    responses=st.lists(
        st.builds(TOPIC, topic_id=st.uuids(), partitions=st.lists(partitions, max_size=3)), max_size=3
    ),
)


def encoded(answer: FetchResponse, *, framed: bool) -> bytes:
    answer.with_header(correlation_id=1)
    return bytes(answer.encode(framed=framed, header=True))


def reader_that_waits() -> FrameReader:
    parser = KafkaProtocol(client_id="causeway", receive_message_max_bytes=10_000_000)
    parser.send_request(FetchRequest(version=VERSION, max_bytes=1, topics=[]))
    return FrameReader(parser)


def plain(answer: FetchResponse | FetchAnswers) -> tuple[object, ...]:
    """Both kinds of answer as the same values."""
    return (
        answer.throttle_time_ms,
        answer.error_code,
        answer.session_id,
        [
            (
                topic.topic_id,
                [
                    (
                        part.partition_index,
                        part.error_code,
                        part.high_watermark,
                        part.last_stable_offset,
                        part.log_start_offset,
                        [(a.producer_id, a.first_offset) for a in part.aborted_transactions or ()],
                        bytes(part.records or b""),
                        _turn(part.diverging_epoch),
                    )
                    for part in topic.partitions
                ],
            )
            for topic in answer.responses
        ],
    )


def _turn(diverging: Any) -> tuple[int, int] | None:
    """The library gives a tagged field that wasn't sent its defaults."""
    found = (diverging.epoch, diverging.end_offset) if diverging else (-1, -1)
    return None if found == (-1, -1) else found


@given(answers, st.data())
def test_it_is_read_as_kafka_python_reads_it_however_it_is_cut(
    answer: FetchResponse, data: st.DataObject
) -> None:
    stream = encoded(answer, framed=True)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(stream) - 1), max_size=6)))
    reader = reader_that_waits()
    found: list[tuple[int, Any]] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += _received(reader, stream[start:end])
    ((correlation, ours),) = found
    theirs = FetchResponse.decode(encoded(answer, framed=False), version=VERSION, header=True)
    assert correlation == 1
    assert isinstance(ours, FetchAnswers)
    assert plain(ours) == plain(theirs)


def _received(reader: FrameReader, data: bytes) -> Iterator[tuple[int, Any]]:
    """As a socket does it: into the room that the reader offers."""
    while data:
        room = reader.room()
        count = min(len(room), len(data))
        room[:count] = data[:count]
        yield from reader.receive(room[:count])
        data = data[count:]


def test_records_are_a_part_of_the_frame() -> None:
    records = b"x" * 200_000
    answer = FetchResponse(
        version=VERSION,
        responses=[TOPIC(topic_id=UUID(int=1), partitions=[PARTITION(partition_index=0, records=records)])],
    )
    ((_, ours),) = _received(reader_that_waits(), encoded(answer, framed=True))
    (topic,) = ours.responses
    assert isinstance(topic.partitions[0].records.obj, Frame)
    assert topic.partitions[0].records == records


@given(answers, st.data())
def test_a_part_of_an_answer_is_an_error_that_the_connection_knows(
    answer: FetchResponse, data: st.DataObject
) -> None:
    whole = encoded(answer, framed=False)
    half = Frame(data.draw(st.integers(4, len(whole) - 1)))
    half[:] = whole[: len(half)]
    FetchAnswers.parse_header(half)
    with pytest.raises(ValueError):
        FetchAnswers.decode(half)
