"""Go on after the flows topic was lost, or has a record that can't be read. Only ever at a person's word.

What is lost are the fences above all: so the flow is fenced before anything else may be written, and the
turns that come are numbered far above all that positions, map and journal know. Floor, pairs and fence are
appended in this order: until the fence is there, the flow is as lost as before, and the same command begins
again.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import uuid4

from causeway.brokers.admin.topics import ClusterAdmin
from causeway.brokers.transport.connection import Network
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.ports import LaneFenced, OutcomeUnknown, Unreachable
from causeway.core.episode.episodes import is_closed
from causeway.core.failover.request import Mode
from causeway.core.journal.journal import Journal
from causeway.core.journal.journal_format import FAILOVERS_TOPIC
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import BadInput, ClusterUnreachable, UnknownName
from causeway.core.model.flow import Flow
from causeway.core.model.naming import FLOWS_TOPIC
from causeway.core.offsets.lost_log import Evidence, floor_above, floor_record, lost_fault, pairs_found
from causeway.core.state.fences import Fence, fence_record
from causeway.core.state.flow_records import pair_record
from causeway.core.state.flow_state import FlowState
from causeway.core.state.repair_commands import recover_record_command
from causeway.core.state.unreadable_records import SteppedOver, odd_fault, recovered_record
from causeway.usecases.journal.store import seen_journal
from causeway.usecases.repair.set_positions import Reason
from causeway.usecases.run_lock.fence import claim_all_lanes
from causeway.usecases.run_lock.internal_topics import create_flows_topic, create_internal_topics
from causeway.usecases.session.blocking import blocking
from causeway.usecases.session.both_clusters import run_at_target, state_on
from causeway.usecases.session.flows_topic_health import all_evidence, lost_evidence, read_log_health
from causeway.usecases.session.source_may_be_gone import FlowSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    flow: str
    changed: bool
    generation: int
    """Of the fence that was raised; of a record that was stepped over: the flow's, as it was."""
    record: str = ""
    """What was stepped over; empty: the flow was fenced."""
    above: int = -1
    """The newest generation that positions, map and journal know of."""
    lanes_claimed: int = 0
    topics: tuple[str, ...] = ()
    """Mirrors that were found again by the flow's positions."""
    rests: bool = False
    """A failback opens it once all is home, and nobody before that."""
    notes: tuple[str, ...] = ()
    """What the operator has to know before the fence is lifted, and what is still wrong."""


def recover_flow(flow: Flow, endpoint: ClusterEndpoint, record: str | None, reason: Reason) -> Recovered:
    """Needs the target only.

    :raises BadInput: there is a record to be named. | :raises UnknownName: the one that is named is readable.
    """

    async def recover(target: WireTarget) -> Recovered:
        work = _Recovery(flow, target, target.wire.network, reason)
        if record is not None:
            return await work.step_over(ClusterAdmin(endpoint), record)
        return await work.raise_fence(ClusterAdmin(endpoint))

    try:
        return run_at_target(endpoint, recover)
    except (Unreachable, OutcomeUnknown, LaneFenced) as trouble:
        raise ClusterUnreachable(
            f"recovery of {flow.name}",
            rule=str(trouble),
            remedy="nothing is sure yet: run the same command again",
        ) from trouble


