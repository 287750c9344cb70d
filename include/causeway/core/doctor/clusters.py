"""Who the two clusters are, and what time it is there.

Reasons: a connection that points at the wrong cluster copies a cluster into itself or writes a flow's records
where its positions mean nothing; a target whose clock is far too early refuses fresh records as if they came
from the future, and its retention by time deletes at the wrong hour.
"""

from __future__ import annotations

from collections.abc import Sequence

from causeway.core.doctor.finding import Finding, failed, passed, warn
from causeway.core.kernel.acl_vocabulary import Operation, grant_command
from causeway.core.kernel.cluster_facts import UNLIMITED, ClockReading, ClusterView
from causeway.core.kernel.errors import BadInput
from causeway.core.model.flow import Flow
from causeway.core.state.flow_state import FlowState

CHECK_IDENTITY, CHECK_CLOCK = "identity", "clock"
_TOLERATED_MS = 5_000


def judge_identity(flow: Flow, source_id: str, target_id: str, state: FlowState | None) -> Finding:
    """`state` None: may not be read."""
    if source_id == target_id:
        return failed(
            CHECK_IDENTITY,
            flow.name,
            f"{flow.source} and {flow.target} are one and the same cluster ({source_id})",
            "point one of the two connections at the other cluster",
            BadInput,
        )
    if state is None:
        return warn(
            CHECK_IDENTITY,
            flow.name,
            "two clusters; whether they are those that the flow began with can't be seen",
            "grant what `rights` names on causeway-flows.internal",
        )
    for alias, known, found in (
        (flow.source, state.source_cluster_id, source_id),
        (flow.target, state.target_cluster_id, target_id),
    ):
        if known is not None and known != found:
            return failed(
                CHECK_IDENTITY,
                flow.name,
                f"{alias} is cluster {found}; the flow began with {known} under that name",
                "use a new flow name for other clusters, or correct the connection",
                BadInput,
            )
    since = "the flow hasn't run yet" if state.source_cluster_id is None else "as the flow remembers them"
    return passed(CHECK_IDENTITY, flow.name, f"two clusters, {source_id} and {target_id}, {since}")


def judge_clock(view: ClusterView) -> Finding:
    """Against the machine that asks: lag in seconds and `start: <timestamp>` are read off both clocks."""
    reading = view.clock
    if reading is None:
        return warn(
            CHECK_CLOCK,
            view.alias,
            "can't be seen",
            grant_command(view.principal, Operation.DESCRIBE.word, "cluster", ""),
        )
    off = _beyond_doubt_ms(reading.ahead_ms, reading.round_trip_ms)
    said = _clock_text(reading.ahead_ms, "this machine's clock")
    if off > _TOLERATED_MS:
        return warn(CHECK_CLOCK, view.alias, said, f"run a time service (NTP) here and on {view.alias}")
    return passed(CHECK_CLOCK, view.alias, said)


def judge_both_clocks(
    flow: Flow, source: ClockReading | None, target: ClockReading | None, most_ahead_ms: int
) -> Finding | None:
    """`most_ahead_ms`: how far in the future a record may be for the target (timestamp.after.max.ms)."""
    if source is None or target is None:
        return None  # reported already, cluster by cluster
    ahead = source.ahead_ms - target.ahead_ms
    off = _beyond_doubt_ms(ahead, source.round_trip_ms + target.round_trip_ms)
    said = f"{flow.source}'s clock is {_clock_text(ahead, f'that of {flow.target}')}"
    remedy = f"run a time service (NTP) on {flow.source} and {flow.target}"
    if ahead > 0 and off > most_ahead_ms < UNLIMITED:
        return failed(
            CHECK_CLOCK,
            flow.name,
            f"{said}: more than the {most_ahead_ms:,} ms that {flow.target} takes; fresh records are refused",
            remedy,
        )
    if off > _TOLERATED_MS:
        return warn(CHECK_CLOCK, flow.name, said, remedy)
    return passed(CHECK_CLOCK, flow.name, said)


def _beyond_doubt_ms(ahead_ms: int, doubt_ms: int) -> int:
    return max(abs(ahead_ms) - doubt_ms, 0)


def _clock_text(ahead_ms: int, of: str) -> str:
    if abs(ahead_ms) < 1_000:
        return f"within a second of {of}"
    return f"{abs(ahead_ms) / 1000:,.1f} s {'ahead of' if ahead_ms > 0 else 'earlier than'} {of}"


def worst(readings: Sequence[ClockReading]) -> ClockReading | None:
    """Of several brokers' clocks the one that is furthest off."""
    return max(readings, key=lambda each: abs(each.ahead_ms), default=None)
