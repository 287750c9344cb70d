import gzip
import random
import resource
import struct

import cramjam
import pytest
import zstandard

from causeway.core.records.compression import (
    DEFAULT_DECOMPRESSED_LIMIT_BYTES,
    Codec,
    TooLarge,
    compress,
    decompress,
)
from causeway.core.records.varint import Malformed

PACKING = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
NOISE = random.Random(7).randbytes(200_000)
SAMPLES = {
    "empty": b"",
    "one byte": b"x",
    "text": b"the quick brown fox " * 5_000,
    "noise": NOISE,
    "zeros over many blocks": bytes(9 << 20),
}


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("sample", SAMPLES)
def test_what_is_compressed_comes_back(codec: Codec, sample: str) -> None:
    data = SAMPLES[sample]
    assert decompress(codec, memoryview(compress(codec, data))) == data


@pytest.mark.parametrize(("codec", "level"), [(Codec.GZIP, 9), (Codec.LZ4, 9), (Codec.ZSTD, 12)])
def test_a_level_changes_the_size_only(codec: Codec, level: int) -> None:
    data = b"".join(b"%d row %d of %d;" % (n, n * 7 % 1000, n // 3) for n in range(20_000))
    packed = compress(codec, data, level=level)
    assert len(packed) != len(compress(codec, data, level=1))
    assert decompress(codec, packed) == data


def test_other_libraries_read_what_is_written() -> None:
    assert gzip.decompress(compress(Codec.GZIP, NOISE)) == NOISE
    assert zstandard.ZstdDecompressor().decompressobj().decompress(compress(Codec.ZSTD, NOISE)) == NOISE
    assert bytes(cramjam.lz4.decompress(compress(Codec.LZ4, NOISE))) == NOISE


def test_what_other_libraries_write_is_read() -> None:
    assert decompress(Codec.GZIP, gzip.compress(NOISE)) == NOISE
    streamed = zstandard.ZstdCompressor(level=19).compressobj()  # no content size in the frame, as from Java
    assert decompress(Codec.ZSTD, streamed.compress(NOISE) + streamed.flush()) == NOISE
    linked = cramjam.lz4.Compressor(content_checksum=True, block_linked=True)
    linked.compress(NOISE * 3)
    assert decompress(Codec.LZ4, bytes(linked.finish())) == NOISE * 3


def test_lz4_is_written_with_independent_blocks_because_brokers_refuse_others() -> None:
    version_and_independence = compress(Codec.LZ4, NOISE)[4] & 0b1110_0000
    assert version_and_independence == 0b0110_0000


def test_snappy_is_written_in_snappy_javas_framing_and_read_with_and_without() -> None:
    framed = compress(Codec.SNAPPY, NOISE)
    assert framed[:16] == b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(NOISE))) == NOISE
    little_endian = framed[:8] + b"\x01\x00\x00\x00\x01\x00\x00\x00" + framed[16:]
    assert decompress(Codec.SNAPPY, little_endian) == NOISE


def test_gzip_members_follow_each_other_and_padding_is_ignored() -> None:
    members = gzip.compress(b"") + gzip.compress(b"one ") + gzip.compress(b"two")
    assert decompress(Codec.GZIP, members) == b"one two"
    assert decompress(Codec.GZIP, members + bytes(100)) == b"one two"


def test_a_hundred_thousand_empty_gzip_members_are_nothing() -> None:
    assert decompress(Codec.GZIP, gzip.compress(b"", mtime=0) * 100_000 + gzip.compress(b"end")) == b"end"


OLD_LZ4 = compress(Codec.LZ4, b"old clients" * 9)
OLD_LZ4_HEADERS = {
    "plain": bytes([0x70, 0x40]),
    "with content size": bytes([0x78, 0x40]) + struct.pack("<Q", 99),
}


@pytest.mark.parametrize("header", OLD_LZ4_HEADERS)
def test_the_wrong_lz4_header_checksum_of_old_clients_is_accepted_where_they_wrote(header: str) -> None:
    """The library itself tells the right checksum: of 256 it accepts one."""
    accepted = []
    for checksum in range(256):
        frame = OLD_LZ4[:4] + OLD_LZ4_HEADERS[header] + bytes([checksum]) + OLD_LZ4[7:]
        assert decompress(Codec.LZ4, frame, ignores_lz4_header_checksum=True) == b"old clients" * 9
        try:
            accepted.append(decompress(Codec.LZ4, frame))
        except Malformed:
            continue
    assert accepted == [b"old clients" * 9]


@pytest.mark.parametrize("codec", PACKING)
def test_the_limit_is_exact(codec: Codec) -> None:
    packed = compress(codec, NOISE)
    assert decompress(codec, packed, limit_bytes=len(NOISE)) == NOISE
    with pytest.raises(Malformed, match=f"decompressed size over {len(NOISE) - 1} bytes"):
        decompress(codec, packed, limit_bytes=len(NOISE) - 1)


@pytest.mark.parametrize("codec", PACKING)
def test_a_bomb_is_refused_and_never_takes_the_memory(codec: Codec) -> None:
    piece = compress(codec, bytes(8 << 20))
    body = piece[16:] if codec is Codec.SNAPPY else piece
    bomb = piece + body * 255  # 2 GiB of zeros
    assert len(bomb) < 120 << 20
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(TooLarge, match=f"decompressed size over {DEFAULT_DECOMPRESSED_LIMIT_BYTES} bytes"):
        decompress(codec, bomb)
    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown_kb < (2 * DEFAULT_DECOMPRESSED_LIMIT_BYTES >> 10) + (100 << 10)


def test_a_snappy_block_that_claims_gigabytes_is_refused_unopened() -> None:
    with pytest.raises(Malformed, match="claims to hold 4294967295"):
        decompress(Codec.SNAPPY, b"\xff\xff\xff\xff\x0f" + bytes(100), limit_bytes=1 << 40)


@pytest.mark.parametrize("codec", PACKING)
@pytest.mark.parametrize("damage", ["cut", "garbage", "empty"])
def test_damaged_bytes_are_malformed(codec: Codec, damage: str) -> None:
    packed = compress(codec, NOISE)
    broken = {"cut": packed[:-9], "garbage": b"\x07" * 50, "empty": b""}[damage]
    with pytest.raises(Malformed):
        decompress(codec, broken)


@pytest.mark.parametrize(
    "length", [b"\x00\x00\x00\x00", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x00\x00"]
)
def test_a_snappy_frame_with_a_wrong_block_length_is_malformed(length: bytes) -> None:
    with pytest.raises(Malformed, match="snappy block"):
        decompress(Codec.SNAPPY, compress(Codec.SNAPPY, b"")[:16] + length)


@pytest.mark.parametrize("header_bytes", range(8))
def test_an_old_lz4_frame_cut_off_in_its_header_is_malformed(header_bytes: int) -> None:
    frame = compress(Codec.LZ4, b"abc")[:header_bytes]
    with pytest.raises(Malformed):
        decompress(Codec.LZ4, frame, ignores_lz4_header_checksum=True)
