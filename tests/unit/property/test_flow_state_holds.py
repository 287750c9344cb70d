"""Any history of any flows: compaction loses nothing, fences stand, lanes never shrink."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from causeway.core.kernel.identity import SourceOffset, TargetOffset, TopicPartition
from causeway.core.state.fences import Fence, fence_record, lift_record
from causeway.core.state.flow_log import LogRecord
from causeway.core.state.flow_records import (
    adopted_record,
    alive_record,
    clusters_record,
    forgotten_record,
    gap_record,
    pair_record,
    run_record,
    set_record,
)
from causeway.core.state.flow_state import FlowState, fold
from causeway.core.state.gap_ledger import AcceptedGap
from causeway.core.state.gaps import uncopied_gap
from causeway.core.state.known_pairs import KnownPair
from causeway.core.state.position_ledger import ManualPosition, PlaceSet
from causeway.core.state.settle_notes import SettleNote, note_records
from causeway.core.state.start_ledger import StartAt, start_records

Event = tuple[str, str, Any]
"""What, by which flow, and what more there is to it."""
flows = st.sampled_from(["f", "g"])
small = st.integers(0, 40)
scopes = st.none() | st.lists(st.sampled_from(["sf.a", "sf.b"]), min_size=1, unique=True)
events = st.lists(
    st.one_of(
        st.tuples(st.just("run"), flows, small),
        st.tuples(st.just("fence"), flows, st.tuples(st.sampled_from("abc"), scopes)),
        st.tuples(st.just("lift"), flows, st.sampled_from("abc")),
        st.tuples(st.just("old fence"), flows, st.none() | st.just("old")),
        st.tuples(st.just("old lift"), flows, st.just(0) | small),
        st.tuples(st.just("alive"), flows, st.booleans()),
        st.tuples(st.just("pair"), flows, st.sampled_from(["sf.a", "sf.b"])),
        st.tuples(st.just("adopted"), flows, st.sampled_from(["sf.a", "sf.b"])),
        st.tuples(st.just("forgotten"), flows, st.sampled_from(["sf.a", "sf.b"])),
        st.tuples(st.just("starts"), flows, small),
        st.tuples(st.just("gap"), flows, small),
        st.tuples(st.just("set"), flows, small),
        st.tuples(st.just("settling"), flows, small),
        st.tuples(st.just("clusters"), flows, small),
    ),
    max_size=30,
)


def record_of(event: Event, state: FlowState, offset: int) -> tuple[bytes, bytes | None]:
    """As the flows' writers do it: they read the state, then say what becomes of it."""
    kind, flow, detail = event
    match kind:
        case "run":
            return run_record(flow, state, holder="h", run_id=f"r{offset}", lanes=detail, at_ms=offset)
        case "fence" | "lift" | "old fence" | "old lift":
            return turn_record(kind, flow, detail, offset, state)
        case "alive":
            return alive_record(flow, generation=state.generation, ended=detail, at_ms=offset)
        case "pair" | "adopted" | "forgotten":
            before = state.pairs.get(detail)
            ids = UUID(int=offset), UUID(int=offset + 1)
            if before is not None and before.adopted_at >= 0 and kind == "pair":
                ids = before.ids  # a run that knows of an adoption says nothing else
            made = KnownPair(
                source_topic="a", source_topic_id=ids[0], target_topic_id=ids[1], partitions=offset
            )
            if kind == "pair":
                return pair_record(flow, detail, made)
            if kind == "adopted":
                return adopted_record(flow, detail, replace(made, adopted_at=offset), [offset % 3])
            return forgotten_record(flow, detail, before or made)
        case "gap" | "starts" | "set" | "settling":
            return ledger_record(kind, flow, detail, offset, state)
        case _:
            return clusters_record(flow, source=f"s{detail}", target=f"t{detail}")


def turn_record(
    kind: str, flow: str, detail: Any, offset: int, state: FlowState
) -> tuple[bytes, bytes | None]:
    """Few tokens: their records come again, late and in any order."""
    said: dict[str, Any] = {"by": "b", "because": "c", "at_ms": offset, "most_lanes": state.most_lanes}
    if kind == "fence":
        token, topics = detail
        of_topics = None if topics is None else frozenset(topics)
        raised = Fence(by="b", because="c", since_ms=offset, token=token, topics=of_topics)
        return fence_record(flow, raised, most_lanes=state.most_lanes)
    if kind == "lift":
        named = Fence(generation=0, by="b", because="c", since_ms=0, token=detail)
        return lift_record(flow, named, **said)
    if kind == "old fence":
        key, value = f"1/fence/{flow}", said | ({"token": detail} if detail else {})
    else:
        legacy = [fence.generation for fence in state.standing if fence.is_legacy]
        lifts = legacy[0] if legacy and not detail else detail
        key, value = f"1/lift/{flow}/{lifts}", said | {"lifts": lifts}
    return key.encode(), json.dumps({"v": 1, **value}).encode()


