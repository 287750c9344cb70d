"""What a `read_committed` reader sees of a fetched stretch of log.

A broker answers such a fetch with everything up to the last stable offset, and a list of the aborted
transactions in it: leaving their batches out is the reader's duty, and so ours on both sides.

After the last stable offset nobody may look for what is visible; what is *committed* there follows from the
markers alone (`Undecided`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum, auto

from causeway.core.records.batches import BatchHead, check_crc, is_control_marker, split_batches


class Visibility(Enum):
    DATA = auto()
    ABORTED = auto()
    MARKER = auto()


def read_committed(
    records: memoryview, aborted: Sequence[tuple[int, int]], from_offset: int
) -> Iterator[tuple[BatchHead, memoryview, Visibility]]:
    """The batches from `from_offset` on, each with what it is to a reader.

    `aborted` are (first offset, producer id), by first offset, as the fetch's answer gave them. Each batch
    is checked before it is classified: one flipped bit can make data look aborted, or like a marker.

    :raises CorruptBatch: after the good batches before the bad one have been given out.
    """
    waiting = list(reversed(aborted))
    open_aborted: set[int] = set()
    for head, batch in split_batches(records):
        check_crc(batch, head)
        while waiting and waiting[-1][0] <= head.last_offset:
            open_aborted.add(waiting.pop()[1])
        seen = Visibility.DATA
        if head.is_control:
            seen = Visibility.MARKER
            # The cleaner keeps an emptied marker batch, for its producer's sake: it says nothing any more.
            if head.record_count and is_control_marker(batch) == "abort":
                open_aborted.discard(head.producer_id)
        elif head.is_transactional and head.producer_id in open_aborted:
            seen = Visibility.ABORTED
        if head.next_offset > from_offset:
            yield head, batch, seen


class Undecided:
    """Transactions in a stretch that is read without isolation: their batches are given out at their commit.

    The stretch has to begin at the last stable offset: what was decided before it isn't known here.
    """

    def __init__(self) -> None:
        self._open: dict[int, list[tuple[BatchHead, memoryview]]] = {}

    def committed_by(
        self, head: BatchHead, batch: memoryview, seen: Visibility
    ) -> list[tuple[BatchHead, memoryview]]:
        """The batches that are finally committed now that this one has been read."""
        if seen is Visibility.MARKER:
            waiting = self._open.pop(head.producer_id, [])
            return waiting if is_control_marker(batch) == "commit" else []
        if not head.is_transactional:
            return [(head, batch)]
        self._open.setdefault(head.producer_id, []).append((head, batch))
        return []
