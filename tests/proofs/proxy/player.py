"""Plays the cells that it reads from standard input, one a line, and says of each how it went.

    python -m tests.proofs.proxy.player SOURCE_HOME TARGET_HOME FOLDER

A process of its own: proxies and lanes of several players would wait for each other in one.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
import uuid
from pathlib import Path

from causeway.core.copy import repack
from causeway.core.kernel.errors import CausewayError
from causeway.lab.cluster import LabCluster
from tests.proofs.proxy.fault_points import SITES_V1, SITES_V2, Cell, cells
from tests.proofs.proxy.lane_processes import lane_processes
from tests.proofs.proxy.proxy import ProxyThread
from tests.proofs.proxy.track import Track


def main(source_home: str, target_home: str, folder: str) -> None:
    known = {str(cell): cell for cell in cells((*SITES_V2, *SITES_V1))}
    source, target = LabCluster.open(Path(source_home)), LabCluster.open(Path(target_home))
    thread = ProxyThread()
    with lane_processes(Path(folder)) as lanes:
        track = Track(uuid.uuid4().hex[:8], source, target, thread, lanes)
        for line in sys.stdin:
            began = time.monotonic()
            failure = _play(track, known[line.strip()])
            print(json.dumps([failure, time.monotonic() - began]), flush=True)
        track.close()
    thread.close()


def _play(track: Track, cell: Cell) -> str:
    """How it failed; empty: it didn't."""
    try:
        track.play(cell)
    except (AssertionError, CausewayError):
        return traceback.format_exc()
    return ""


if __name__ == "__main__":
    repack._FEW_RECORDS = 0  # these places want many requests: small batches aren't joined here
    main(*sys.argv[1:])
