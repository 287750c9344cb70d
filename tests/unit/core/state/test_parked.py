"""The word that a run leaves about what is parked: what is written, and what each version reads of it."""

import json

import pytest

from causeway.core.kernel.identity import TopicPartition
from causeway.core.state.flow_log import LogRecord
from causeway.core.state.flow_records import parked_record
from causeway.core.state.flow_state import fold
from causeway.core.state.parked import LastParked, Parked, ParkReason

ELDEST = {
    "foreign position",
    "position lost",
    "foreign data on the target",
    "foreign writer on the target",
    "another producer's open transaction on the target",
    "source topic deleted",
    "source topic recreated",
    "source log truncated",
    "records gone from the source before they were copied",
    "corrupt batch on the source",
    "target topic deleted or recreated",
    "the target's last records can't be proved equal to the source's",
    "target lost its tail and the map doesn't reach there",
    "another flow's mirror",
    "not adopted, and another flow leads the other way",
    "batch refused by the target",
    "not authorized",
}
"""What the first versions know; a record with another reason among its partitions ends them."""


def word_of(*reasons: ParkReason) -> LastParked:
    partitions = {TopicPartition("t", n): Parked(reason, f"f{n}", "r") for n, reason in enumerate(reasons)}
    return LastParked(generation=3, at_ms=5, partitions=partitions, more=2)


def read_back(key: bytes, value: bytes) -> LastParked | None:
    return fold({}, LogRecord(0, 0, key, value))["f"].parked


def test_each_reason_is_read_back() -> None:
    word = word_of(*ParkReason)
    assert read_back(*parked_record("f", word)) == word


@pytest.mark.parametrize("reason", ParkReason)
def test_the_first_versions_read_every_word_and_count_what_they_do_not_know(reason: ParkReason) -> None:
    told = json.loads(parked_record("f", word_of(ParkReason.REFUSED, reason))[1])
    known = [row for row in told["partitions"] if row[2] in ELDEST]
    assert known == told["partitions"]
    assert len(known) + told["more"] == 2 + 2


def test_a_reason_of_a_newer_version_is_counted() -> None:
    key, value = parked_record("f", word_of(ParkReason.REFUSED, ParkReason.SOURCE_OVERSIZED))
    newer = value.replace(ParkReason.SOURCE_OVERSIZED.encode(), b"something else")
    read = read_back(key, newer)
    assert read is not None
    assert (list(read.partitions), read.more) == ([TopicPartition("t", 0)], 2 + 1)
