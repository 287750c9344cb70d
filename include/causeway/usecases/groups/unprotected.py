"""Look for groups that returned and aren't protected: what `status` and `doctor` say of them. Only asks.

Nothing is asked of groups as long as the flow never had a failback, or is fenced: then it says so itself.
"""

from __future__ import annotations

from collections.abc import Mapping

from causeway.brokers.wire.consumer_groups import ConsumerGroups
from causeway.brokers.wire.log_reader import WireLogReader
from causeway.brokers.wire.mm2_topics import last_checkpoints
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.ports import OutcomeUnknown, Refused, Unreachable
from causeway.core.groups.sync_rules import Held, Offsets
from causeway.core.groups.unprotected import Unprotected, find_unprotected
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import ClusterUnreachable, NotAuthorized
from causeway.core.kernel.identity import TargetOffset, TopicPartition
from causeway.core.model.flow import Flow
from causeway.core.model.group_filter import FlowGroups
from causeway.core.state.flow_state import FlowState
from causeway.usecases.journal.earlier_failbacks import closed_episodes, last_homecoming
from causeway.usecases.session.both_clusters import state_on
from causeway.usecases.session.source_may_be_gone import FlowSession, run_in_session

NOTHING = Unprotected()


def find_unprotected_groups(
    flow: Flow, groups: FlowGroups, source: ClusterEndpoint, target: ClusterEndpoint
) -> Unprotected:
    """With connections of its own; the source may be gone.

    :raises ClusterUnreachable: the target, or a source that was there a moment ago, doesn't answer.
    """

    async def look(sides: FlowSession) -> Unprotected:
        try:
            return await unprotected_groups(flow, groups, sides.target, sides.source)
        except (Unreachable, OutcomeUnknown) as trouble:
            raise ClusterUnreachable(
                f"groups of flow {flow.name}", rule=str(trouble), remedy="run it again"
            ) from trouble

    return run_in_session(source, target, look)


async def unprotected_groups(
    flow: Flow, groups: FlowGroups, target: WireTarget, source: WireLogReader | None
) -> Unprotected:
    """Of those that may be seen: `doctor` tells which rights are missing."""
    if not groups.sync_offsets or await last_homecoming(flow.name, target) is None:
        return NOTHING
    state = await state_on(target, flow.name)
    if state.fence is not None:
        return NOTHING
    there = ConsumerGroups(target.wire)
    listed = {name: group for name, group in (await there.listed()).items() if groups.selects(name)}
    wanted = {name: range(pair.partitions) for name, pair in state.pairs.items()}
    held: Held = _seen(await there.committed(listed, wanted)) if listed and wanted else {}
    if source is not None:
        held = await _read_on_source(held, state, source)
    left = (await closed_episodes(flow.name, target, source)).held
    partitions = frozenset(tp for offsets in held.values() for tp in offsets)
    checkpoints = await _checkpoints(flow, target, partitions)
    active = {name for name, group in listed.items() if group.is_active}
    return find_unprotected(flow.name, held, left, checkpoints, active)


async def _checkpoints(
    flow: Flow, target: WireTarget, partitions: frozenset[TopicPartition]
) -> dict[str, dict[TopicPartition, TargetOffset]]:
    """Nothing where this user may not read them: then only a stamp is a mirror's word."""
    try:
        told = await last_checkpoints(target, flow.checkpoints_topic, partitions)
    except NotAuthorized:
        return {}
    return {
        group: {tp: checkpoint.target_next for tp, checkpoint in of_group.items()}
        for group, of_group in told.items()
    }


async def _read_on_source(held: Held, state: FlowState, source: WireLogReader) -> Held:
    """What a group has never committed on the source, no sync can carry over."""
    here = ConsumerGroups(source.wire)
    wanted = {pair.source_topic: range(pair.partitions) for pair in state.pairs.values()}
    read = _seen(await here.committed(held, wanted)) if held else {}
    return {
        group: {tp: at for tp, at in offsets.items() if _on_source(state, tp) in read.get(group, {})}
        for group, offsets in held.items()
    }


def _on_source(state: FlowState, tp: TopicPartition) -> TopicPartition:
    return TopicPartition(state.pairs[tp.topic].source_topic, tp.partition)


def _seen(answers: Mapping[str, Offsets | Refused]) -> dict[str, Offsets]:
    return {group: held for group, held in answers.items() if not isinstance(held, Refused)}
