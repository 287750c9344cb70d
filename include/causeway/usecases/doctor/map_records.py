"""What doctor sees of the offset map's records: all of them are read. Only asks."""

from __future__ import annotations

from causeway.brokers.wire.target_log import WireTarget
from causeway.core.doctor.finding import Finding
from causeway.core.doctor.internal_topics import judge_map
from causeway.core.kernel.errors import NotAuthorized
from causeway.core.model.flow import Flow
from causeway.core.state.position import Position


async def judge_map_of(flow: Flow, target: WireTarget) -> list[Finding]:
    """Nothing where it may not be read: another check says that."""
    try:
        if await target.map_partitions(flow.map_topic):
            odd = await target.odd_in_map(flow.map_topic)
            return judge_map(flow, odd, target.stepped_over, is_gone=False)
        positions = (await target.all_positions(flow.group)).values()
    except NotAuthorized:
        return []
    has_records = any(isinstance(found, Position) and found.records for found in positions)
    return judge_map(flow, (), (), is_gone=has_records)
