"""A record in quarantine is the record as it was, and says where it came from."""

from uuid import UUID

import pytest

from causeway.core.records.batches import CorruptBatch
from causeway.core.records.record_frames import Frame
from causeway.core.records.records import Record, write_body
from causeway.core.topics.quarantine import Origin, hold_out, in_batches, new_quarantine_topic, origin_of
from tests.support import builders

PAIR = builders.pair()
OWN = ((b"h", None), (b"causeway.source.offset", b"5"))


def as_read(record: Record) -> list[tuple[str, bytes | None]]:
    return [(name.decode(), value) for name, value in record.headers]


def test_the_record_stays_and_its_origin_comes_after_its_own_headers() -> None:
    held = hold_out(Frame(17, 5_000, write_body(b"k", None, OWN)), PAIR, "sf", "too large")
    record = held.record
    assert (held.offset, held.why) == (17, "too large")
    assert (record.timestamp_ms, record.key, record.value, record.headers[:2]) == (5_000, b"k", None, OWN)
    told = dict(as_read(record))
    assert told["causeway.source.cluster"] == b"sf"
    assert told["causeway.refused"] == b"too large"
    assert origin_of(as_read(record)) == Origin(PAIR.source, PAIR.target, UUID(int=1), 17)


@pytest.mark.parametrize("missing", range(5))
def test_a_record_without_its_whole_origin_is_not_ours(missing: int) -> None:
    record = hold_out(Frame(17, 5_000, write_body(b"k", b"v")), PAIR, "sf", "x").record
    headers = [pair for n, pair in enumerate(as_read(record)[1:]) if n != missing]
    assert origin_of(headers) is None
    assert origin_of([("causeway.source.offset", b"\xff")]) is None


@pytest.mark.parametrize("body", [b"", b"\x07 not a body", write_body(b"k", b"v")[:-1]])
def test_what_can_not_be_read_is_corrupt(body: bytes) -> None:
    with pytest.raises(CorruptBatch, match="17"):
        hold_out(Frame(17, 5_000, body), PAIR, "sf", "too large")


def test_batches_stay_small_unless_a_record_is_big() -> None:
    records = [
        Record(n, 0, b"k", b"x" * size) for n, size in enumerate((600_000, 600_000, 5_000_000, 10, 10))
    ]
    assert [[r.offset for r in batch] for batch in in_batches(records)] == [[0], [1], [2], [3, 4]]
    assert list(in_batches([])) == []


def test_its_topic_takes_what_no_mirror_does_and_keeps_it() -> None:
    settings = dict(new_quarantine_topic("q", None).settings)
    assert settings["cleanup.policy"] == "delete"
    assert settings["retention.ms"] == "-1"
    assert int(settings["max.message.bytes"]) > 64 << 20
