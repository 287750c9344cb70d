"""The proof of a writer that no coordinator fences: what has to be true is asked right before each send.

Written first, then read: a leader of the flows topic that was deposed, and doesn't know it, can't take the
record that is written here, so it can't hide a fence either.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.ports import Clock, Unreachable
from causeway.core.groups.late_commits import OUTLIVED_SECONDS, PROOF_SECONDS
from causeway.core.model.naming import FLOWS_TOPIC
from causeway.core.state.flow_records import claimed_record
from causeway.core.state.flow_state import FlowState

_TRIES = 10
_NO_LANE = -1


class AskedProof:
    """Implements `core.ports.Proof` by a question, which raises where the answer is no."""

    def __init__(self, clock: Clock, ask: Callable[[], Awaitable[None]]) -> None:
        self._clock, self._ask = clock, ask
        self._asked_at = float("-inf")

    @property
    def is_fresh(self) -> bool:
        return self._clock.boottime() - self._asked_at <= PROOF_SECONDS

    async def renew(self) -> None:
        for _ in range(_TRIES):
            if self.is_fresh:
                return
            asked_at = self._clock.boottime()  # the answer was true then, or later
            await self._ask()
            self._asked_at = asked_at
        if not self.is_fresh:
            raise Unreachable(
                f"whether this may go on was answered {_TRIES} times, and never within {PROOF_SECONDS:g} s: "
                "nothing is sent on an older answer"
            )


async def proved_state(target: WireTarget, flow: str, who: str) -> FlowState:
    """The flow's state with every turn that was taken before this was asked; the flow has run before.

    `who` keeps one record of a kind of writer in the topic, however often it asks.
    """
    key, value = claimed_record(flow, lane=who, generation=_NO_LANE)
    await target.append_plain(FLOWS_TOPIC, key, value)
    return await target.flow_state(flow)


async def outlive_others(clock: Clock) -> None:
    """So long that no proof of others from before holds, and nothing that was sent on one is on its way."""
    await clock.sleep(OUTLIVED_SECONDS)
