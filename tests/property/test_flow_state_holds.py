"""Any history of any flows: compaction loses nothing, fences stand, lanes never shrink."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from causeway.core.beginnings import PlaceSet, SetByHand
from causeway.core.flow_log import LogRecord
from causeway.core.flow_state import (
    FlowState,
    KnownPair,
    adopted_record,
    alive_record,
    clusters_record,
    fence_record,
    fold,
    forgotten_record,
    gap_record,
    lift_record,
    pair_record,
    run_record,
    set_record,
)
from causeway.core.gap_ledger import AcceptedGap
from causeway.core.gaps import uncopied_gap
from causeway.core.identity import TopicPartition
from causeway.core.settle_notes import SettleNote, note_records

flows = st.sampled_from(["f", "g"])
small = st.integers(0, 40)
events = st.lists(
    st.one_of(
        st.tuples(st.just("run"), flows, small),
        st.tuples(st.just("fence"), flows, st.none()),
        st.tuples(st.just("lift"), flows, st.just(0) | small),
        st.tuples(st.just("alive"), flows, st.booleans()),
        st.tuples(st.just("pair"), flows, st.sampled_from(["sf.a", "sf.b"])),
        st.tuples(st.just("adopted"), flows, st.sampled_from(["sf.a", "sf.b"])),
        st.tuples(st.just("forgotten"), flows, st.sampled_from(["sf.a", "sf.b"])),
        st.tuples(st.just("gap"), flows, small),
        st.tuples(st.just("set"), flows, small),
        st.tuples(st.just("settling"), flows, small),
        st.tuples(st.just("clusters"), flows, small),
    ),
    max_size=30,
)


def record_of(event, state, offset):
    """As the flows' writers do it: they read the state, then say what becomes of it."""
    kind, flow, detail = event
    match kind:
        case "run":
            return run_record(flow, state, holder="h", run_id=f"r{offset}", lanes=detail, at_ms=offset)
        case "fence":
            return fence_record(flow, by="b", because="c", most_lanes=state.most_lanes, at_ms=offset)
        case "lift":
            stands = state.fence.generation if state.fence is not None and not detail else detail
            return lift_record(flow, lifts=stands, by="b", because="c", at_ms=offset)
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
                return adopted_record(flow, detail, replace(made, adopted_at=offset))
            return forgotten_record(flow, detail, before or made)
        case "gap" | "set" | "settling":
            return ledger_record(kind, flow, detail, offset, state)
        case _:
            return clusters_record(flow, source=f"s{detail}", target=f"t{detail}")


def ledger_record(kind, flow, detail, offset, state):
    if kind == "settling":
        made = SettleNote(TopicPartition("sf.a", 0), UUID(int=2), detail)
        return next(note_records(flow, [made], state.settling))  # taking an older one away comes first
    said = {"source_topic_id": UUID(int=1), "by": "b", "because": "c", "at_ms": offset}
    if kind == "gap":
        place = TopicPartition("a", 0)
        return gap_record(flow, AcceptedGap(gap=uncopied_gap(place, 0, detail + 1), target=place, **said))
    entry = SetByHand(
        how="adopt",
        source_topic="a",
        target_topic="sf.a",
        target_topic_id=UUID(int=2),
        places=(PlaceSet(partition=0, source_next=detail, target_next=offset),),
        generation=offset,
        **said,
    )
    return set_record(flow, entry)


def written(history):
    states, log = {}, []
    for offset, event in enumerate(history):
        record = LogRecord(offset, 0, *record_of(event, states.get(event[1], FlowState()), offset))
        log.append(record)
        states = fold(states, record)
    return log, states


@given(events, st.data())
def test_compaction_by_key_loses_nothing(history, data):
    log, states = written(history)
    last = {record.key: record.offset for record in log}
    clean_below = data.draw(st.integers(0, len(log)))
    compacted = {}
    for record in log:
        if record.offset >= clean_below or last[record.key] == record.offset:
            compacted = fold(compacted, record)
    assert compacted == states


@given(events)
def test_a_fence_stands_until_its_lift_and_lanes_and_generations_only_grow(history):
    log, _ = written(history)
    states: dict[str, FlowState] = {}
    for record, (kind, flow, _) in zip(log, history, strict=True):
        before = states.get(flow, FlowState())
        states = fold(states, record)
        now = states[flow]
        assert now.fence is not None or before.fence is None or kind == "lift"
        assert now.most_lanes >= before.most_lanes
        lifted = kind == "lift" and before.fence is not None and now.fence is None
        is_turn = kind in ("run", "fence") or lifted
        assert now.generation == (record.offset if is_turn else before.generation)
        assert now.running is None or now.running.generation == now.generation
