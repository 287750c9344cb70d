"""What Hypothesis draws records and batches from."""

from collections.abc import Iterable

from hypothesis import strategies as st

from causeway.core.records.compression import Codec
from causeway.core.records.records import Record, encode_batch

INT64 = st.integers(-(2**63), 2**63 - 1)
OLD_CODECS = (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4)

maybe_bytes = st.none() | st.binary(max_size=200)
timestamps = st.integers(-1, 2**42) | INT64
header_keys = st.binary(max_size=8) | st.sampled_from([b"h", b"\xff\xfe"])
headers = st.lists(st.tuples(header_keys, maybe_bytes), max_size=4).map(tuple)
codecs = st.sampled_from(Codec)


@st.composite
def record_lists(draw: st.DrawFn, *, holes: bool = False) -> list[Record]:
    """Records with rising offsets: 0, 1, 2, ... or with holes between."""
    count = draw(st.integers(1, 12))
    offset = -1
    records: list[Record] = []
    for _ in range(count):
        offset += 1 + (draw(st.integers(0, 5)) if holes else 0)
        records.append(Record(offset, draw(timestamps), draw(maybe_bytes), draw(maybe_bytes), draw(headers)))
    return records


def encoded(records: Iterable[Record], codec: Codec) -> bytes:
    return encode_batch(records, codec=codec, producer_id=9, producer_epoch=1, base_sequence=4)
