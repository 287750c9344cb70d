"""What the steps of the rehearsal mean for a flow.

Reason: settings can be read, promises have to be tried. A broker that lets a beaten owner's batch in, or
shows what wasn't committed, breaks exactly once without an error anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from causeway.core.doctor.finding import Finding, failed, passed, together, warn
from causeway.core.doctor.versions import VERIFICATION
from causeway.core.kernel.acl_vocabulary import NeededRight
from causeway.core.kernel.cluster_facts import ClusterView
from causeway.core.kernel.errors import CausewayError, ClusterTrouble, IncompatibleBroker, ProtocolFault

CHECK_REHEARSAL = "rehearsal"
_V2 = 2


def rehearsed(alias: str, finding: str) -> Finding:
    return passed(CHECK_REHEARSAL, alias, finding)


def trouble_with(alias: str, step: str, said: str) -> Finding:
    """The step was not refused and not done: whether a run would work isn't known."""
    return failed(
        CHECK_REHEARSAL,
        alias,
        f"{step}: {said}",
        "look at the brokers' logs, then run it again",
        ClusterTrouble,
    )


def contradicted(alias: str, finding: str) -> Finding:
    """What was read isn't what was committed, or was read too early."""
    return failed(
        CHECK_REHEARSAL, alias, finding, f"don't run a flow into {alias}; report this line", ProtocolFault
    )


def not_fenced(alias: str, what: str) -> Finding:
    return contradicted(alias, f"fence: {what} of an owner that had been beaten was accepted")


def got_in(alias: str, where: str, transaction_version: int) -> Finding:
    finding = (
        f"late batch: a beaten owner's batch to {where} was accepted, and hangs there as an open transaction"
    )
    if transaction_version >= _V2:
        return contradicted(alias, finding)
    return failed(
        CHECK_REHEARSAL,
        alias,
        f"{finding}: the brokers don't verify transactions",
        f"set {VERIFICATION}=true on every broker of {alias}",
        IncompatibleBroker,
    )


def not_rehearsed(alias: str, why: str, remedy: str) -> Finding:
    return warn(CHECK_REHEARSAL, alias, f"skipped: {why}", remedy)


def rights_missing(view: ClusterView, missing: Sequence[NeededRight]) -> Finding:
    """The scratch things need rights that no flow needs: their lack says nothing against the flow."""
    lacks = ", ".join(f"{right.operation.word} on {right.resource}" for right in missing)
    return not_rehearsed(
        view.alias,
        f"{view.principal} lacks {lacks} {missing[0].name}*; nothing was written",
        together(right.command(view.principal) for right in missing),
    )


def left_behind(alias: str, name: str, refusals: Iterable[CausewayError]) -> list[Finding]:
    return [
        warn(
            CHECK_REHEARSAL,
            alias,
            f"{name} is still there: {error.what}: {error.rule}",
            together(each for each in (error.remedy, f"kafka-topics.sh --delete --topic {name}") if each),
        )
        for error in refusals
    ]


def said_of_left_behind(name: str, refusals: Iterable[CausewayError]) -> str:
    """In the last line of a doctor that was interrupted; empty: nothing stays."""
    return "; ".join(
        f"{name} stays ({error.rule}): kafka-topics.sh --delete --topic {name}" for error in refusals
    )
