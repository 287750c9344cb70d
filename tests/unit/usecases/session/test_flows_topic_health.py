"""Whether a flow's own topic has lost anything: what is read, in which order, and what it proves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from causeway.core.journal.journal import Status
from causeway.core.journal.journal_format import FAILOVERS_TOPIC
from causeway.core.journal.written_records import agreed_record, ended_record
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import ProtocolFault
from causeway.core.kernel.identity import Generation, TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.model.naming import FLOWS_TOPIC
from causeway.core.records.records import Record
from causeway.core.state.flow_state import FlowState
from causeway.core.state.position import Position
from causeway.usecases.repair import recover
from causeway.usecases.repair.recover import Recovered
from causeway.usecases.repair.set_positions import Reason
from causeway.usecases.session.flows_topic_health import all_evidence, read_log_health
from tests.support import builders

FLOW, ORDERS = builders.flow(), TopicPartition("sf.orders", 0)


class Target:
    """A target whose topics are lists; `states` are read one after the other, the last one ever again."""

    def __init__(self, *states: FlowState, held: int | None = None, journal: Sequence[Any] = ()) -> None:
        self.states, self.held, self.journal = list(states), held, journal
        self.may_read_journal = True
        self.stepped_over: frozenset[str] = frozenset()
        self.foreign_records: dict[int, object] = {}
        self.wire, self.network = self, SimpleNamespace(time_ms=lambda: 1)

    async def topics(self, names: Sequence[str] | None) -> dict[str, Any]:
        if names is None:
            return {FLOWS_TOPIC: SimpleNamespace(error=0)}
        code = 0 if names[0] == FLOWS_TOPIC or self.journal else int(Code.UNKNOWN_TOPIC_OR_PARTITION)
        is_denied = names[0] == FAILOVERS_TOPIC and not self.may_read_journal
        return {names[0]: SimpleNamespace(error=code, lacks=lambda *_: is_denied)}

    async def flow_state(self, _: str) -> FlowState:
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]

    def other_flows(self, _: str) -> dict[str, FlowState]:
        return {}

    async def all_positions(self, _: str) -> dict[TopicPartition, Position]:
        if self.held is None:
            return {}
        return {ORDERS: builders.position(9, 10, generation=Generation(self.held))}

    async def map_generations(self, _: str) -> dict[TopicPartition, int]:
        return {}

    async def visible_records(self, tp: TopicPartition) -> AsyncIterator[Record]:
        assert tp == TopicPartition(FAILOVERS_TOPIC, 0)
        for offset, (key, value) in enumerate(self.journal):
            yield Record(offset, 0, key, value)

    async def append_plain(self, topic: str, key: bytes, _: bytes) -> int:
        assert topic == FLOWS_TOPIC
        self.stepped_over |= {key.decode().rpartition("/")[2]}
        return 0


def lost(target: Target, state: FlowState) -> list[str]:
    return asyncio.run(read_log_health(FLOW, target, state)).lines  # type: ignore[arg-type]


def name_it(target: Target, record: str) -> Recovered:
    """`causeway recover f --record ...`."""
    with patch.object(recover, "run_at_target", lambda _, work: asyncio.run(work(target))):
        endpoint = ClusterEndpoint("nyc", {"bootstrap.servers": "nyc:9092"})
        return recover.recover_flow(FLOW, endpoint, record, Reason(by="ann", because="seen"))


def at(generation: int) -> FlowState:
    return FlowState(generation=Generation(generation))


def agreed(generation: int, whose: str = "f") -> tuple[bytes, bytes]:
    return agreed_record(whose, "r", by="ann", at_ms=1, generation=generation)


def done(generation: int) -> tuple[bytes, bytes]:
    return ended_record("f", "r", Status.DONE, by="ann", at_ms=1, generation=generation)


def test_a_turn_that_was_appended_while_somebody_looks_is_no_loss() -> None:
    """The state is read before the positions: a run that begins in between commits in a newer turn."""
    assert lost(Target(at(57), held=57), at(12)) == []
    assert "the position of sf.orders-0 is of generation 57" in lost(Target(at(12), held=57), at(12))[0]


@pytest.mark.parametrize(
    ("journal", "is_lost"),
    [
        ([], False),
        ([agreed(12)], False),
        ([agreed(57)], True),
        ([agreed(57), (agreed(57)[0], b"not JSON")], True),
        ([done(57)], True),
        ([agreed(57, "another")], False),
        ([(b"some-app", b'{"generation": 57}'), (agreed(57)[0], None)], False),
        (
            [(agreed(57)[0], b'{"v":1,"generation":"57"}'), (agreed(5)[0], b'{"v":1,"generation":true}')],
            False,
        ),
        (
            [(b'[1,"x","f","r"]', b'{"v":1,"generation":57}'), (agreed(57)[0], b'{"v":2,"generation":57}')],
            False,
        ),
        ([(b'[1,"begun","f","r"]', b'{"v":1,"generation":57}')], False),
    ],
)
def test_the_turn_that_a_failover_saw_is_evidence_too(journal: list[Any], is_lost: bool) -> None:
    """Its fence may be what was cut off, and positions are older than that."""
    found = lost(Target(at(12), journal=journal), at(12))
    assert bool(found) is is_lost
    assert all(f"failover r in {FAILOVERS_TOPIC} is of generation 57" in line for line in found)
    newest = asyncio.run(all_evidence(FLOW, Target(held=20, journal=journal)))  # type: ignore[arg-type]
    assert newest is not None
    assert newest.generation == (57 if is_lost else 20)


def test_who_may_not_read_the_journal_goes_by_the_rest() -> None:
    target = Target(journal=[agreed(57)])
    target.may_read_journal = False
    assert lost(target, at(12)) == []


def test_records_of_the_journal_that_somebody_has_named_are_no_evidence_any_more() -> None:
    target = Target(at(12), journal=[agreed(57), agreed(58)])
    for offset in (1, 0):
        record = f"{FAILOVERS_TOPIC}-0:{offset}"
        assert f"`causeway recover f --record {record} " in lost(target, at(12))[0]
        name_it(target, record)
    assert lost(target, at(12)) == []


def test_a_record_is_not_stepped_over_while_something_else_tells_of_a_loss() -> None:
    target = Target(at(12), held=57, journal=[agreed(57)])
    with pytest.raises(ProtocolFault, match=r"the position of sf\.orders-0 is of generation 57"):
        name_it(target, f"{FAILOVERS_TOPIC}-0:0")
    assert target.stepped_over == frozenset()
