"""What a Kafka request says of itself before its body: the five fields that every version begins with."""

from __future__ import annotations

import asyncio
import struct
from dataclasses import dataclass
from enum import IntEnum

_LENGTH = struct.Struct(">i")
_HEAD = struct.Struct(">hhih")
_LONGEST_FRAME = 200 << 20


class Api(IntEnum):
    """The requests of the copy protocol, and the one that other clients look for the brokers with."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    API_VERSIONS = 18
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_CONFIGS = 32
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    DESCRIBE_TRANSACTIONS = 65


@dataclass(frozen=True, slots=True)
class RequestHead:
    length: int
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it came, length and all."""

    head: RequestHead
    frame: bytes

    def says(self, word: bytes) -> bool:
        """Whether a name or an id stands in it: topics, groups and transactional ids do as they are."""
        return word in self.frame


def parse_head(frame: bytes) -> RequestHead:
    (length,) = _LENGTH.unpack_from(frame)
    key, version, correlation_id, client_length = _HEAD.unpack_from(frame, _LENGTH.size)
    begin = _LENGTH.size + _HEAD.size
    client = None if client_length < 0 else frame[begin : begin + client_length].decode()
    return RequestHead(length, key, version, correlation_id, client)


def correlation_of(response: bytes) -> int:
    return int(_LENGTH.unpack_from(response, _LENGTH.size)[0])


async def read_frame(reader: asyncio.StreamReader) -> bytes | None:
    """A whole request or response; None: the other side has gone, in the middle or not."""
    try:
        head = await reader.readexactly(_LENGTH.size)
        (length,) = _LENGTH.unpack(head)
        if not 0 <= length <= _LONGEST_FRAME:
            raise ValueError(f"a frame of {length} bytes: this isn't Kafka's protocol")
        return head + await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
