"""Whether a homecoming was rolled back, by the journal of the cluster that the groups returned to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from causeway.core.failback.divergence import Step
from causeway.core.failover.request import FailoverRequest, Mode
from causeway.core.groups.sync_rules import Committed
from causeway.core.journal.journal_format import FAILOVERS_TOPIC
from causeway.core.journal.offset_records import left_records
from causeway.core.journal.written_records import failback_record
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.records.records import Record
from causeway.usecases.journal import earlier_failbacks
from causeway.usecases.journal.earlier_failbacks import (
    Closed,
    Rollbacks,
    TakenBack,
    closed_episodes,
    last_homecoming,
)
from tests.support.episodes import failback_run

HOME = failback_run(Step.HOME, facts={"moved": "r1"})


WISH = FailoverRequest(flow="g", at_ms=None, mode=Mode.HOME)
SAID: dict[str, Any] = {"v": 1, "by": "amy", "at_ms": 9, "plan": "p", "wish": WISH.as_dict(), "claim": "t1"}


@dataclass
class Log:
    """A cluster and its journal: records as bytes, or what keys say, and perhaps more in the value."""

    keys: list[tuple[object, ...]] = field(default_factory=list)
    error: int = 0
    is_denied: bool = False
    stepped_over: frozenset[str] = frozenset()
    read_from: list[int] = field(default_factory=list)

    @property
    def wire(self) -> Any:
        return self

    async def topics(self, names: list[str]) -> dict[str, Any]:
        return dict.fromkeys(names, self)

    def lacks(self, _operation: object) -> bool:
        return self.is_denied

    def lacks_right(self, topic: str, _operation: object) -> str:
        return f"no right to read {topic}"

    async def end_of(self, _at: object) -> int:
        return len(self.keys)

    async def flow_state(self, _flow: str) -> None:
        """`stepped_over` is read with it."""

    def visible_records(self, at: object) -> AsyncIterator[Record]:
        return self.records(at, 0, len(self.keys))

    async def records(self, _at: object, start: int, end: int) -> AsyncIterator[Record]:
        self.read_from.append(start)
        for offset in range(start, end):
            if isinstance(self.keys[offset][0], bytes):
                yield Record(offset, 0, *self.keys[offset])  # type: ignore[arg-type]
                continue
            key = [each for each in self.keys[offset] if not isinstance(each, dict)]
            more = {
                name: value
                for each in self.keys[offset]
                if isinstance(each, dict)
                for name, value in each.items()
            }
            yield Record(offset, 0, json.dumps(key).encode(), json.dumps(SAID | more).encode())


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    made = Log()
    monkeypatch.setattr(earlier_failbacks, "WireTarget", lambda _wire: made)
    return made


def looked(rollbacks: Rollbacks) -> TakenBack:
    return asyncio.run(rollbacks.look())


def test_asked_again_it_reads_only_what_was_appended_since(log: Log) -> None:
    log.keys += [(1, "begun", "g", "r1"), (1, "done", "g", "r1"), (1, "rolled back", "other", "r1")]
    rollbacks = Rollbacks([HOME], log)  # type: ignore[arg-type]
    assert looked(rollbacks) == TakenBack()
    log.keys += [(1, "rolled back", "g", "r0", "t1"), (1, "rolled back", "g", "r1", {"claim": ""})]
    assert looked(rollbacks) == TakenBack(frozenset({"r1"}))
    assert log.read_from == [0, 3]


def test_one_that_is_being_rolled_back_counts_until_that_is_withdrawn(log: Log) -> None:
    log.keys += [(1, "begun", "g", "r1"), (1, "done", "g", "r1"), (1, "rolling back", "g", "r1", "t1")]
    rollbacks = Rollbacks([HOME], log)  # type: ignore[arg-type]
    assert looked(rollbacks) == TakenBack(frozenset({"r1"}))
    log.keys += [(1, "rolling back", "g", "r1", "t1", {"withdrawn": True})]
    assert looked(rollbacks) == TakenBack()


def test_what_cant_be_read_is_never_taken_for_no_rollback(log: Log) -> None:
    rollbacks = Rollbacks([HOME], log)  # type: ignore[arg-type]
    assert "doesn't tell of failover r1" in looked(rollbacks).unsure, "its journal was lost, or cut off"
    log.error = int(Code.UNKNOWN_TOPIC_OR_PARTITION)
    assert "doesn't tell of failover r1" in looked(rollbacks).unsure
    log.error, log.is_denied = 0, True
    assert "no right to read" in looked(rollbacks).unsure
    log.is_denied = False
    log.keys += [(1, "begun", "g", "r1")]
    assert looked(rollbacks) == TakenBack()
    log.keys.clear()
    assert "ended at 1, and now at 0" in looked(rollbacks).unsure
    assert looked(Rollbacks([HOME], None)).unsure
    assert looked(Rollbacks([], None)) == TakenBack(), "nobody came home"


NONSENSE = (1, "begun", "g", "r9", {"at_ms": "noon"})


def test_a_record_that_cant_be_read_leaves_it_open_until_a_person_names_it(log: Log) -> None:
    log.keys += [(1, "begun", "g", "r1"), (1, "rolling back", "g", "r1", "t1"), NONSENSE]
    log.keys.append((1, "rolling back", "g", "r1", "t1", {"withdrawn": True}))
    rollbacks = Rollbacks([HOME], log)  # type: ignore[arg-type]
    for _ in range(2):
        found = looked(rollbacks)
        assert found.runs == frozenset({"r1"})
        assert f"`causeway recover g --record {FAILOVERS_TOPIC}-0:2" in found.unsure
    log.stepped_over = frozenset({f"{FAILOVERS_TOPIC}-0:2"})
    assert looked(rollbacks) == looked(Rollbacks([HOME], log)) == TakenBack()  # type: ignore[arg-type]


def test_a_record_of_the_targets_journal_that_cant_be_read_stops_nobody(log: Log) -> None:
    """What can be read still says what a group left; whether that was the last time isn't known."""
    orders, left = TopicPartition("orders", 0), Committed(9, "")
    newer = (1, "failback", "f", "b2", {"way": "newer"})
    target = Log([*left_records("f", "b1", {"a": {orders: left}}), failback_record(HOME), newer])
    log.keys.append((1, "begun", "g", "r1"))

    def closed() -> Closed:
        return asyncio.run(closed_episodes("f", target, log))  # type: ignore[arg-type]

    assert closed().held == {"a": {orders: left}}
    assert f"`causeway recover f --record {FAILOVERS_TOPIC}-0:2" in closed().unsure
    assert asyncio.run(last_homecoming("f", target)) == HOME  # type: ignore[arg-type]
    target.stepped_over = frozenset({f"{FAILOVERS_TOPIC}-0:2"})
    assert closed() == Closed({"a": {orders: left}})
