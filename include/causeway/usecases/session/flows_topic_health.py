"""Whether the flows topic can be trusted for a flow: who only reads says it, who writes refuses.

What is wrong with it is never mended by itself: a fence may be what can't be read, or what is gone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from causeway.brokers.wire.target_log import WireTarget
from causeway.core.journal.journal_format import FAILOVERS_TOPIC
from causeway.core.journal.loss import turn_known
from causeway.core.kernel.acl_vocabulary import Operation
from causeway.core.kernel.errors import CausewayError, NotAuthorized
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.model.flow import Flow
from causeway.core.offsets.lost_log import Evidence, lost_fault, lost_since, newer, newest_of, of_flow
from causeway.core.offsets.unreadable_records import map_gone_line
from causeway.core.state.flow_state import FlowState
from causeway.core.state.unreadable_records import odd_fault
from causeway.usecases.session.both_clusters import state_on


@dataclass(frozen=True, slots=True)
class LogHealth:
    """Of one flow."""

    troubles: tuple[CausewayError, ...] = ()
    """The gravest first."""

    @property
    def lines(self) -> list[str]:
        return [str(each) for each in self.troubles]

    def refuse(self) -> None:
        """:raises ProtocolFault: nothing may be written for the flow."""
        for trouble in self.troubles:
            raise trouble


async def read_log_health(flow: Flow, target: WireTarget, state: FlowState) -> LogHealth:
    """`state` was read from `target` just before."""
    lost = await lost_evidence(flow, target, state)
    odd = [odd_fault(flow.name, record) for _, record in sorted(state.odd.items())]
    return LogHealth((*([lost_fault(flow, lost)] if lost else []), *odd))


async def refuse_unsound(flow: Flow, target: WireTarget, state: FlowState) -> None:
    """:raises ProtocolFault: nothing may be written for the flow before a person has looked."""
    (await read_log_health(flow, target, state)).refuse()


async def lost_evidence(
    flow: Flow, target: WireTarget, state: FlowState, *, is_journal_asked: bool = True
) -> Evidence | None:
    """That the topic knew more of the flow; the offset map is read only where nothing else can tell.

    A turn may have been taken since `state` was read: it is read again before anything is called lost.

    :raises NotAuthorized: a flow of which nothing is known may have run, and this user can't see it.
    """
    told = await _in_journal(flow, target) if is_journal_asked else None
    known = newer(await _in_positions(flow, target, state), told)
    if known is None and state.generation < 0:
        mapped = await target.map_generations(flow.map_topic)
        known = newest_of({}, of_flow(flow, mapped, target.other_flows(flow.name).values()))
    if lost_since(state, known) is None:
        return None
    return lost_since(await state_on(target, flow.name), known)


async def _in_positions(flow: Flow, target: WireTarget, state: FlowState) -> Evidence | None:
    try:
        return newest_of(await target.all_positions(flow.group), {})
    except NotAuthorized:
        if state.generation < 0:
            raise
        return None


async def _in_journal(flow: Flow, target: WireTarget) -> Evidence | None:
    """The newest turn that a failover saw. Records that a person has named count no more.

    A mirror needs no right to read it: who may not goes by the rest.
    """
    described = (await target.wire.topics([FAILOVERS_TOPIC]))[FAILOVERS_TOPIC]
    if described.error == Code.UNKNOWN_TOPIC_OR_PARTITION or described.lacks(Operation.READ):
        return None
    named, newest = target.stepped_over, None
    try:
        async for record in target.visible_records(TopicPartition(FAILOVERS_TOPIC, 0)):
            told = turn_known(flow.name, record.offset, record.key, record.value)
            if told is not None and told.record not in named:
                newest = newer(newest, told)
    except NotAuthorized:
        return None
    return newest


async def all_evidence(flow: Flow, target: WireTarget) -> Evidence | None:
    """The newest generation that positions, map and journal know of: numbers go on above it."""
    mapped = of_flow(flow, await target.map_generations(flow.map_topic), ())
    held = newest_of(await target.all_positions(flow.group), mapped)
    return newer(held, await _in_journal(flow, target))


async def say_of_own_topics(
    flow: Flow, target: WireTarget, state: FlowState, say: Callable[[str], None]
) -> None:
    """For who only reads: it goes on."""
    for line in (await read_log_health(flow, target, state)).lines:
        say(f"{flow.name}: {line}")
    if state.pairs and not await target.map_partitions(flow.map_topic):
        say(f"{flow.name}: {map_gone_line(flow)}")
