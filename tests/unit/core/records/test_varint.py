import pytest
from kafka.record.util import decode_varint, encode_varint

from causeway.core.records.varint import Malformed, read_varint, read_varlong, wrap_int64, write_varint

EDGES = [0, 1, -1, 63, 64, -64, -65, 8191, 8192, 2**31 - 1, -(2**31)]
LONG_EDGES = [*EDGES, 2**31, 2**62, 2**63 - 1, -(2**63)]


@pytest.mark.parametrize(
    ("value", "wire"), [(0, "00"), (-1, "01"), (1, "02"), (63, "7e"), (64, "8001"), (300, "d804")]
)
def test_small_numbers_are_written_as_the_protocol_says(value: int, wire: str) -> None:
    out = bytearray()
    write_varint(out, value)
    assert out.hex() == wire


@pytest.mark.parametrize("value", LONG_EDGES)
def test_what_is_written_is_read_by_us_and_by_kafka_python(value: int) -> None:
    ours, theirs = bytearray(), bytearray()
    write_varint(ours, value)
    encode_varint(value, theirs.append)
    assert ours == theirs
    assert read_varlong(b"\xff" + ours, 1) == (value, 1 + len(ours))
    assert decode_varint(ours) == (value, len(ours))


@pytest.mark.parametrize("value", EDGES)
def test_int32_needs_no_more_than_five_bytes(value: int) -> None:
    out = bytearray()
    write_varint(out, value)
    assert len(out) <= 5
    assert read_varint(bytes(out), 0) == (value, len(out))


def test_a_varint_over_its_bounds_is_malformed() -> None:
    with pytest.raises(Malformed, match="longer than 5 bytes"):
        read_varint(b"\x80\x80\x80\x80\x80\x01", 0)
    with pytest.raises(Malformed, match="more than 32 bits"):
        read_varint(b"\xff\xff\xff\xff\x1f", 0)
    with pytest.raises(Malformed, match="longer than 10 bytes"):
        read_varlong(b"\x80" * 11, 0)
    with pytest.raises(Malformed, match="more than 64 bits"):
        read_varlong(b"\xff" * 9 + b"\x03", 0)


def test_a_varint_that_is_cut_off_ends_in_an_index_error() -> None:
    with pytest.raises(IndexError):
        read_varint(b"\x80", 0)
    with pytest.raises(IndexError):
        read_varlong(b"", 0)


def test_deltas_wrap_like_the_brokers_own() -> None:
    assert wrap_int64((2**63 - 1) - -(2**63)) == -1
    assert wrap_int64(-(2**63) + -1) == 2**63 - 1
    assert wrap_int64(-5) == -5
