"""A log by any producers, read through any fetches, against a naive model that knows every outcome."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import google_crc32c
from hypothesis import given
from hypothesis import strategies as st

from causeway.core.records.batches import HEADER
from causeway.core.records.visibility import Visibility, read_committed

PRODUCERS = (1, 2)
steps = st.sampled_from(
    [(p, step) for p in PRODUCERS for step in ("write", "write", "write", "abort", "commit", "plain")]
)
endings = st.sampled_from(["", "abort", "commit"])
reads = st.lists(st.tuples(st.integers(1, 30), st.sampled_from([0, 0, 1, 30])), min_size=1, max_size=4)
"""How many batches a fetch gives, and how many bytes of the last one are cut off."""


@dataclass
class Entry:
    offset: int
    next_offset: int
    raw: bytes
    seen: Visibility | None


@dataclass
class Aborted:
    first: int
    producer: int
    marker: int


def raw(base: int, count: int, attributes: int, producer: int, records: bytes = b"payload") -> bytes:
    checked = HEADER.pack(0, 0, 0, 2, 0, attributes, count - 1, 0, 0, producer, 0, 0, count)[21:] + records
    return struct.pack(">qiibI", base, len(checked) + 9, 5, 2, google_crc32c.value(checked)) + checked


def marker(base: int, producer: int, kind: int) -> bytes:
    record = bytes([0, 0, 0, 8]) + struct.pack(">hh", 0, kind) + bytes([0, 0])
    return raw(base, 1, 0x30, producer, bytes([2 * len(record)]) + record)


def write_log(history: Sequence[tuple[int, str]]) -> tuple[list[Entry], list[Aborted], int]:
    """The log, the broker's index of aborted transactions, and the last stable offset."""
    log: list[Entry] = []
    aborts: list[Aborted] = []
    open_by: dict[int, list[Entry]] = {}
    offset = 0
    for number, (producer, step) in enumerate(history):
        count = 1 + number % 3
        if step == "plain":
            log.append(Entry(offset, offset + count, raw(offset, count, 0, producer), Visibility.DATA))
        elif step == "write":
            entry = Entry(offset, offset + count, raw(offset, count, 0x10, producer), None)
            open_by.setdefault(producer, []).append(entry)
            log.append(entry)
        else:
            is_commit, mine = step == "commit", open_by.pop(producer, [])
            for entry in mine:
                entry.seen = Visibility.DATA if is_commit else Visibility.ABORTED
            if mine and not is_commit:
                aborts.append(Aborted(mine[0].offset, producer, offset))
            log.append(Entry(offset, offset + 1, marker(offset, producer, int(is_commit)), Visibility.MARKER))
        offset = log[-1].next_offset
    stable = min((entries[0].offset for entries in open_by.values()), default=offset)
    return log, aborts, stable


def fetch(
    log: list[Entry], aborts: list[Aborted], stable: int, at: int, batches: int
) -> tuple[bytes, list[tuple[int, int]]]:
    """As a broker answers: whole batches from the one that holds `at`, and the aborts that touch them."""
    stretch = [e for e in log if e.next_offset > at and e.offset < stable][:batches]
    end = stretch[-1].next_offset if stretch else at
    index = sorted((a.first, a.producer) for a in aborts if a.marker >= at and a.first < end)
    return b"".join(e.raw for e in stretch), index


@given(st.lists(steps, min_size=8, max_size=30), endings, reads, st.integers(0, 20))
def test_any_fetches_show_what_the_outcomes_say(
    history: list[tuple[int, str]], ending: str, reads: list[tuple[int, int]], start: int
) -> None:
    if ending:
        history = history + [(producer, ending) for producer in PRODUCERS]
    log, aborts, stable = write_log(history)
    at = start
    found: list[tuple[int, bytes, Visibility]] = []
    for batches, cut in itertools.cycle(reads):
        if at >= stable:
            break
        answer, index = fetch(log, aborts, stable, at, batches)
        cut_off = memoryview(answer)[: max(len(answer) - cut, 0)]
        got = list(read_committed(cut_off, index, at)) or list(read_committed(memoryview(answer), index, at))
        found += [(head.base_offset, bytes(batch), seen) for head, batch, seen in got]
        at = got[-1][0].next_offset
    assert found == [(e.offset, e.raw, e.seen) for e in log if start < e.next_offset and e.offset < stable]
