"""Where the records of the last run end, to a reader of the target."""

import pytest

from causeway.core.codecs import Codec
from causeway.core.ports import Fetched
from causeway.core.records import Record, encode_batch
from causeway.flows.lane.tail import _end_of_one_owner
from tests.simulation.partition_log import marker

OURS, FOREIGN = (7, 2), (-1, -1)


def batch(at, count, owner=OURS):
    made = encode_batch(
        [Record(i, 1, b"k", b"v") for i in range(count)],
        codec=Codec.NONE,
        producer_id=owner[0],
        producer_epoch=owner[1],
        base_sequence=0,
        transactional=owner is OURS,
    )
    return at.to_bytes(8, "big") + made[8:]


def fetched(*batches, aborted=()):
    records = memoryview(b"".join(batches))
    return Fetched(records=records, log_start=0, last_stable=99, high_watermark=99, aborted=aborted)


def commit(at):
    return marker(at, 0, *OURS, commit=True)


@pytest.mark.parametrize(
    ("answer", "end"),
    [
        (fetched(batch(10, 3), batch(13, 2), commit(15)), 15),
        (fetched(batch(10, 3), batch(13, 9)), 15),
        (fetched(batch(10, 3)), 15),
        (fetched(batch(10, 3), batch(13, 2, FOREIGN)), 13),
        (fetched(batch(10, 3, FOREIGN), batch(13, 2)), 13),
        (fetched(batch(10, 3), commit(13), batch(14, 1)), 13),
        (fetched(batch(10, 5), aborted=((10, 7),)), 10),
        (fetched(batch(8, 4, FOREIGN), batch(12, 3)), 12),
    ],
    ids=[
        "whole",
        "more of the same",
        "the answer holds less",
        "somebody else behind",
        "somebody else in front",
        "a marker inside",
        "aborted",
        "begins inside a batch",
    ],
)
def test_a_run_ends_where_another_owner_begins(answer, end):
    assert _end_of_one_owner(answer, 10, 15) == end
