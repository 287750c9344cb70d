"""What a rollback writes into the journal, and what either side writes there only to read up to it.

Each try to take a run back has a token of its own in its keys, so compaction takes no word of another try. A
version that doesn't know `rolling back` refuses the journal: it would go on with the failover.
"""

from __future__ import annotations

from causeway.core.journal.journal import FailoverRun, Status
from causeway.core.journal.journal_format import ASKED, as_journal_record
from causeway.core.journal.written_records import agreed_record


def claim_record(
    run: FailoverRun, token: str, *, by: str, at_ms: int, withdrawn: bool = False
) -> tuple[bytes, bytes]:
    """`withdrawn`: it put nobody back, and the run stands as if it had never been."""
    said = {"by": by, "at_ms": at_ms, "claim": token, **({"withdrawn": True} if withdrawn else {})}
    return as_journal_record([str(Status.ROLLING_BACK), run.flow, run.run, token], said)


def claim_asked(run: FailoverRun, token: str) -> tuple[bytes, bytes]:
    return as_journal_record([str(Status.ROLLING_BACK), run.flow, run.run, token, ASKED], {})


def rolled_back_record(run: FailoverRun, token: str, *, by: str, at_ms: int) -> tuple[bytes, bytes]:
    """Counts only as long as no other try has begun since."""
    value = {"by": by, "at_ms": at_ms, "generation": -1, "facts": {}, "claim": token}
    return as_journal_record([str(Status.ROLLED_BACK), run.flow, run.run, token], value)


def failover_asked(run: FailoverRun) -> tuple[bytes, bytes]:
    """By the failover, once its plan was agreed to: that is how earlier versions read it."""
    assert run.is_agreed, run
    key, value = agreed_record(run.flow, run.run, by=run.by, at_ms=run.begun_ms, generation=run.generation)
    return key.removesuffix(b"]") + f',"{ASKED}"]'.encode(), value
