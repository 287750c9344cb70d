"""What a flow's offset map tells the flow of the other direction: the same records, seen from there.

    forward   sf orders   [0, 900)  ->  nyc orders   [0, 905)        five markers of the mirror's
    reverse   nyc orders  [0, 905)  ->  sf orders    [0, 900)        handed over when the reverse flow adopts

With it each map is whole by itself: it translates every offset of any age, whoever copied the record, also
when the other cluster is gone.

Invariants
    A. A hole is a hole on both sides; what lies between two runs is claimed by none.
    B. What is handed over lies before the adoption and is written in its generation, so no lane ever takes
       it for the place where to go on.
    C. Written in the order of the records, and only what lies after the last that is known: a handover that
       was broken off goes on, one that was done changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from uuid import UUID

from causeway.core.kernel.identity import Generation, SourceOffset, TargetOffset, TopicPartition
from causeway.core.offsets.offset_map import MappedRange, ranges_of_topics


def reverse_range(run: MappedRange, target: TopicPartition, generation: Generation) -> Iterator[MappedRange]:
    """`run` as the flow of the other direction would have written it, to `target`: one for each stretch."""
    source, at = int(run.target_first), int(run.source_first)
    for copied, skipped in run.segments:
        yield MappedRange(
            target=target,
            source_first=SourceOffset(source),
            target_first=TargetOffset(at),
            segments=((copied, 0),),
            first_timestamp_ms=run.first_timestamp_ms,
            last_timestamp_ms=run.last_timestamp_ms,
            generation=generation,
            source_topic_id=run.target_topic_id,
            target_topic_id=run.source_topic_id,
        )
        source, at = source + copied, at + copied + skipped


def to_hand_over(
    told: Iterable[MappedRange],
    known: Iterable[MappedRange],
    target: TopicPartition,
    ids: tuple[UUID, UUID],
    generation: Generation,
) -> list[MappedRange]:
    """`told` is what the one map has, `known` what the other has, whose topics' (source, target) are
    `ids`."""
    theirs = ranges_of_topics(told, (ids[1], ids[0]))
    ours = ranges_of_topics(known, ids)
    beyond = int(ours[-1].source_next) if ours else 0
    turned = (one for run in theirs for one in reverse_range(run, target, generation))
    return [run for run in turned if run.source_first >= beyond]
