"""What groups that return leave on the new primary: kept before the first of them is moved.

As long as it stands there it isn't the group's own word; what it commits there from then on is. So it is read
when the way back is fenced and before the plan is compared for the last time: who commits between the two, or
later, has gone on by itself. Once the plan was found to hold nothing is kept any more, in whatever try: the
journal is asked that after the read, because somebody else may carry out the same run.
"""

from __future__ import annotations

from causeway.brokers.wire.consumer_groups import ConsumerGroups
from causeway.brokers.wire.log_reader import WireLogReader
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.ports import Refused, Unreachable
from causeway.core.failback.divergence import FailbackRun
from causeway.core.groups.sync_rules import Committed
from causeway.core.journal.journal import FailoverRun
from causeway.core.journal.offset_records import left_records
from causeway.core.kernel.acl_vocabulary import Operation
from causeway.core.kernel.identity import TopicPartition
from causeway.core.model.flow import Flow
from causeway.core.state.flow_state import FlowState
from causeway.usecases.failover.copy_remaining import refuse_without_source
from causeway.usecases.journal.store import read_journal, write_journal
from causeway.usecases.session.both_clusters import state_on
from causeway.usecases.session.source_may_be_gone import FlowSession

Left = dict[str, dict[TopicPartition, Committed | None]]
"""By group; None: an earlier try has kept something there, and this one doesn't move the group home."""


async def keep_left_offsets(
    forward: Flow, reverse: Flow, back: FailbackRun, sides: FlowSession, run: FailoverRun
) -> None:
    """`sides` are the reverse flow's, and `run` is its failover. The journal is on the forward flow's target.

    :raises NotAuthorized: what a group has committed may not be seen; no group was moved.
    :raises ClusterUnreachable: the new primary can't be asked.
    """
    if run.is_agreed:
        return
    left = await sides.of_source(lambda reader: _read(forward, back, _there(sides, reader), run))
    refuse_without_source(reverse, sides, run.wish)
    assert left is not None
    now = (await read_journal(sides, reverse.name)).runs.get(run.run, run)
    if now.is_agreed:
        return
    records = left_records(forward.name, back.run, left)
    await sides.of_source(lambda reader: write_journal(_there(sides, reader), records))
    refuse_without_source(reverse, sides, run.wish)


def _there(sides: FlowSession, reader: WireLogReader) -> FlowSession:
    """The new primary."""
    return FlowSession(sides.network, WireTarget(reader.wire), None)


async def _read(forward: Flow, back: FailbackRun, there: FlowSession, run: FailoverRun) -> Left:
    state = await state_on(there.target, forward.name)
    groups = ConsumerGroups(there.target.wire)
    held = await groups.committed(run.shifts)
    earlier = (await read_journal(there, forward.name)).loose.get(back.run, {})
    left: Left = {group: dict.fromkeys(shifts) for group, shifts in earlier.items()}
    for group, home in run.shifts.items():
        offsets = held[group]
        if isinstance(offsets, Refused):
            raise groups.denied(group, offsets, Operation.DESCRIBE) or Unreachable(
                f"offsets of {group}: {offsets}"
            )
        mine = {tp: at for tp, at in offsets.items() if _mirrored_by(tp, state) in home}
        left[group] = {**left.get(group, {}), **mine}
    return left


def _mirrored_by(tp: TopicPartition, state: FlowState) -> TopicPartition | None:
    pair = state.pairs.get(tp.topic)
    return None if pair is None else TopicPartition(pair.source_topic, tp.partition)
