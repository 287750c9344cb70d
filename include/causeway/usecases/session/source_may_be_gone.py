"""Both clusters for a failover: the target is needed, the source may be gone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from causeway import interruption
from causeway.brokers.admin.probe import probe
from causeway.brokers.transport.connection import Network, Wire
from causeway.brokers.wire.consumer_groups import ConsumerGroups
from causeway.brokers.wire.log_reader import WireLogReader
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.ports import LaneFenced, OutcomeUnknown, Refused, Unreachable
from causeway.core.groups.sync_rules import Held, Offsets
from causeway.core.journal.journal import FailoverRun
from causeway.core.kernel.acl_vocabulary import Operation
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import BadInput, ClusterTrouble, ClusterUnreachable, NotAuthorized
from causeway.core.model.flow import Flow
from causeway.core.state.flow_state import FlowState
from causeway.usecases.session.both_clusters import open_target, state_on
from causeway.usecases.session.flows_topic_health import refuse_unsound

T = TypeVar("T")
_PATIENCE_SECONDS = 4.0
"""With a source that may be gone: somebody is waiting."""


@dataclass(slots=True)
class FlowSession:
    network: Network
    target: WireTarget
    source: WireLogReader | None
    silent: str = ""
    """Why the source can't be asked; once it was silent it isn't asked again."""
    home_of: Flow | None = None
    """The flow from which everything returns: groups that read its mirrors go back through its map."""

    async def of_source(self, ask: Callable[[WireLogReader], Awaitable[T]]) -> T | None:
        """None: the source is silent, since now or since earlier."""
        if self.source is None:
            return None
        try:
            return await ask(self.source)
        except NotAuthorized:
            raise  # it does answer
        except (ClusterTrouble, Unreachable) as trouble:
            self.silence(str(trouble))
            return None

    def silence(self, why: str) -> None:
        if self.source is not None:
            self.source.wire.disconnect()
        self.source, self.silent = None, why

    async def flow_state(self, flow: Flow, *, may_be_new: bool = False) -> FlowState:
        """:raises BadInput: the target has never seen a flow of that name.
        :raises ProtocolFault: or what it knew is lost.
        """
        state = await state_on(self.target, flow.name)
        if not state.pairs:
            await refuse_unsound(flow, self.target, state)
        if not state.pairs and not may_be_new:
            raise BadInput(
                "flow",
                value=flow.name,
                rule=f"has never mirrored anything to {flow.target}, so there is nothing to fail over to",
                remedy=f"`causeway status {flow.name}` says what it did",
            )
        self._refuse_other_target(flow, state)
        return state

    def _refuse_other_target(self, flow: Flow, state: FlowState) -> None:
        known, found = state.target_cluster_id, self.target.wire.cluster_id
        if known is not None and known != found:
            raise BadInput(
                f"cluster {flow.target} of flow {flow.name}",
                value=found,
                rule=f"this flow began with cluster {known} under that name",
                remedy="correct the connection",
            )
        there = self.source.wire.cluster_id if self.source is not None else None
        if there is not None and state.source_cluster_id not in (None, there):
            self.silence(
                f"cluster {flow.source} is {there} now, and this flow began with {state.source_cluster_id}"
            )


@contextmanager
def open_session(source: ClusterEndpoint, target: ClusterEndpoint) -> Iterator[FlowSession]:
    """:raises ClusterTrouble: the target can't be used, and why."""
    with open_target_session(target) as sides:
        sides.source, sides.silent = WireLogReader(Wire(source, sides.network)), ""
        try:
            _try_source(sides, source)
            yield sides
        finally:
            sides.silence(sides.silent)


@contextmanager
def open_target_session(target: ClusterEndpoint) -> Iterator[FlowSession]:
    """For what needs no source.

    :raises ClusterTrouble: it can't be used, and why.
    """
    with open_target(target) as (network, log):
        yield FlowSession(network, log, None, "it isn't asked")


def run_blocking(sides: FlowSession, work: Callable[[], Awaitable[T]]) -> T:
    """The one bridge: a command, or a task, waits here until its clusters have been asked."""
    return sides.network.run(work)


def run_in_session(
    source: ClusterEndpoint, target: ClusterEndpoint, work: Callable[[FlowSession], Awaitable[T]]
) -> T:
    """:raises ClusterTrouble: as `open_session`, and whatever `work` raises."""
    with open_session(source, target) as sides:
        return run_blocking(sides, lambda: work(sides))


def run_in_target_session(target: ClusterEndpoint, work: Callable[[FlowSession], Awaitable[T]]) -> T:
    """:raises ClusterTrouble: as `open_target_session`, and whatever `work` raises."""
    with open_target_session(target) as sides:
        return run_blocking(sides, lambda: work(sides))


def in_session(
    flow: Flow,
    source: ClusterEndpoint | None,
    target: ClusterEndpoint,
    work: Callable[[FlowSession], Awaitable[T]],
) -> T:
    """The same for a failover of `flow`. `source` is None: the work needs no source.

    :raises ClusterUnreachable: as `trouble_of`.
    """

    async def named(sides: FlowSession) -> T:
        with trouble_of(flow):
            return await work(sides)

    if source is None:
        return run_in_target_session(target, named)
    return run_in_session(source, target, named)


def _try_source(sides: FlowSession, source: ClusterEndpoint) -> None:
    try:
        probe(source, timeout_seconds=_PATIENCE_SECONDS)
        assert sides.source is not None
        run_blocking(sides, sides.source.wire.connect)
    except (ClusterTrouble, Unreachable) as trouble:
        sides.silence(str(trouble))


@contextmanager
def trouble_of(flow: Flow) -> Iterator[None]:
    """:raises ClusterUnreachable: the target didn't answer in the middle; nothing is guessed."""
    try:
        yield
    except (Unreachable, OutcomeUnknown, LaneFenced) as trouble:
        raise ClusterUnreachable(
            f"failover of {flow.name}",
            rule=str(trouble),
            remedy="run the same command again: it goes on from what is committed",
        ) from trouble


@contextmanager
def noted_if_interrupted(left: str, *, after: str = "") -> Iterator[None]:
    """Ctrl-C and SIGTERM, in the middle: what is left open, and how to go on; empty: nothing is.

    `after`: what has been done once it is over, if that isn't the same; a signal that comes later says it.
    """
    if left:
        interruption.leaves(left)
    try:
        yield
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt("; ".join(filter(None, [str(stop), left]))) from None
    if after:
        interruption.leaves(after)


async def committed_by(groups: ConsumerGroups, run: FailoverRun) -> Held:
    """What the groups of a run have committed now on its partitions.

    :raises NotAuthorized: one of them may not be asked. | :raises Unreachable: it can't be.
    """
    wanted: dict[str, list[int]] = {}
    for tp in {tp for shifts in run.shifts.values() for tp in shifts}:
        wanted.setdefault(tp.topic, []).append(tp.partition)
    found: dict[str, Offsets] = {}
    for group, held in (await groups.committed(run.shifts, wanted)).items():
        if isinstance(held, Refused):
            raise groups.denied(group, held, Operation.DESCRIBE) or Unreachable(f"offsets of {group}: {held}")
        found[group] = held
    return found
