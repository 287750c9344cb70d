"""What a flow has put into quarantine: which source records its mirror doesn't have, for whoever compares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from causeway.brokers.admin.record_reader import RecordReader
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.identity import TopicPartition
from causeway.core.topics.quarantine import Origin, origin_of
from causeway.usecases.verify.partition_pair import PartitionPair


def read_quarantine(target: ClusterEndpoint, topic: str) -> set[Origin]:
    """:raises CausewayError: it can't be read to its end."""
    found: set[Origin] = set()
    place = TopicPartition(topic, 0)
    with RecordReader(target) as reader:
        reader.open(place, *reader.bounds(place))
        while True:
            reader.fill()
            for _, _, _, headers in reader.buffer.contents:
                origin = origin_of(headers or ())
                if origin is not None:
                    found.add(origin)
            reader.buffer.drop(len(reader.buffer))
            if reader.buffer.is_complete:
                return found


def without_quarantined(pairs: Sequence[PartitionPair], origins: set[Origin]) -> list[PartitionPair]:
    """The same pairs, each with the records that its mirror needn't have."""
    offsets: dict[tuple[TopicPartition, object], set[int]] = {}
    for origin in origins:
        offsets.setdefault((origin.source, origin.source_topic_id), set()).add(origin.offset)
    return [
        replace(pair, quarantined=frozenset(offsets.get((pair.source, pair.source_topic_id), ())))
        for pair in pairs
    ]
