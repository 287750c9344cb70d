"""The proof that a flow is open, for changes that no coordinator fences: settings and rules of mirrors.

A broker takes them from whoever has the right, also from a sync that slept through a failover. So each
request is sent only on a proof that no fence stands, which is at most two seconds old by a clock that goes on
while the machine sleeps; and nothing is changed by a look that is older than a minute, because the source
may have changed its mind since.

Between the proof and the request a process may still be held up. That can't be prevented, and it is
detected: after each request the flow is asked again, and a fence that stands by then is reported with what
may have been changed after it. A sync that dies in that moment reports nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from causeway import interruption
from causeway.core.groups.late_commits import PROOF_SECONDS
from causeway.core.kernel.errors import ClusterUnreachable, FlowFenced
from causeway.core.model.flow import Flow
from causeway.core.state.flow_state import FlowState
from causeway.usecases.run_lock.ownership import refuse_fenced
from causeway.usecases.run_lock.write_proof import proved_state
from causeway.usecases.session.both_clusters import Clusters

_LOOK_SECONDS = 60.0
_LONGEST_REQUEST_SECONDS = 60.0
"""A request gives up after half of it, and each proof takes its time: beyond it, somebody was held up."""
_TRIES = 10
_MOST_IN_WORDS = 50
T = TypeVar("T")


class StillOpen:
    """Of one flow, for one sync."""

    def __init__(self, flow: Flow, clusters: Clusters) -> None:
        self._flow, self._clusters, self._network = flow, clusters, clusters.network
        self._proved_at, self._state = float("-inf"), FlowState()

    def now(self) -> float:
        """When a look begins."""
        return self._network.boottime()

    async def change(self, what: Sequence[str], looked_at: float, ask: Callable[[], T]) -> T:
        """What `ask` answers, which sends one request for these changes, and blocks.

        :raises FlowFenced: nothing was sent; or it was, and these may have been made after the fence.
        :raises ClusterUnreachable: the look is too old, or nobody can prove anything in time.
        """
        await self._be_sure(looked_at)
        open_at, generation = self._proved_at, self._state.generation
        try:
            return ask()
        finally:
            interruption.check()
            await self._look_back(what, open_at, generation)

    async def _be_sure(self, looked_at: float) -> None:
        for _ in range(_TRIES):
            if self.now() - looked_at > _LOOK_SECONDS:
                raise ClusterUnreachable(
                    f"flow {self._flow.name}",
                    rule=f"both sides were looked at more than {_LOOK_SECONDS:.0f} s ago, and change",
                    remedy="run the same command again: it goes on from what is there then",
                )
            if self.now() - self._proved_at <= PROOF_SECONDS:
                return
            await self._prove()
            refuse_fenced(self._flow.name, self._state)
        raise ClusterUnreachable(
            f"flow {self._flow.name}",
            rule=f"it takes longer than {PROOF_SECONDS:.0f} s to ask whether a fence stands",
            remedy="look at the target's brokers, and run the same command again",
        )

    async def _look_back(self, what: Sequence[str], open_at: float, generation: int) -> None:
        await self._prove()
        fence, held_up = self._state.fence, self._proved_at - open_at
        if fence is not None:
            why = f"fenced by {fence.by} while a change was on its way, which may have come after the fence"
        elif held_up > _LONGEST_REQUEST_SECONDS and self._state.generation != generation:
            why = f"a change was held up for {held_up:.0f} s, and a fence may have come and gone meanwhile"
        else:
            return
        raise FlowFenced(
            "flow",
            value=self._flow.name,
            rule=f"{why}: {_in_words(what)}",
            remedy="look at these on the target: who raises a fence counts on nothing changing after it",
        )

    async def _prove(self) -> None:
        """Read up to a record of its own: a fence before it is seen, whichever node answers."""
        name, target = self._flow.name, self._clusters.target
        asked_at = self.now()
        self._state = await proved_state(target, name, "upkeep")
        self._proved_at = asked_at


def _in_words(changes: Sequence[str]) -> str:
    left_out = len(changes) - _MOST_IN_WORDS
    named = ", ".join(changes[:_MOST_IN_WORDS])
    return f"{named} and {left_out:,} more of the same request" if left_out > 0 else named
