"""However a socket cuts the bytes, the answers are the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.errors import InvalidReceiveError
from kafka.protocol.metadata import FindCoordinatorRequest, FindCoordinatorResponse
from kafka.protocol.parser import KafkaProtocol

from causeway.brokers.transport.lean_network import FrameReader


def parser_that_waits_for(count: int) -> KafkaProtocol:
    parser = KafkaProtocol(client_id="causeway", receive_message_max_bytes=1_000)
    for _ in range(count):
        parser.send_request(FindCoordinatorRequest(version=4, key="", key_type=0, coordinator_keys=["group"]))
    return parser


def answer(number: int, host: str) -> bytes:
    coordinator = FindCoordinatorResponse.Coordinator(
        key="group", node_id=number, host=host, port=9092, error_code=0, error_message=None
    )
    response = FindCoordinatorResponse(version=4, throttle_time_ms=0, coordinators=[coordinator])
    response.with_header(correlation_id=number)
    return bytes(response.encode(framed=True, header=True))


@given(st.lists(st.text("abc.", max_size=30), min_size=1, max_size=4), st.data())
def test_any_cut_gives_the_same_answers(hosts: list[str], data: st.DataObject) -> None:
    stream = b"".join(answer(number, host) for number, host in enumerate(hosts, 1))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(stream) - 1), max_size=12)))
    reader = FrameReader(parser_that_waits_for(len(hosts)))
    found = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += reader.receive(stream[start:end])
    assert [(number, a.coordinators[0].host) for number, a in found] == list(enumerate(hosts, 1))


def test_a_length_that_cannot_be_is_refused_before_anything_is_reserved() -> None:
    reader = FrameReader(parser_that_waits_for(1))
    with pytest.raises(InvalidReceiveError):
        reader.receive((2**31 - 1).to_bytes(4, "big"))