def ledger_record(
    kind: str, flow: str, detail: int, offset: int, state: FlowState
) -> tuple[bytes, bytes | None]:
    if kind == "settling":
        made = SettleNote(TopicPartition("sf.a", 0), UUID(int=2), TargetOffset(detail))
        return next(note_records(flow, [made], state.settling))  # taking an older one away comes first
    if kind == "starts":
        key, starts = ("sf.a", UUID(int=1), UUID(int=2)), {0: StartAt(offset=SourceOffset(detail), epoch=-1)}
        return start_records(flow, key, starts, generation=max(state.generation, 0), at_ms=offset)[0]
    said: dict[str, Any] = {"source_topic_id": UUID(int=1), "by": "b", "because": "c", "at_ms": offset}
    if kind == "gap":
        place = TopicPartition("a", 0)
        gap = uncopied_gap(place, 0, detail + 1)
        assert gap is not None
        return gap_record(flow, AcceptedGap(gap=gap, target=place, **said))
    entry = ManualPosition(
        how="adopt",
        source_topic="a",
        target_topic="sf.a",
        target_topic_id=UUID(int=2),
        places=(PlaceSet(partition=0, source_next=SourceOffset(detail), target_next=TargetOffset(offset)),),
        generation=offset,
        **said,
    )
    return set_record(flow, entry)


def written(history: Sequence[Event]) -> tuple[list[LogRecord], dict[str, FlowState]]:
    states: dict[str, FlowState] = {}
    log = []
    for offset, event in enumerate(history):
        record = LogRecord(offset, 0, *record_of(event, states.get(event[1], FlowState()), offset))
        log.append(record)
        states = fold(states, record)
    return log, states


@given(events, st.data())
def test_compaction_by_key_loses_nothing(history: list[Event], data: st.DataObject) -> None:
    log, states = written(history)
    last = {record.key: record.offset for record in log}
    clean_below = data.draw(st.integers(0, len(log)))
    compacted: dict[str, FlowState] = {}
    for record in log:
        if record.offset >= clean_below or last[record.key] == record.offset:
            compacted = fold(compacted, record)
    assert compacted == states


@given(events)
def test_each_fence_stands_until_its_own_lift_and_lanes_and_generations_only_grow(
    history: list[Event],
) -> None:
    log, _ = written(history)
    states: dict[str, FlowState] = {}
    for record, (kind, flow, detail) in zip(log, history, strict=True):
        before = states.get(flow, FlowState())
        states = fold(states, record)
        now = states.get(flow, FlowState())
        gone = before.fences.keys() - now.fences.keys()
        if kind == "lift":
            assert gone <= {detail}
            assert detail not in now.fences
        else:
            assert all(before.fences[token].is_legacy for token in gone)
            assert not gone or kind in ("old fence", "old lift")
        if kind in ("fence", "old fence"):
            assert record.offset in {fence.generation for fence in now.standing}
        assert now.most_lanes >= before.most_lanes
        is_turn = kind in ("run", "fence", "lift", "old fence") or (kind == "old lift" and bool(gone))
        assert now.generation == (record.offset if is_turn else before.generation)
        assert now.running is None or now.running.generation == now.generation


@given(events, st.data())
def test_of_fences_that_are_raised_once_compaction_keeps_exactly_those_that_stand(
    history: list[Event], data: st.DataObject
) -> None:
    """Whatever the cleaner has taken, and from where on: it keeps the newest record of a key, and it may keep
    any of the older ones."""
    log, states = written(history)
    last = {record.key: record.offset for record in log}
    compacted: dict[str, FlowState] = {}
    for record in log:
        if last[record.key] == record.offset or data.draw(st.booleans()):
            compacted = fold(compacted, record)
    for flow, state in states.items():
        of_today = {token for token, fence in state.fences.items() if not fence.is_legacy}
        kept = compacted.get(flow, FlowState())
        assert {token for token, fence in kept.fences.items() if not fence.is_legacy} == of_today
        assert kept.lifted == state.lifted
