"""Records of `causeway-flows.internal` that can't be read: whose they are, and what may be done about them.

A foreign record, whose key isn't one of ours, says nothing to anybody: it is stepped over. One under a key of
a flow may be a fence of that flow. So whoever only reads goes on and says so, and nobody writes for that flow
until a person has named the record (`causeway recover`). Other flows of the topic aren't concerned.

Whatever is written later under the same key takes its place, as compaction does: a readable record, or a
tombstone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from causeway.core.kernel.errors import CausewayError, ProtocolFault
from causeway.core.model.naming import FLOWS_TOPIC
from causeway.core.state.flow_log import Key, LogRecord, as_record
from causeway.core.state.repair_commands import recover_record_command

_MOST_FOREIGN = 1_000
"""The others are reported once these are gone."""
_LONGEST_KEY = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class OddRecord:
    offset: int
    key: bytes
    why: str
    newer: str = ""
    """Which version of what a newer Causeway has written; empty: none has."""

    @property
    def name(self) -> str:
        key = self.key.decode("utf-8", "backslashreplace")
        shown = key if len(key) <= _LONGEST_KEY else f"{key[:_LONGEST_KEY]}..."
        return f"record {self.offset} of {FLOWS_TOPIC} (key {shown!r})"

    def as_dict(self) -> dict[str, object]:
        return {"offset": self.offset, "key": self.key.decode("utf-8", "backslashreplace"), "why": self.why}


Odd = Mapping[int, OddRecord]
"""By offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SteppedOver:
    """A person has named an odd record: it doesn't count any more."""

    record: str
    """Its offset in this topic, or `topic-partition:offset` of another one of Causeway's."""
    by: str
    because: str
    at_ms: int


def foreign(record: LogRecord) -> OddRecord:
    return OddRecord(offset=record.offset, key=record.key, why="isn't Causeway's: somebody else wrote it")


def newer(record: LogRecord, key: Key) -> OddRecord:
    what = f"version {key.version} of kind {key.kind}"
    why = f"was written by a newer Causeway ({what})"
    return OddRecord(offset=record.offset, key=record.key, why=why, newer=what)


def broken(record: LogRecord) -> OddRecord:
    return OddRecord(offset=record.offset, key=record.key, why="can't be read, and may be a fence")


def with_odd(odd: Odd, record: OddRecord) -> dict[int, OddRecord]:
    return {**without_key(odd, record.key), record.offset: record}


def after_foreign(odd: Odd, record: LogRecord) -> dict[int, OddRecord]:
    kept = without_key(odd, record.key)
    is_kept = record.value is not None and len(kept) < _MOST_FOREIGN
    return {**kept, record.offset: foreign(record)} if is_kept else kept


def without_key(odd: Odd, key: bytes) -> dict[int, OddRecord]:
    return {offset: record for offset, record in odd.items() if record.key != key}


def without_named(odd: Odd, name: str) -> dict[int, OddRecord]:
    return {offset: record for offset, record in odd.items() if str(offset) != name}


def recovered_record(flow: str, stepped: SteppedOver) -> tuple[bytes, bytes]:
    said = {"by": stepped.by, "because": stepped.because, "at_ms": stepped.at_ms}
    key, body = as_record("recovered", flow, said)
    return key + f"/{stepped.record}".encode(), body


def parse_stepped_over(record: str, value: Mapping[str, object]) -> SteppedOver:
    """:raises KeyError: | :raises ValueError: it isn't one."""
    at_ms = value["at_ms"]
    if type(at_ms) is not int:
        raise ValueError(at_ms)
    return SteppedOver(record=record, by=str(value["by"]), because=str(value["because"]), at_ms=at_ms)


def odd_fault(flow: str, record: OddRecord) -> CausewayError:
    """Why nothing may be written for the flow, and the remedy."""
    if record.newer:
        remedy = "upgrade: run that version of Causeway here"
    else:
        command = recover_record_command(flow, record.offset)
        remedy = f"find out who wrote it, and that it was no fence; then {command} steps over it"
    return ProtocolFault(record.name, rule=f"{record.why}; it is under a key of flow {flow}", remedy=remedy)
