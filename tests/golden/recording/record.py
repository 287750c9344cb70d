"""The recorder: makes every stored format of the tree's own version with real runs, and keeps the bytes.

    python -m tests.golden.recording.record FOLDER

starts two lab clusters, `sf` and `nyc`, plays the scenes of `scenes.py` and `away.py` with the product's own
code, and writes into FOLDER what lies on both clusters then (`dump.py` has the layout), with `expected.json`:
what this version's own code reads out of it (`facts.py`). The clusters are stopped and deleted in the end.

It records the version that it runs from. The bytes of a version that is no longer in the tree are never
recorded again: their folder stays as it is.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from causeway.lab.cluster import LabCluster
from causeway.lab.record import ClusterSpec
from tests.golden.facts import facts_of
from tests.golden.recording import away, scenes
from tests.golden.recording.dump import dump_cluster, write_json
from tests.golden.recording.scenes import Ground
from tests.golden.stored import Golden

ROOT = Path(__file__).parents[3]
_ACLS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "allow.everyone.if.no.acl.found": "true",
}
_SOON_CLEANED = {"log.cleaner.backoff.ms": "200"}
"""Of the source only: on the target the cleaner would take older records out of the internal topics."""


@contextmanager
def two_clusters(home: Path) -> Iterator[Ground]:
    made = [
        LabCluster(ClusterSpec(name=name, broker_settings=settings), home / name)
        for name, settings in (("sf", _ACLS | _SOON_CLEANED), ("nyc", _ACLS))
    ]
    try:
        for cluster in made:
            cluster.launch()
        for cluster in made:
            cluster.wait_until_ready()
        sf, nyc = made
        yield Ground(sf, nyc, home)
    finally:
        for cluster in made:
            cluster.stop()


def record(folder: Path) -> None:
    assert not folder.exists(), f"{folder} is there: what was recorded stays as it is"
    assert not _asked_git("status", "--porcelain", "--", "include"), "commit the product's changes first"
    with tempfile.TemporaryDirectory() as home, two_clusters(Path(home)) as ground:
        for scene in (*scenes.SCENES, *away.SCENES):
            began = time.monotonic()
            scene(ground)
            print(f"{scene.__name__}: {time.monotonic() - began:.1f} s", flush=True)
        for cluster in (ground.sf, ground.nyc):
            dump_cluster(cluster, folder / cluster.name)
        write_json(folder / "flows.json", ground.definitions)
        write_json(folder / "recorded.json", {"commit": _commit(), "at_ms": int(time.time() * 1_000)})
    write_json(folder / "expected.json", {name: facts_of(Golden(folder / name)) for name in ("nyc", "sf")})


def _commit() -> str:
    """The last one that changed the product."""
    return _asked_git("log", "-1", "--format=%h", "--", "include")


def _asked_git(*words: str) -> str:
    asked = ["git", "-C", str(ROOT), *words]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    record(Path(sys.argv[1]))
