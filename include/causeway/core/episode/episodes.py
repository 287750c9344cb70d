"""Episodes: a failover with its failback, as the journal of the flow's target keeps them.

What a group holds on the target when it returns to the source belongs to an episode that is over. It is kept
with the failback, so it can be distinguished from what the group commits there later: only the very same
commit, offset and metadata, is the episode's. A sync may replace that one, and a failover may move the group
on from it.

Invariants
    A. No clock decides. A group that has committed there since, anything else, has gone on by itself.
    B. A homecoming that was rolled back has closed nothing: its groups are still on the target.
"""

from __future__ import annotations

from collections.abc import Collection

from causeway.core.failback.divergence import FailbackRun, Step, is_stand_by
from causeway.core.failover.request import Mode
from causeway.core.groups.sync_rules import Committed, Held
from causeway.core.journal.journal import FailoverRun, Journal, Status
from causeway.core.kernel.identity import TopicPartition
from causeway.core.state.flow_state import FlowState


def homecomings(journal: Journal, flow: str) -> list[FailbackRun]:
    """In the order in which they began."""
    runs = (run for run in journal.failbacks.values() if run.flow == flow and run.step is Step.HOME)
    return [run for run in runs if not run.is_given_up]


def is_closed(run: FailoverRun, state: FlowState, journal: Journal) -> bool:
    """Whether a failover that is done belongs to an episode that is over. A homecoming stands as long as its
    fence does, or the one that has taken its place; any other one until the failback is completed."""
    if run.wish.mode is Mode.HOME:
        owners = [fence.owner for fence in state.standing]
        return not any(owner == run.fence_words or is_stand_by(owner) for owner in owners)
    back = journal.newest_failback(run.flow)
    return back is not None and back.step is Step.HOME


def is_left_behind(run: FailoverRun, state: FlowState, journal: Journal) -> bool:
    """Whether a rollback that hasn't ended stops nobody any more: the mirror has gone on since, or the
    failback is completed. It may still be gone on with, as long as no other failover has begun."""
    if run.status is not Status.ROLLING_BACK:
        return False
    if run.wish.mode is not Mode.HOME and is_closed(run, state, journal):
        return True
    return run.generation >= 0 and run.is_overtaken(state) and not state.fences_of(run.fence_words)


def was_rolled_back(run: FailbackRun, journal: Journal) -> bool:
    """Whether it was completed, and that was rolled back. `journal` is of the cluster that the groups
    returned to."""
    moved = journal.runs.get(str(run.facts.get("moved"))) if run.step is Step.HOME else None
    return moved is not None and moved.status is Status.ROLLED_BACK


def closed_by(journal: Journal, flow: str, taken_back: Collection[str]) -> Held:
    """What groups held on the flow's target when they last returned to the source.

    `taken_back`: failovers of the other direction that were rolled back, homecomings among them.
    """
    closed: dict[str, dict[TopicPartition, Committed]] = {}
    for run in homecomings(journal, flow):
        if run.facts.get("moved") in taken_back:
            continue
        for group, shifts in journal.loose.get(run.run, {}).items():
            held = {tp: shift.before for tp, shift in shifts.items() if shift.before is not None}
            closed.setdefault(group, {}).update(held)
    return closed
