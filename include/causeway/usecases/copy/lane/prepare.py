"""What waits in a stream becomes the next batch to append: as it is, or repacked, whole or in parts.

Invariant: a sequence is taken only by what is sent at once. Parts that wait have none, because a
transaction may end before them, and sequences with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from causeway.core.copy.lane_task import LaneTask
from causeway.core.copy.park_reasons import oversized
from causeway.core.copy.producer import ProducerState
from causeway.core.copy.repack import Repacking, Verbatim, choose_way, is_small, reasons_of, repack
from causeway.core.records.batches import BatchHead, CorruptBatch, OversizedBatch, rebase
from causeway.core.records.records import decode_records, first_timestamp_of
from causeway.core.topics.quarantine import hold_out
from causeway.usecases.copy.lane.partition_stream import Part, PartitionStream, Sent

Together = Sequence[tuple[BatchHead, memoryview | None]]


def prepare(
    task: LaneTask, stream: PartitionStream, producer: ProducerState
) -> tuple[Sent, bytearray] | None:
    """The next batch of a partition in the form in which it is appended; None: nothing waits."""
    while True:
        before, epoch_before = stream.consumed, stream.consumed_epoch
        if (part := stream.next_part()) is not None:
            return _sent_part(stream, part, producer, before, epoch_before)
        found = stream.next_batch()
        if found is None:
            return None
        head, batch = found
        together = [found, *stream.small_neighbours(head)] if is_small(head) else [found]
        way = choose_way(head, first_wanted=stream.consumed, demands=stream.demands)
        try:
            if stream.demands.examines:
                _examine(together)
            if len(together) > 1 and _cut_batches(task, stream, together) > 1:
                continue
            together = [found]
            if isinstance(way, Verbatim):
                return _sent_verbatim(stream, head, batch, producer)
            _cut_batches(task, stream, together)
        except (CorruptBatch, OversizedBatch) as cause:
            if len(together) > 1:
                stream.do_not_join(together)
                continue
            _park_at(task, stream, head, cause)
            return None


def _park_at(
    task: LaneTask, stream: PartitionStream, head: BatchHead, cause: CorruptBatch | OversizedBatch
) -> None:
    stream.drop_what_waits()
    if isinstance(cause, CorruptBatch):
        stream.park_corrupt(cause)
    else:
        why = reasons_of([head], first_wanted=stream.consumed, demands=stream.demands)
        stream.park(oversized(task.flow, stream.assignment.pair, head, why, cause))


def _examine(together: Together) -> None:
    """:raises CorruptBatch: | :raises OversizedBatch: a record of them can't be read."""
    for head, batch in together:
        if batch is not None:
            decode_records(batch, head)


def _sent_verbatim(
    stream: PartitionStream, head: BatchHead, batch: memoryview, producer: ProducerState
) -> tuple[Sent, bytearray]:
    sent = Sent(
        segments=((head.base_offset, head.record_count),),
        records=head.record_count,
        size_bytes=head.size_bytes,
        first_timestamp_ms=first_timestamp_of(batch, head),
        last_timestamp_ms=head.max_timestamp,
        repacked_because="",
        source_before=stream.consumed,
        epoch_before=stream.consumed_epoch,
        source_epoch=head.leader_epoch,
    )
    stream.pass_over(head)
    return sent, _ours(stream, batch, head.record_count, producer)


def _cut_batches(task: LaneTask, stream: PartitionStream, together: Together) -> int:
    """Repack, and leave what was made as parts. Compaction or the quarantine may leave none: then it was a
    hole, and the position is after it.

    What doesn't fit in goes back. Gives how many batches did; if of several only one, nothing is done to it.
    """
    batches = [(head, batch) for head, batch in together if batch is not None]
    done = repack(batches, first_wanted=stream.consumed, demands=stream.demands)
    if done.taken < len(batches):
        together, left = _divided(together, done.taken)
        stream.put_back(left)
        if done.taken == 1:
            return 1
        batches = batches[: done.taken]
    if done.held_out:
        assert task.quarantine is not None
        pair, alias, why = stream.assignment.pair, task.quarantine.source, stream.demands.held_out
        stream.held_out += [hold_out(f, pair, alias, why[f.offset]) for f in done.held_out]
    if done.made:
        stream.parts += _repacked_parts(stream, batches, done)
    else:
        for head, _ in together:
            stream.pass_over(head)
    return done.taken


def _divided(together: Together, taken: int) -> tuple[Together, Together]:
    """The first `taken` batches of data, and what comes after them, holes included."""
    data = [number for number, (_, batch) in enumerate(together) if batch is not None]
    return together[: data[taken - 1] + 1], together[data[taken - 1] + 1 :]


def _repacked_parts(
    stream: PartitionStream, batches: Sequence[tuple[BatchHead, memoryview]], done: Repacking
) -> list[Part]:
    """After the last one the partition's position is after all of the batches, whatever they end with."""
    heads = [head for head, _ in batches]
    reasons = set(reasons_of(heads, first_wanted=stream.consumed, demands=stream.demands))
    if len(done.made) > 1:
        reasons.add("split")
    behind = [made.segments[0][0] for made in done.made[1:]] + [heads[-1].next_offset]
    return [
        Part(
            made=made,
            because="+".join(sorted(reasons)),
            source_next=source_next,
            source_epoch=_epoch_in_front_of(source_next, heads),
            is_joined=len(heads) > 1,
        )
        for made, source_next in zip(done.made, behind, strict=True)
    ]


def _epoch_in_front_of(source_next: int, heads: Sequence[BatchHead]) -> int:
    inside = [head for head in heads if head.base_offset < source_next]
    return (inside or heads)[-1].leader_epoch


def _sent_part(
    stream: PartitionStream, part: Part, producer: ProducerState, before: int, epoch_before: int
) -> tuple[Sent, bytearray]:
    made = part.made
    sent = Sent(
        segments=made.segments,
        records=made.record_count,
        size_bytes=len(made.batch),
        first_timestamp_ms=made.first_timestamp,
        last_timestamp_ms=made.max_timestamp,
        repacked_because=part.because,
        source_before=before,
        epoch_before=epoch_before,
        source_epoch=part.source_epoch,
        is_joined=part.is_joined,
    )
    return sent, _ours(stream, memoryview(made.batch), made.record_count, producer)


def _ours(stream: PartitionStream, batch: memoryview, records: int, producer: ProducerState) -> bytearray:
    return rebase(
        batch,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        base_sequence=producer.take_sequence(stream.target, records),
    )
