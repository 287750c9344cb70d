"""Offsets of groups in the journal, before and after: so many partitions to a record as a broker takes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from causeway.core.failover.plan import Move
from causeway.core.groups.sync_rules import Committed
from causeway.core.journal.journal import OFFSETS
from causeway.core.journal.journal_format import as_journal_record
from causeway.core.kernel.identity import TopicPartition

_PARTITIONS_PER_RECORD, _MOST_CHARACTERS = 200, 800_000


def offset_records(flow: str, run: str, moves: Iterable[Move]) -> Iterator[tuple[bytes, bytes]]:
    by_group: dict[str, list[list[object]]] = {}
    for move in moves:
        by_group.setdefault(move.group, []).append(_offset_row(move.target, move.before, move.after))
    return _offset_records(flow, run, by_group)


def left_records(
    flow: str, run: str, left: Mapping[str, Mapping[TopicPartition, Committed | None]]
) -> Iterator[tuple[bytes, bytes]]:
    """Of a failback: what groups that return leave on the flow's target. None: nothing, whatever an
    earlier record says."""
    rows = {
        group: [_offset_row(tp, held, 0 if held is None else held.offset) for tp, held in of_group.items()]
        for group, of_group in left.items()
    }
    return _offset_records(flow, run, rows)


def _offset_row(tp: TopicPartition, before: Committed | None, after: int) -> list[object]:
    offset, metadata = (None, "") if before is None else (before.offset, before.metadata)
    return [tp.topic, tp.partition, offset, metadata, after]


def _offset_records(
    flow: str, run: str, by_group: Mapping[str, list[list[object]]]
) -> Iterator[tuple[bytes, bytes]]:
    for group, rows in by_group.items():
        first = 0
        for shifts in _row_portions(rows):
            yield as_journal_record([OFFSETS, flow, run, group, first], {"group": group, "shifts": shifts})
            first += len(shifts)


def _row_portions(rows: Iterable[list[object]]) -> Iterator[list[list[object]]]:
    """Whatever groups wrote beside their offsets: six characters for one, where it isn't plain."""
    portion: list[list[object]] = []
    characters = 0
    for row in rows:
        more = len(json.dumps(row))
        if portion and (len(portion) == _PARTITIONS_PER_RECORD or characters + more > _MOST_CHARACTERS):
            yield portion
            portion, characters = [], 0
        portion.append(row)
        characters += more
    if portion:
        yield portion
