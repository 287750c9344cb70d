"""Heartbeats, byte for byte as MirrorMaker 2 writes them, and what their topics' names tell.

A heartbeat is a record of the topic `heartbeats` of a flow's source, mirrored on like any other. Key: the
aliases of the flow's source and target. Value: version 0, and when it was written. A mirrored topic of
heartbeats has the whole way in its name: `nyc.sf.heartbeats` came from sf over nyc.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

from causeway.core.kernel.errors import ProtocolFault
from causeway.core.model.naming import way_of

_VERSION = 0
_LATEST_MS = 253_402_300_799_999
_LENGTH, _VALUE = struct.Struct(">h"), struct.Struct(">hq")


@dataclass(frozen=True, slots=True)
class Heartbeat:
    source: str
    target: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class Upstream:
    """A cluster whose heartbeats arrive here."""

    alias: str
    hops: int
    """How many mirrors are in between, on the shortest way."""
    topic: str
    """Where the heartbeats of that way arrive."""


def encode_heartbeat(heartbeat: Heartbeat) -> tuple[bytes, bytes]:
    key = _string(heartbeat.source) + _string(heartbeat.target)
    return key, _VALUE.pack(_VERSION, heartbeat.at_ms)


def decode_heartbeat(key: bytes, value: bytes) -> Heartbeat:
    """:raises ProtocolFault: not a heartbeat, of a version that isn't known, or of no time that there is."""
    try:
        source, rest = _take_string(key)
        target, rest = _take_string(rest)
        version, at_ms = _VALUE.unpack(value)
    except (struct.error, UnicodeDecodeError, ValueError) as cause:
        raise _unreadable("a key of two names and a value of 10 bytes") from cause
    if rest or version != _VERSION:
        raise _unreadable(f"version {_VERSION}")
    if not 0 <= at_ms <= _LATEST_MS:
        raise _unreadable("a time before the year 10000")
    return Heartbeat(source, target, at_ms)


def upstreams(topics: Iterable[str], separators: Iterable[str] = (".",)) -> tuple[Upstream, ...]:
    """The clusters that these topics of one cluster tell of, the nearest first."""
    ways = ((topic, way_of(topic, each)) for topic, each in product(topics, separators))
    nearest: dict[str, Upstream] = {}
    for topic, way in sorted(ways, key=lambda each: (len(each[1]), each[0])):
        if len(set(way)) < len(way):
            continue  # round in a circle: says nothing of how far away anybody is
        for hops, alias in enumerate(way, start=1):
            if alias and (alias not in nearest or hops < nearest[alias].hops):
                nearest[alias] = Upstream(alias, hops, topic)
    return tuple(sorted(nearest.values(), key=lambda each: (each.hops, each.alias)))


def _string(text: str) -> bytes:
    raw = text.encode()
    return _LENGTH.pack(len(raw)) + raw


def _take_string(raw: bytes) -> tuple[str, bytes]:
    (length,) = _LENGTH.unpack_from(raw)
    end = _LENGTH.size + length
    if length < 0 or end > len(raw):
        raise ValueError(length)
    return raw[_LENGTH.size : end].decode(), raw[end:]


def _unreadable(rule: str) -> ProtocolFault:
    return ProtocolFault(
        "a record of a heartbeats topic",
        rule=f"must have {rule}",
        remedy="something else than MirrorMaker 2 or Causeway writes there",
    )
