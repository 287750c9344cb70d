"""The part of `make prove` that compacts a topic while it is mirrored, in its full size."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from causeway.lab.cluster import LabCluster
from causeway.lab.record import ClusterSpec
from tests.integration.fidelity.compacting import mirror_while_compacting

_UPDATES, _KEYS, _VALUE_BYTES = 1_000_000, 50_000, 80


def prove(folder: Path, say: Callable[[str], None]) -> str:
    clusters = [LabCluster(ClusterSpec(name=name), folder / name, say=say) for name in ("sf", "nyc")]
    try:
        for cluster in clusters:
            cluster.start()
        source, target = clusters
        say(f"compacting {_UPDATES:,} updates on {_KEYS:,} keys while they are mirrored")
        found = mirror_while_compacting(
            source, target, "cleaned", updates=_UPDATES, keys=_KEYS, value_bytes=_VALUE_BYTES
        )
    finally:
        for cluster in clusters:
            cluster.stop()
    say(f"compacted: {found}")
    return f"""\
## A topic compacted while it is mirrored

{_UPDATES:,} updates on {_KEYS:,} keys, with `cleanup.policy=compact` on both sides. {found}.
"""
