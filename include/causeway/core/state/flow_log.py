"""Records of `causeway-flows.internal` as bytes: keys, versions, JSON. Their meaning is `flow_state.py`'s.

A key is `version/kind/flow`, and often `/` and more. All versions keep that, so each record says whose it is.
The version is that of the record's kind. An older Causeway doesn't write for a flow that has a record of a
newer version or kind: it would misread it, and it may be a fence. A key of any other shape isn't ours.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from causeway.core.kernel.errors import ProtocolFault

_VERSIONS: Mapping[str, tuple[int, ...]] = {"fence": (1, 2), "starts": (2,)}
"""By kind those that are read; the last one is written. Of all other kinds there is one version, 1."""
_TurnKind = Literal["run", "alive", "ended", "parked", "fence", "lift", "claimed"]
_PairKind = Literal["pairs", "adopted", "forgotten", "starts", "gap", "set", "settling"]
_ClusterKind = Literal["clusters", "acl", "acl_gone"]
_RecoveryKind = Literal["floor", "recovered"]
Kind = _TurnKind | _PairKind | _ClusterKind | _RecoveryKind
_KINDS = {kind for kinds in (_TurnKind, _PairKind, _ClusterKind, _RecoveryKind) for kind in get_args(kinds)}
_SHAPE = re.compile(r"([1-9][0-9]{0,8})/([a-z_]+)/([^/]+)(?:/(.*))?", re.ASCII | re.DOTALL)


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A record of the flows topic as it was read."""

    offset: int
    timestamp_ms: int
    key: bytes
    value: bytes | None


class Key(NamedTuple):
    version: int
    kind: str
    flow: str
    rest: str = ""
    """What else names the record among those of its kind and flow."""


def as_record(kind: Kind, flow: str, value: Mapping[str, object]) -> tuple[bytes, bytes]:
    version = _versions(kind)[-1]
    body = json.dumps({"v": version, **value}, separators=(",", ":"))
    return f"{version}/{kind}/{flow}".encode(), body.encode()


def parse_key(record: LogRecord) -> Key | None:
    """None: it isn't one of ours, so somebody else wrote the record."""
    found = _SHAPE.fullmatch(record.key.decode("utf-8", "replace"))
    return Key(int(found[1]), found[2], found[3], found[4] or "") if found else None


def is_newer(key: Key) -> bool:
    """Whether only a newer Causeway can have written it: a kind, or a version of one, that we don't know."""
    return key.kind not in _KINDS or key.version > _versions(key.kind)[-1]


def is_readable(key: Key) -> bool:
    return key.kind in _KINDS and key.version in _versions(key.kind)


def parse_value_of(record: LogRecord, version: int) -> dict[str, object]:
    try:
        value = json.loads(record.value or b"")
    except (ValueError, RecursionError) as cause:
        raise unreadable(record, "value", version) from cause
    if not isinstance(value, dict) or value.get("v") != version:
        raise unreadable(record, "value", version)
    return value


def unreadable(record: LogRecord, part: str, version: int = 1) -> ProtocolFault:
    return ProtocolFault(
        f"{part} of record {record.offset} in the flows topic",
        value=record.key,
        rule=f"must be version {version} of Causeway's format",
        remedy="nobody else may write this topic; a newer Causeway may have: use that one",
    )


def _versions(kind: str) -> tuple[int, ...]:
    return _VERSIONS.get(kind, (1,))
