"""Look at what a failover has done: offsets read back, first records held against the moment."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from causeway.brokers.wire.consumer_groups import ConsumerGroups
from causeway.core.groups.sync_rules import Committed
from causeway.core.journal.journal import FailoverRun
from causeway.core.journal.remaining_work import failover_mark
from causeway.core.kernel.identity import TopicPartition
from causeway.usecases.offsets.scan_records import Sample, Search, Stopped, first_records
from causeway.usecases.session.source_may_be_gone import FlowSession, committed_by


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    offsets: int
    as_planned: int
    """Read back as the plan says."""
    moved_on: int
    """Not as the plan says: left alone, or a consumer has committed since."""
    sampled: int
    """Partitions whose first record after the place was read."""
    at_the_end: int
    """Partitions with nothing after the place."""
    earlier: tuple[str, ...]
    """Whose first record is earlier than the moment: the safer of two answers was taken."""
    unread: int = 0
    """Partitions whose first record could not be read now."""

    def as_dict(self) -> dict[str, object]:
        return {**asdict(self), "earlier": list(self.earlier)}


async def verify_run(run: FailoverRun, sides: FlowSession, groups: ConsumerGroups) -> Verified:
    held = await committed_by(groups, run)
    mark = failover_mark(run.run)
    offsets = as_planned = 0
    places: dict[TopicPartition, int] = {}
    for group, shifts in run.shifts.items():
        for tp, shift in shifts.items():
            offsets += 1
            as_planned += held.get(group, {}).get(tp) == Committed(shift.after, mark)
            places[tp] = min(shift.after, places.get(tp, shift.after))
    found = await _sample(sides, places)
    samples = {tp: sample for tp, sample in found.items() if isinstance(sample, Sample)}
    at_the_end = sum(sample is None for sample in found.values())
    moment = run.wish.moment_ms
    earlier = [tp for tp, s in samples.items() if moment is not None and s.timestamp_ms < moment]
    return Verified(
        offsets=offsets,
        as_planned=as_planned,
        moved_on=offsets - as_planned,
        sampled=len(samples),
        at_the_end=at_the_end,
        earlier=tuple(sorted(map(str, earlier))),
        unread=len(places) - len(samples) - at_the_end,
    )


async def _sample(
    sides: FlowSession, places: dict[TopicPartition, int]
) -> dict[TopicPartition, Sample | Stopped | None]:
    """Without those whose end isn't known. None: there is no record after the place."""
    if not places:
        return {}
    target = sides.target
    topics = await target.wire.topics(sorted({tp.topic for tp in places}))
    ends = await target.last_stables(list(places))
    searches = {
        tp: Search(start=at, end=end) for tp, at in places.items() if isinstance(end := ends[tp], int)
    }
    return await first_records(target, {name: topic.topic_id for name, topic in topics.items()}, searches)
