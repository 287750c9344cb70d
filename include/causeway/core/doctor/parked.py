"""Partitions that are parked: a flow whose clusters are fit may still wait for a person."""

from __future__ import annotations

from collections.abc import Mapping

from causeway.core.doctor.finding import PARKED_EXIT_CODE, Finding, Result, passed, warn
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.plurals import counted
from causeway.core.model.flow import Flow
from causeway.core.state.parked import Parked, ParkReason

CHECK_PARKED = "parked"
_MOST = 5


def judge_parked(flow: Flow, parked: Mapping[TopicPartition, Parked]) -> list[Finding]:
    """One line each, the first ones of many; rights that are missing are another check's."""
    standing = {tp: why for tp, why in parked.items() if why.reason is not ParkReason.NOT_AUTHORIZED}
    if not standing:
        return [] if parked else [passed(CHECK_PARKED, flow.name, "no partition is parked")]
    shown = sorted(standing.items())[:_MOST]
    found = [_failed(flow, f"{tp}: {why.reason}: {why.facts}", why.remedy) for tp, why in shown]
    if more := len(standing) - len(shown):
        said = f"{counted(more, 'partition')} more are parked"
        found.append(_failed(flow, said, f"`causeway status {flow.name}` shows them all"))
    return found


def parked_not_looked_at(flow: Flow, why: str) -> Finding:
    return warn(CHECK_PARKED, flow.name, f"can't be looked for: {why}", "cure that, and try again")


def _failed(flow: Flow, finding: str, remedy: str) -> Finding:
    return Finding(
        result=Result.FAILED,
        check=CHECK_PARKED,
        where=flow.name,
        finding=finding,
        remedy=remedy,
        exit_code=PARKED_EXIT_CODE,
    )
