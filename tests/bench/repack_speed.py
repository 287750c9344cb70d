"""How fast batches are repacked, alone on one core: `make bench-repack` writes docs/repack.md.

No broker, no network: batches in memory go through `core/copy/repack.py` as a lane sends them, rebase
included. Time is CPU time of this process, the best of several tries: what else the machine does isn't
measured.
"""

from __future__ import annotations

import platform
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from causeway.core.copy.repack import repack
from causeway.core.copy.target_limits import TargetLimits
from causeway.core.records.batches import BatchHead, rebase, split_batches
from causeway.core.records.compression import Codec
from causeway.core.records.records import Record, encode_batch
from tests.integration.fidelity.cases import NOBODY

PAGE = Path(__file__).parents[2] / "docs" / "repack.md"
LEAST_PER_SECOND = 250_000
RECORD_BYTES = 100
_TRIES = 7
_HEAD = f"""\
# Repack, alone

How fast Causeway rebuilds batches, alone on one core and in memory. `make bench-repack` writes this page.

Each record has a value of {RECORD_BYTES} B and a key of 10 B. The time runs from the bytes of a fetch to
the bytes of an append. It is CPU time, the best of {_TRIES} tries. With a codec it includes decompression
and compression. The bar is {LEAST_PER_SECOND:,} records/s in each row.

| what | batch of | records/s |
|---|---|---|
"""

Batches = list[tuple[BatchHead, memoryview]]


@dataclass(frozen=True, slots=True)
class Measured:
    what: str
    batch_records: int
    per_second: int


def batch_of(count: int, codec: Codec, base: int = 0) -> bytearray:
    """Half noise, half text: it compresses about as well as JSON does."""
    noise = random.Random(count)
    records = [
        Record(
            n, 1_700_000_000_000 + n, b"key %06d" % n, noise.randbytes(RECORD_BYTES // 4).hex().encode() * 2
        )
        for n in range(count)
    ]
    data = bytearray(encode_batch(records, codec=codec, **NOBODY))
    data[:8] = base.to_bytes(8, "big")
    return data


def batches(count: int, codec: Codec, times: int = 1) -> Batches:
    data = b"".join(batch_of(count, codec, n * count) for n in range(times))
    return list(split_batches(data))


def measure(tries: int = _TRIES) -> list[Measured]:
    found = [
        _measured(f"edge of a range, {codec.name.lower()}", batches(count, codec), tries, first_wanted=1)
        for codec in Codec
        for count in (150, 9_000)
    ]
    found += [
        _measured("100 batches of one, joined", batches(1, Codec.NONE, 100), tries),
        _measured("100 batches of eight, joined", batches(8, Codec.NONE, 100), tries),
        _measured(
            "split in eight", batches(8_000, Codec.NONE), tries, demands=TargetLimits(largest_bytes=128 << 10)
        ),
        _measured("lz4 to zstd", batches(9_000, Codec.LZ4), tries, demands=TargetLimits(codec=Codec.ZSTD)),
    ]
    return found


def _measured(
    what: str, some: Batches, tries: int, *, first_wanted: int = 0, demands: TargetLimits | None = None
) -> Measured:
    count = sum(head.record_count for head, _ in some)
    each, repeats = count // len(some), max(1, 40_000 // count)

    def way() -> None:
        for _ in range(repeats):
            done = repack(some, first_wanted=first_wanted, demands=demands or TargetLimits())
            for made in done.made:
                rebase(memoryview(made.batch), producer_id=1, producer_epoch=0, base_sequence=0)

    seconds = min(_cpu_seconds(way) for _ in range(tries))
    return Measured(what, each, round(count * repeats / seconds))


def _cpu_seconds(way: Callable[[], None]) -> float:
    before = time.process_time()
    way()
    return time.process_time() - before


def page(found: list[Measured]) -> str:
    rows = "".join(f"| {m.what} | {m.batch_records:,} | {m.per_second:,} |\n" for m in found)
    day = time.strftime("%Y-%m-%d", time.gmtime())
    return f"{_HEAD}{rows}\nMeasured on {day}, Python {platform.python_version()}, {platform.machine()}.\n"


def main() -> int:
    found = measure()
    for each in found:
        print(f"{each.what:32} {each.batch_records:6,}  {each.per_second:9,} records/s", flush=True)
    slow = [m for m in found if m.per_second < LEAST_PER_SECOND]
    if slow:
        print(f"repack: under {LEAST_PER_SECOND:,} records/s: {', '.join(m.what for m in slow)}")
        return 1
    PAGE.write_text(page(found), encoding="utf-8")
    print(f"written: {PAGE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
