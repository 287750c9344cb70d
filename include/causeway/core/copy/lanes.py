"""Which lane a target partition belongs to: a stable hash, the same in every process and version.

The lane names the transactional id, and the transactional id is the fence: were this function to
answer differently in two places, two owners could write one partition.
"""

from __future__ import annotations

from zlib import crc32

from causeway.core.kernel.identity import TopicPartition


def lane_of(target: TopicPartition, lanes: int) -> int:
    return crc32(f"{target.topic}/{target.partition}".encode()) % lanes
