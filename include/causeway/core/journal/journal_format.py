"""A record of the journal of failovers as bytes: whose it is, and of which version.

A key is a JSON list: the version, then the kind, the flow and the run. All versions keep that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

FAILOVERS_TOPIC = "causeway-failovers.internal"
VERSION = 1
ASKED = "asked"
"""Ends the key of a record that says nothing: it is written so that the journal can be read up to it."""
_KEY_PARTS = 4


def journal_record(offset: int) -> str:
    """Its name among the records of all internal topics."""
    return f"{FAILOVERS_TOPIC}-0:{offset}"


def flow_of_key(key: bytes | None) -> str:
    """Whose record it is, of one that `parse_ours` takes for ours, of whatever version."""
    return str(json.loads(key or b"")[2])


def as_journal_record(key: list[object], value: Mapping[str, object]) -> tuple[bytes, bytes]:
    named = json.dumps([VERSION, *key], separators=(",", ":"))
    return named.encode(), json.dumps({"v": VERSION, **value}, separators=(",", ":")).encode()


def named_in(key: bytes | None) -> tuple[str, str, str] | None:
    """Kind, flow and run, whatever the version; None: somebody else wrote it."""
    named = _json(key or b"")
    is_key = isinstance(named, list) and len(named) >= _KEY_PARTS and type(named[0]) is int and named[0] > 0
    if not is_key or not all(isinstance(part, str) for part in named[1:_KEY_PARTS]):
        return None
    return named[1], named[2], named[3]


def only_asks(key: list[Any]) -> bool:
    return len(key) > _KEY_PARTS and key[-1] == ASKED


def parse_ours(key: bytes | None, value: bytes) -> tuple[list[Any], dict[str, Any]] | None:
    """None: somebody else wrote it. Of a newer version the value is left out: it may look like anything."""
    if named_in(key) is None:
        return None
    named = _json(key or b"")
    if named[0] > VERSION:
        return named, {}
    fields = _json(value)
    return (named, fields) if isinstance(fields, dict) and type(fields.get("v")) is int else None


def _json(data: bytes) -> Any:
    """None: it isn't JSON, or says just that."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
