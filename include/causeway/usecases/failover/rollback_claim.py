"""The claim of a try to roll a failover back, and how it is withdrawn by a try that has put nobody back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import uuid4

from causeway.core.journal.journal import FailoverRun
from causeway.core.journal.rollback_records import claim_record
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import CausewayError
from causeway.core.model.flow import Flow
from causeway.usecases.journal.store import write_journal
from causeway.usecases.run_lock.ownership import Say
from causeway.usecases.session.source_may_be_gone import FlowSession, in_session


@dataclass(slots=True)
class RollbackTry:
    by: str
    at_ms: int = 0
    token: str = field(default_factory=lambda: uuid4().hex[:12])
    is_claimed: bool = False
    """Its word is in the journal, or may be."""
    is_proved: bool = False
    """Somebody may have been put back since, or the journal have it that all is."""

    def claim(self, run: FailoverRun, *, withdrawn: bool = False) -> tuple[bytes, bytes]:
        return claim_record(run, self.token, by=self.by, at_ms=self.at_ms, withdrawn=withdrawn)


@contextmanager
def withdrawn_if_idle(
    flow: Flow, target: ClusterEndpoint, run: FailoverRun, own: RollbackTry, say: Say
) -> Iterator[None]:
    """The claim of a try that has put nobody back would stop the failover, and any failback, for nothing."""
    try:
        yield
    except BaseException as stop:  # Ctrl-C too: the loop that it broke isn't used again
        is_withdrawn = own.is_claimed and not own.is_proved and _withdraw(flow, target, run, own, say)
        if is_withdrawn and isinstance(stop, KeyboardInterrupt):
            raise KeyboardInterrupt(f"nobody was put back; failover {run.run} stands as before") from None
        raise


def _withdraw(flow: Flow, target: ClusterEndpoint, run: FailoverRun, own: RollbackTry, say: Say) -> bool:
    """With a connection of its own. What it can't is reported, and what ended the rollback counts."""
    try:
        in_session(flow, None, target, lambda anew: write_journal(anew, [own.claim(run, withdrawn=True)]))
    except CausewayError as error:
        say(
            f"{flow.name}: nobody was put back, but failover {run.run} may count as being rolled back "
            f"({error.what}: {error.rule}): the same command goes on with that"
        )
        return False
    return True


async def withdraw_others(sides: FlowSession, run: FailoverRun) -> None:
    """Claims of tries that died: nobody goes on with them any more, and whoever lives hears it."""
    stale = [
        claim_record(run, claim.token, by=claim.by, at_ms=claim.at_ms, withdrawn=True) for claim in run.claims
    ]
    if stale:
        await write_journal(sides, stale)
