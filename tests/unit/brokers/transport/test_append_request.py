"""Produce by hand is, byte for byte, what kafka-python's own classes make of it and read in it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.broker_version_data import BrokerVersionData
from kafka.protocol.frame import KafkaBytes
from kafka.protocol.producer import ProduceRequest, ProduceResponse

from causeway.brokers.transport.append_request import AppendAnswers, AppendRequest
from causeway.core.copy.ports import Appended, Refused
from causeway.core.kernel.identity import TopicPartition

VERSIONS = (9, 10, 11, 12)
names = st.text("abcdefghij.-_é", min_size=1, max_size=200)
places = st.builds(TopicPartition, names, st.integers(0, 2**31 - 1))
int64s = st.integers(-1, 2**63 - 1)
Result = tuple[int, int, int, str | None, list[str | None]]
messages = st.none() | st.text(max_size=200)


def theirs(batches: Mapping[TopicPartition, bytes], transactional_id: str | None, version: int) -> bytes:
    topic_type = ProduceRequest.TopicProduceData
    by_topic: dict[str, list[object]] = {}
    for tp, batch in batches.items():
        by_topic.setdefault(tp.topic, []).append(
            topic_type.PartitionProduceData(index=tp.partition, records=batch)
        )
    request = ProduceRequest(
        version=version,
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=30_000,
        topic_data=[topic_type(name=name, partition_data=data) for name, data in by_topic.items()],
    )
    request.with_header(correlation_id=77, client_id="causeway")
    return bytes(request.encode(framed=True, header=True))


@given(
    st.dictionaries(places, st.binary(max_size=400) | st.just(b"x" * 70_000), max_size=5),
    st.none() | names,
    st.sampled_from(VERSIONS),
)
def test_the_request_is_the_bytes_that_kafka_python_makes(
    batches: dict[TopicPartition, bytes], transactional_id: str | None, version: int
) -> None:
    request = AppendRequest(batches, transactional_id=transactional_id, timeout_ms=30_000, is_v2=True)
    request.API_VERSION = version
    request.with_header(correlation_id=77, client_id="causeway")
    assert request.encode(framed=True, header=True) == theirs(batches, transactional_id, version)


results = st.tuples(st.sampled_from((0, 3, 10, 87)), int64s, int64s, messages, st.lists(messages, max_size=2))


@given(st.dictionaries(places, results, max_size=5), st.integers(0, 2**31 - 1), st.sampled_from(VERSIONS))
def test_the_answer_is_read_as_kafka_python_reads_it(
    told: dict[TopicPartition, Result], throttle_ms: int, version: int
) -> None:
    topic_type = ProduceResponse.TopicProduceResponse
    partition_type = topic_type.PartitionProduceResponse
    response = ProduceResponse(
        version=version,
        throttle_time_ms=throttle_ms,
        responses=[
            topic_type(
                name=tp.topic,
                partition_responses=[
                    partition_type(
                        index=tp.partition,
                        error_code=code,
                        base_offset=base,
                        log_append_time_ms=-1,
                        log_start_offset=start,
                        record_errors=[
                            partition_type.BatchIndexAndErrorMessage(
                                batch_index=i, batch_index_error_message=m
                            )
                            for i, m in enumerate(errors)
                        ],
                        error_message=message,
                    )
                ],
            )
            for tp, (code, base, start, message, errors) in told.items()
        ],
    )
    response.with_header(correlation_id=77)
    data = response.encode(header=True)
    frame = KafkaBytes(len(data))
    frame.write(data)
    frame.seek(0)
    assert AppendAnswers.parse_header(frame).correlation_id == 77
    answers = AppendAnswers.decode(frame)
    assert answers.throttle_time_ms == throttle_ms
    assert answers.by_partition == {
        tp: Refused(code, message or "", at_fault=(*range(len(errors)),)) if code else Appended(base, start)
        for tp, (code, base, start, message, errors) in told.items()
    }


@pytest.mark.parametrize("damaged", [b"", b"\x05", b"\0\x02\x05ab"])
def test_half_an_answer_is_an_error_that_the_connection_knows(damaged: bytes) -> None:
    frame = KafkaBytes(len(damaged))
    frame[:] = damaged
    with pytest.raises(ValueError):
        AppendAnswers.decode(frame)


@pytest.mark.parametrize(("is_v2", "version"), [(True, 12), (False, 11)])
def test_the_version_says_which_transactions_are_meant(is_v2: bool, version: int) -> None:
    request = AppendRequest({}, transactional_id="lane", timeout_ms=1, is_v2=is_v2)
    assert BrokerVersionData(api_versions={0: (3, 13)}).api_version(request) == version
