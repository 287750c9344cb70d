"""A fence that somebody works under: theirs by its token, beside whatever else stands.

Who isn't a lane, and writes what only a lane or nobody may write, proves itself as a lane does: after each
claim a record is appended and read, and the own fence has to stand there. Whoever lifts it later, and lets a
run claim, beats the owner that was proved; whoever has lifted it before is seen.
"""

from __future__ import annotations

from dataclasses import dataclass

from causeway.brokers.wire.target_log import WireTarget
from causeway.core.kernel.errors import FlowHeld
from causeway.core.kernel.identity import Generation
from causeway.core.state.flow_state import FlowState
from causeway.usecases.run_lock.write_proof import proved_state

_CLAIMED_BY = "by-hand"


@dataclass(frozen=True, slots=True)
class CommandFence:
    flow: str
    token: str
    generation: Generation
    """Of whatever is set while it stands."""

    async def prove(self, target: WireTarget) -> None:
        """Whichever node answers: a leader that was deposed can't show the record that is appended here.

        :raises FlowHeld: it doesn't stand any more.
        """
        self._refuse_without(await proved_state(target, self.flow, _CLAIMED_BY))

    async def check(self, target: WireTarget) -> None:
        """The same, as far as whoever answers knows: between two proofs."""
        self._refuse_without(await target.flow_state(self.flow))

    def _refuse_without(self, state: FlowState) -> None:
        if self.token not in state.fences:
            raise fell(self.flow, state, self.token)


def command_fence_of(flow: str, state: FlowState, owner: str) -> CommandFence:
    """The newest one of that owner.

    :raises FlowHeld: somebody has lifted it.
    """
    own = state.fences_of(owner)
    if not own:
        raise fell(flow, state, "")
    return CommandFence(flow, own[-1].token, Generation(own[-1].generation))


def fell(flow: str, state: FlowState, token: str) -> FlowHeld:
    lift = state.lifted.get(token)
    return FlowHeld(
        f"fence of {flow}",
        rule="which this command works under, "
        + (f"was lifted {lift}" if lift else "doesn't stand any more")
        + "; from then on nothing was written",
        remedy="run the same command again: it looks at what is true by then",
    )
