"""The stamp in the metadata of an offset that Causeway commits for a group on the target.

It tells ours from a consumer's own progress, because a consumer that commits writes metadata of its own. Some
commit again what they read, metadata and all, beside another offset: so a stamp names the one that it belongs
to. What the group had written beside its offset on the source travels inside, if it fits.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from causeway.core.kernel.identity import SourceOffset, TargetOffset

_VERSION = 2
_MOST_BYTES = 4_096
"""`offset.metadata.max.bytes` of brokers that nobody has changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    flow: str
    source_next: SourceOffset
    """Where the group stood on the source."""
    target_next: TargetOffset
    """The offset that it was committed with."""
    time_ms: int
    metadata: str = ""
    """The group's own words on the source."""


def stamped(stamp: Stamp) -> str:
    """Metadata for the commit; the group's own words are left out if they are too long."""
    text = json.dumps(
        {
            "causeway": _VERSION,
            "flow": stamp.flow,
            "s": stamp.source_next,
            "t": stamp.target_next,
            "ms": stamp.time_ms,
            **({"m": stamp.metadata} if stamp.metadata else {}),
        },
        separators=(",", ":"),
    )
    return text if len(text) <= _MOST_BYTES or not stamp.metadata else stamped(replace(stamp, metadata=""))


def stamp_beside(offset: int, metadata: str) -> Stamp | None:
    """None: this offset isn't one that a mirror has committed, whatever metadata somebody left beside it."""
    stamp = parse_stamp(metadata)
    return stamp if stamp is not None and stamp.target_next == offset else None


def parse_stamp(metadata: str | None) -> Stamp | None:
    """None: not ours, or of a version that this code doesn't know, and so not ours to move."""
    if not metadata or not metadata.startswith('{"causeway":'):
        return None
    try:
        fields = json.loads(metadata)
        if fields["causeway"] != _VERSION:
            return None
        return Stamp(
            flow=str(fields["flow"]),
            source_next=SourceOffset(int(fields["s"])),
            target_next=TargetOffset(int(fields["t"])),
            time_ms=int(fields["ms"]),
            metadata=str(fields.get("m", "")),
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def own_words(metadata: str) -> str:
    """What the group itself has written: after a failback a mirror's stamp lies on the source, too."""
    stamp = parse_stamp(metadata)
    return metadata if stamp is None else stamp.metadata
