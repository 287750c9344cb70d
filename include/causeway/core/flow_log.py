"""Records of `causeway-flows.internal` as bytes: keys, versions, JSON. Their meaning is `flow_state.py`'s."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from causeway.core.errors import ProtocolFault

_VERSION = 1
_TurnKind = Literal["run", "alive", "ended", "parked", "fence", "lift", "claimed"]
_PairKind = Literal["pairs", "adopted", "forgotten", "gap", "set", "settling"]
_ClusterKind = Literal["clusters", "acl", "acl_gone"]
Kind = _TurnKind | _PairKind | _ClusterKind


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A record of the flows topic as it was read."""

    offset: int
    timestamp_ms: int
    key: bytes
    value: bytes | None


def as_record(kind: Kind, flow: str, value: Mapping[str, object]) -> tuple[bytes, bytes]:
    body = json.dumps({"v": _VERSION, **value}, separators=(",", ":"))
    return f"{_VERSION}/{kind}/{flow}".encode(), body.encode()


def parse_key(record: LogRecord) -> tuple[str, str]:
    """Kind and flow."""
    parts = record.key.decode("utf-8", "replace").split("/")
    if len(parts) < 3 or parts[0] != str(_VERSION):
        raise unreadable(record, "key")
    return parts[1], parts[2]


def parse_value_of(record: LogRecord) -> dict[str, object]:
    try:
        value = json.loads(record.value or b"")
    except (ValueError, RecursionError) as cause:
        raise unreadable(record, "value") from cause
    if not isinstance(value, dict) or value.get("v") != _VERSION:
        raise unreadable(record, "value")
    return value


def unreadable(record: LogRecord, part: str) -> ProtocolFault:
    return ProtocolFault(
        f"{part} of record {record.offset} in the flows topic",
        value=record.key,
        rule=f"must be version {_VERSION} of Causeway's format",
        remedy="nobody else may write this topic; a newer Causeway may have: use that one",
    )
