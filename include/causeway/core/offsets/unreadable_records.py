"""Records of the offset map that can't be read, each with its place: what `doctor` names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from causeway.core.kernel.errors import NewerFormat, ProtocolFault
from causeway.core.kernel.identity import TopicPartition
from causeway.core.model.flow import Flow
from causeway.core.offsets.map_format import decode_place, decode_ranges, is_ours, is_place, target_of


@dataclass(frozen=True, slots=True, kw_only=True)
class OddInMap:
    at: TopicPartition
    """The partition of the map."""
    offset: int
    key: bytes
    target: TopicPartition | None = None
    """Whose map begins after it; None: it is a foreign record, and concerns nobody."""
    is_newer: bool = False

    @property
    def name(self) -> str:
        return f"{self.at}:{self.offset}"


def odd_of_map(at: TopicPartition, latest: Mapping[bytes, tuple[int, bytes | None]]) -> Iterator[OddInMap]:
    """`latest`: by key, the newest record, as compaction leaves it."""
    for key, (offset, value) in latest.items():
        if value is None:
            continue
        if not is_ours(key):
            yield OddInMap(at=at, offset=offset, key=key)
            continue
        try:
            decode_place(key, value) if is_place(key) else decode_ranges(key, value)
        except NewerFormat:
            yield OddInMap(at=at, offset=offset, key=key, is_newer=True)
        except ProtocolFault:
            yield OddInMap(at=at, offset=offset, key=key, target=target_of(key))


def map_gone_remedy(flow: Flow) -> str:
    return f"`causeway run {flow.name} --until-caught-up` makes it again, for what is copied from then on"


def map_gone_rule(flow: Flow) -> str:
    return (
        f"isn't on {flow.target}, although flow {flow.name} has mirrored records: offsets of what was copied "
        "so far can't be translated, and groups that stand there can't be moved"
    )


def map_gone_line(flow: Flow) -> str:
    return f"{flow.map_topic}: {map_gone_rule(flow)}; {map_gone_remedy(flow)}"
