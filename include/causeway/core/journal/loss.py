"""The journal of failovers beside the flows topic: what one has lost, the other one may still tell.

A run is kept in the journal before it fences its flow, and each failover says there which turn it saw.
"""

from __future__ import annotations

from causeway.core.journal.journal import AGREED, Journal, Status
from causeway.core.journal.journal_format import (
    FAILOVERS_TOPIC,
    VERSION,
    journal_record,
    named_in,
    parse_ours,
)
from causeway.core.kernel.errors import CausewayError, ProtocolFault
from causeway.core.offsets.lost_log import Evidence
from causeway.core.state.fences import Fence
from causeway.core.state.flow_state import FlowState

_RUNS = ("failover ", "failback ")
_TELL_A_TURN = (AGREED, Status.DONE, Status.GIVEN_UP)
_MOST = 1 << 62
"""A turn is never newer than that: somebody else wrote it."""


def lost_runs(state: FlowState, journal: Journal) -> list[Fence]:
    """The fences of runs that the journal doesn't know."""
    known = {f"failover {run}" for run in journal.runs} | {f"failback {run}" for run in journal.failbacks}
    return [f for f in state.standing if f.owner.startswith(_RUNS) and f.owner not in known]


def lost_run_words(fence: Fence) -> str:
    return f"{FAILOVERS_TOPIC} has lost {fence.owner}, which fences the flow: it can't be rolled back"


def lost_run_remedy(flow: str, fence: Fence) -> str:
    return (
        "where its groups stood before is in its sheet and its report; once nobody writes to the target, "
        f'`causeway lift {flow} --fence {fence.generation} --because "..."` opens the flow'
    )


def lost_run_fault(flow: str, fence: Fence) -> CausewayError:
    return ProtocolFault(lost_run_words(fence), remedy=lost_run_remedy(flow, fence))


def turn_known(flow: str, offset: int, key: bytes | None, value: bytes | None) -> Evidence | None:
    """The turn that a failover of the flow saw, by one record of the journal; None: the record tells of none.

    What can't be read says nothing here: the journal's own readers refuse it.
    """
    kind, whose, run = named_in(key) or ("", "", "")
    if kind not in _TELL_A_TURN or whose != flow:
        return None
    generation = _generation_in(key, value)
    if generation < 0:
        return None
    what = f"failover {run} in {FAILOVERS_TOPIC}"
    return Evidence(generation=generation, what=what, record=journal_record(offset))


def _generation_in(key: bytes | None, value: bytes | None) -> int:
    parsed = parse_ours(key, value) if value is not None else None
    if parsed is None or parsed[1].get("v") != VERSION:
        return -1
    said = parsed[1].get("generation")
    return said if type(said) is int and said < _MOST else -1