class _Recovery:
    def __init__(self, flow: Flow, target: WireTarget, clock: Network, reason: Reason) -> None:
        self._flow, self._target, self._clock, self._reason = flow, target, clock, reason

    async def step_over(self, admin: ClusterAdmin, record: str) -> Recovered:
        flow, target = self._flow, self._target
        state = await state_on(target, flow.name)
        # Where only the journal tells of a loss, this record may be what tells it, or one of several.
        lost = await lost_evidence(flow, target, state, is_journal_asked=not _is_of_journal(record))
        if lost is not None:
            raise lost_fault(flow, lost)
        is_known = record in target.stepped_over
        if not is_known:
            await self._refuse_readable(record, state)
            by, because = self._reason.by, self._reason.because
            said = SteppedOver(record=record, by=by, because=because, at_ms=self._clock.time_ms())
            existing = frozenset(await target.wire.topics(None))
            await blocking(lambda: create_flows_topic(flow, admin, existing))
            await target.append_plain(FLOWS_TOPIC, *recovered_record(flow.name, said))
            state = await target.flow_state(flow.name)
        left = (await read_log_health(flow, target, state)).lines
        return Recovered(
            flow=flow.name,
            changed=not is_known,
            generation=state.generation,
            record=record,
            notes=tuple(left),
        )

    async def _refuse_readable(self, record: str, state: FlowState) -> None:
        flow, target = self._flow, self._target
        own = {str(offset): odd for offset, odd in state.odd.items()}
        if record in own and own[record].newer:
            raise odd_fault(flow.name, own[record])
        for other, theirs in target.other_flows(flow.name).items():
            if record in map(str, theirs.odd):
                raise BadInput(
                    "--record",
                    value=record,
                    rule=f"is under a key of flow {other}",
                    remedy=f"{recover_record_command(other, record)} is the command for it",
                )
        if (
            record in own
            or record in map(str, target.foreign_records)
            or await self._is_odd_elsewhere(record)
        ):
            return
        raise UnknownName(
            "--record",
            value=record,
            rule=f"is no record of {FLOWS_TOPIC} that can't be read",
            remedy=f"`causeway doctor {flow.name}` names those that can't, and how to write them here",
        )

    async def _is_odd_elsewhere(self, record: str) -> bool:
        """In the offset map; or in the journal, whose readers say which one they can't read."""
        if _is_of_journal(record):
            return record.rpartition(":")[2].isdecimal()
        if not record.startswith(f"{self._flow.map_topic}-"):
            return False
        odd = await self._target.odd_in_map(self._flow.map_topic)
        return any(each.name == record and not each.is_newer for each in odd)

    async def raise_fence(self, admin: ClusterAdmin) -> Recovered:
        flow, target = self._flow, self._target
        state = await state_on(target, flow.name)
        evidence = await lost_evidence(flow, target, state)
        if evidence is None:
            return await self._nothing_lost(state)
        newest = await all_evidence(flow, target) or evidence
        existing = frozenset(await target.wire.topics(None))
        await blocking(lambda: create_internal_topics(flow, admin, existing))
        mapped = await target.whole_map(flow.map_topic)
        pairs = pairs_found(flow, await target.all_positions(flow.group), mapped)
        floor = floor_record(flow.name, floor_above(max(newest.generation, evidence.generation)))
        found = [pair_record(flow.name, topic, pair) for topic, pair in pairs.items()]
        await target.append_each(FLOWS_TOPIC, [floor, *found, self._fence(state)])
        state = await target.flow_state(flow.name)
        claimed = await claim_all_lanes(target, self._clock, flow, state)
        journal = await self._journal()
        back = journal.newest_failback(flow.name)
        return Recovered(
            flow=flow.name,
            changed=True,
            generation=state.generation,
            above=newest.generation,
            lanes_claimed=claimed,
            topics=tuple(sorted(pairs)),
            rests=back is not None and back.closes_forward,
            notes=notes_of(flow, newest, journal),
        )

    def _fence(self, state: FlowState) -> tuple[bytes, bytes]:
        lanes = max(state.most_lanes, self._flow.lanes)
        by, because = self._reason.by, self._reason.because
        fence = Fence(by=by, because=because, since_ms=self._clock.time_ms(), token=uuid4().hex)
        return fence_record(self._flow.name, fence, most_lanes=lanes)

    async def _nothing_lost(self, state: FlowState) -> Recovered:
        flow = self._flow
        for _, record in sorted(state.odd.items()):
            raise odd_fault(flow.name, record)
        claimed = 0
        if state.floor and state.fence is not None:  # an earlier try may have died before its last claim
            claimed = await claim_all_lanes(self._target, self._clock, flow, state)
        return Recovered(flow=flow.name, changed=False, generation=state.generation, lanes_claimed=claimed)

    async def _journal(self) -> Journal:
        return await seen_journal(FlowSession(self._clock, self._target, None), self._flow.name)


def notes_of(flow: Flow, newest: Evidence, journal: Journal) -> tuple[str, ...]:
    """`newest`: what its turns go on above."""
    said = (
        f"numbered above {newest.generation} ({newest.what})",
        _open_episode(flow, journal),
        "gone with the topic: its fences, accepted gaps, places set by hand, list of own ACLs",
    )
    return tuple(filter(None, said))


def _open_episode(flow: Flow, journal: Journal) -> str:
    """Empty: it never failed over, or the failback is completed since."""
    back, run = journal.newest_failback(flow.name), journal.newest(flow.name)
    if back is not None and back.closes_forward:
        return (
            f"failback {back.run} of {back.by} is under way: {back.reverse} leads; the flow stays fenced "
            f"until `{back.command}` is done"
        )
    if run is None or (run.wish.mode is not Mode.HOME and is_closed(run, FlowState(), journal)):
        return ""
    return (
        f"failover {run.run} of {run.by} isn't taken back: groups work on {flow.target}; the flow stays "
        "fenced until a failback"
    )


def _is_of_journal(record: str) -> bool:
    return record.startswith(f"{FAILOVERS_TOPIC}-0:")
