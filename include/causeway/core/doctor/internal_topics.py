"""Records of the flow's own topics that can't be read or aren't Causeway's, and topics that are gone."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from causeway.core.doctor.finding import Finding, failed, failed_by, passed
from causeway.core.journal.journal import Journal
from causeway.core.journal.loss import lost_run_remedy, lost_run_words, lost_runs
from causeway.core.kernel.errors import CausewayError, ProtocolFault
from causeway.core.model.flow import Flow
from causeway.core.model.naming import FLOWS_TOPIC
from causeway.core.offsets.unreadable_records import OddInMap, map_gone_remedy, map_gone_rule
from causeway.core.state.flow_state import FlowState
from causeway.core.state.repair_commands import recover_record_command
from causeway.core.state.unreadable_records import Odd

CHECK_OWN_RECORDS = "own records"
_MOST = 5
_WHO = "find out who wrote it, and take their Write on the topic away"


def judge_log(flow: Flow, troubles: Iterable[CausewayError], foreign: Odd) -> list[Finding]:
    """Of the flows topic. `troubles` are the flow's own."""
    found = [failed_by(CHECK_OWN_RECORDS, flow.target, trouble) for trouble in list(troubles)[:_MOST]]
    for record in list(foreign.values())[:_MOST]:
        said = f"{record.name} {record.why}; it is stepped over, and harms nothing"
        found.append(_failed(flow, said, _record_named(flow, record.offset)))
    more = len(foreign) - _MOST
    if more > 0:
        found.append(_failed(flow, f"{more} more records of {FLOWS_TOPIC} aren't Causeway's", _WHO))
    return found or [passed(CHECK_OWN_RECORDS, flow.target, f"each record of {FLOWS_TOPIC} can be read")]


def judge_map(
    flow: Flow, odd: Iterable[OddInMap], stepped_over: Collection[str], *, is_gone: bool
) -> list[Finding]:
    if is_gone:
        return [_failed(flow, f"{flow.map_topic} {map_gone_rule(flow)}", map_gone_remedy(flow))]
    left = [record for record in odd if record.name not in stepped_over]
    return [_of_map(flow, record) for record in left[:_MOST]]


def judge_lost_journal(flow: Flow, state: FlowState, journal: Journal) -> list[Finding]:
    return [
        _failed(flow, lost_run_words(fence), lost_run_remedy(flow.name, fence))
        for fence in lost_runs(state, journal)
    ]


def _of_map(flow: Flow, record: OddInMap) -> Finding:
    if record.is_newer:
        return _failed(
            flow,
            f"record {record.name} was written by a newer Causeway",
            "upgrade: run that version of Causeway here",
        )
    if record.target is None:
        said = f"record {record.name} isn't Causeway's; it is stepped over, and harms nothing"
        return _failed(flow, said, _record_named(flow, record.name))
    said = (
        f"record {record.name} can't be read: offsets of {record.target} that were mirrored up to it aren't "
        "translated any more"
    )
    return _failed(flow, said, _record_named(flow, record.name))


def _record_named(flow: Flow, record: int | str) -> str:
    return f"{_WHO}; {recover_record_command(flow.name, record)} takes it off this list"


def _failed(flow: Flow, said: str, remedy: str) -> Finding:
    return failed(CHECK_OWN_RECORDS, flow.target, said, remedy, ProtocolFault)
