"""How many partitions the offset map has: unknown is neither none nor a number to divide by."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from causeway.brokers.transport.topic_metadata import TopicMetadata
from causeway.brokers.wire.map_reader import WireMapReader
from causeway.core.copy.ports import Unreachable
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.usecases.copy.planning import _map_partitions

MAP = "causeway-offset-map.sf.internal"


def described(error: int = 0, partitions: int = 0) -> TopicMetadata:
    leaders = dict.fromkeys(range(partitions), 1)
    return TopicMetadata(name=MAP, topic_id=UUID(int=1), is_internal=False, leaders=leaders, error=error)


def asked(topic: TopicMetadata, question: str) -> int:
    async def topics(_: object) -> dict[str, TopicMetadata]:
        return {MAP: topic}

    reader = cast(Any, WireMapReader.__new__(WireMapReader))
    reader.wire = SimpleNamespace(topics=topics)
    return int(asyncio.run(getattr(reader, question)(MAP)))


def test_a_map_that_isnt_there_is_empty_to_readers_and_refused_to_writers() -> None:
    absent = described(Code.UNKNOWN_TOPIC_OR_PARTITION)
    assert asked(absent, "map_partitions") == 0
    with pytest.raises(Unreachable, match=f"{MAP}: .* the topic isn't there"):
        asked(absent, "partitions_to_write")


@pytest.mark.parametrize("question", ["map_partitions", "partitions_to_write"])
@pytest.mark.parametrize("error", [0, Code.LEADER_NOT_AVAILABLE])
def test_a_map_that_no_broker_can_describe_yet_is_not_an_empty_one(question: str, error: int) -> None:
    with pytest.raises(Unreachable, match=f"{MAP}: how many partitions the offset map has isn't known"):
        asked(described(error), question)
    assert asked(described(partitions=8), question) == 8


def test_no_lane_is_sent_off_with_a_map_of_no_partitions() -> None:
    flow = cast(Any, SimpleNamespace(map_topic=MAP))
    with pytest.raises(Unreachable, match=MAP):
        _map_partitions(flow, cast(Any, SimpleNamespace(target={MAP: described()})))
    assert _map_partitions(flow, cast(Any, SimpleNamespace(target={}))) == 8
    assert _map_partitions(flow, cast(Any, SimpleNamespace(target={MAP: described(partitions=3)}))) == 3
