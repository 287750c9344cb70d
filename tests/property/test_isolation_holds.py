"""A log by any producers, read through any fetches, against a naive model that knows every outcome."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import google_crc32c
from hypothesis import given
from hypothesis import strategies as st

from causeway.core.batches import HEADER
from causeway.core.isolation import Seen, read_committed

PRODUCERS = (1, 2, 3)
steps = st.lists(
    st.tuples(
        st.sampled_from(PRODUCERS), st.sampled_from(["write", "write", "write", "commit", "abort", "plain"])
    ),
    max_size=40,
)


@dataclass
class Entry:
    offset: int
    next_offset: int
    raw: bytes
    seen: Seen | None


@dataclass
class Aborted:
    first: int
    producer: int
    marker: int


def raw(base, count, attributes, producer, records=b"payload"):
    checked = HEADER.pack(0, 0, 0, 2, 0, attributes, count - 1, 0, 0, producer, 0, 0, count)[21:] + records
    return struct.pack(">qiibI", base, len(checked) + 9, 5, 2, google_crc32c.value(checked)) + checked


def marker(base, producer, kind):
    record = bytes([0, 0, 0, 8]) + struct.pack(">hh", 0, kind) + bytes([0, 0])
    return raw(base, 1, 0x30, producer, bytes([2 * len(record)]) + record)


def write_log(history):
    """The log, the broker's index of aborted transactions, and the last stable offset."""
    log, aborts, open_by, offset = [], [], {}, 0
    for number, (producer, step) in enumerate(history):
        count = 1 + number % 3
        if step == "plain":
            log.append(Entry(offset, offset + count, raw(offset, count, 0, producer), Seen.DATA))
        elif step == "write":
            entry = Entry(offset, offset + count, raw(offset, count, 0x10, producer), None)
            open_by.setdefault(producer, []).append(entry)
            log.append(entry)
        else:
            is_commit, mine = step == "commit", open_by.pop(producer, [])
            for entry in mine:
                entry.seen = Seen.DATA if is_commit else Seen.ABORTED
            if mine and not is_commit:
                aborts.append(Aborted(mine[0].offset, producer, offset))
            log.append(Entry(offset, offset + 1, marker(offset, producer, int(is_commit)), Seen.MARKER))
        offset = log[-1].next_offset
    stable = min((entries[0].offset for entries in open_by.values()), default=offset)
    return log, aborts, stable


def fetch(log, aborts, stable, at, batches):
    """As a broker answers: whole batches from the one that holds `at`, and the aborts that touch them."""
    stretch = [e for e in log if e.next_offset > at and e.offset < stable][:batches]
    end = stretch[-1].next_offset if stretch else at
    index = sorted((a.first, a.producer) for a in aborts if a.marker >= at and a.first < end)
    return b"".join(e.raw for e in stretch), index


@given(steps, st.lists(st.integers(1, 7), min_size=1, max_size=10), st.integers(0, 20), st.data())
def test_any_fetches_show_what_the_outcomes_say(history, sizes, start, data):
    log, aborts, stable = write_log(history)
    at, found, turn = start, [], 0
    while at < stable:
        answer, index = fetch(log, aborts, stable, at, sizes[turn % len(sizes)])
        cut = data.draw(st.integers(0, 30)) if turn % 3 == 2 else 0  # a fetch may end inside a batch
        answer = answer[: len(answer) - cut] or answer
        for head, batch, seen in read_committed(memoryview(answer), index, at):
            found.append((head.base_offset, bytes(batch), seen))
            at = head.next_offset
        turn += 1
        if turn > 200:
            break
    assert found == [(e.offset, e.raw, e.seen) for e in log if e.next_offset > start and e.offset < stable]
