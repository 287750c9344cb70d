"""The records of `causeway-flows.internal`, as they are written. What they add up to is `flow_state.py`'s."""

from __future__ import annotations

from collections.abc import Iterable

from causeway.core.state.flow_log import (
    as_record,
)
from causeway.core.state.flow_state import FlowState, lanes_vary
from causeway.core.state.gap_ledger import AcceptedGap
from causeway.core.state.known_pairs import KnownPair, pair_value
from causeway.core.state.parked import LastParked
from causeway.core.state.position_ledger import ManualPosition


def run_record(
    flow: str, before: FlowState, *, holder: str, run_id: str, lanes: int, at_ms: int
) -> tuple[bytes, bytes]:
    """`before` is the state that the run found: what compaction may take with older records is carried on."""
    value: dict[str, object] = {
        "holder": holder,
        "run": run_id,
        "lanes": lanes,
        "most_lanes": max(before.most_lanes, lanes),
        "varied": lanes_vary(before, lanes),
        "at_ms": at_ms,
    }
    return as_record("run", flow, value)


def alive_record(flow: str, *, generation: int, ended: bool, at_ms: int) -> tuple[bytes, bytes]:
    """A sign of life, or the run's own word that it ended."""
    return as_record("ended" if ended else "alive", flow, {"generation": generation, "at_ms": at_ms})


def parked_record(flow: str, parked: LastParked) -> tuple[bytes, bytes]:
    return as_record("parked", flow, parked.as_dict())


def pair_record(flow: str, target_topic: str, pair: KnownPair) -> tuple[bytes, bytes]:
    """What a run writes before the first record."""
    key, body = as_record("pairs", flow, pair_value(target_topic, pair))
    return key + b"/" + target_topic.encode(), body


def adopted_record(
    flow: str, target_topic: str, pair: KnownPair, partitions: Iterable[int]
) -> tuple[bytes, bytes]:
    """A person's word: these partitions of the pair go on where they were set at `pair.adopted_at`."""
    value = {**pair_value(target_topic, pair), "adopted": sorted(partitions)}
    key, body = as_record("adopted", flow, value)
    return key + f"/{target_topic}/{pair.adopted_at}".encode(), body


def forgotten_record(flow: str, target_topic: str, pair: KnownPair) -> tuple[bytes, bytes]:
    """A person's word: this pair is over; what comes under its names begins again."""
    key, body = as_record("forgotten", flow, pair_value(target_topic, pair))
    return key + f"/{target_topic}/{pair.source_topic_id.hex}/{pair.target_topic_id.hex}".encode(), body


def gap_record(flow: str, accepted: AcceptedGap) -> tuple[bytes, bytes]:
    key, body = as_record("gap", flow, accepted.as_dict())
    return key + f"/{accepted.name}".encode(), body


def set_record(flow: str, entry: ManualPosition) -> tuple[bytes, bytes]:
    key, body = as_record("set", flow, entry.as_dict())
    return key + f"/{entry.name}".encode(), body


def clusters_record(flow: str, *, source: str, target: str) -> tuple[bytes, bytes]:
    return as_record("clusters", flow, {"source": source, "target": target})


def claimed_record(flow: str, *, lane: int | str, generation: int) -> tuple[bytes, bytes]:
    """A lane was claimed by a worker of that generation, or by a command with a fence of that one."""
    key, body = as_record("claimed", flow, {"generation": generation})
    return key + f"/{lane}".encode(), body
