"""MirrorMaker 2's scenario of a failover and its failback, under its name.

Its test allows any place from after the first record to the end; here it is the exact one.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from causeway.lab.cluster import LabCluster
from tests.integration.failback.stage import FailbackStage

pytestmark = pytest.mark.integration
PARTITIONS, RECORDS = 10, 100


def test_replication(sf: LabCluster, nyc: LabCluster, topic_name: Callable[..., str]) -> None:
    """Both ways with prefixes; a group reads on the primary, fails over to the backup, and fails back."""
    stage = FailbackStage(sf, nyc, topic_name("replication"), keeps_names=False, partitions=PARTITIONS)
    try:
        for cluster in (sf, nyc):
            stage.write_evenly(cluster, RECORDS)
        stage.forward.run()
        stage.reverse.run()
        half = {p: len(records) // 2 for p, records in stage.log(sf, stage.stem).items()}
        on_primary = {p: r[half[p]][0] for p, r in stage.log(sf, stage.stem).items()}
        stage.commit(sf, "g", stage.stem, on_primary)

        stage.fail_over()
        backup = stage.log(nyc, stage.mirrored)
        assert stage.stands(nyc, "g", stage.mirrored) == {p: backup[p][half[p]][0] for p in half}
        further = {p: records[-1][0] for p, records in backup.items()}
        stage.commit(nyc, "g", stage.mirrored, further)

        stage.resume()
        stage.come_home()
        primary = stage.log(sf, stage.stem)
        assert stage.stands(sf, "g", stage.stem) == {p: records[-1][0] for p, records in primary.items()}
        assert stage.forward.run().records == 0
        assert stage.reverse.run().records == 0
    finally:
        stage.close()
