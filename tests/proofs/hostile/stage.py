"""Two clusters with the flow's topics, mirrored, and groups whose names want to write on the screen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from causeway.config.flows_file.load import load_flows
from causeway.lab.cluster import LabCluster
from causeway.lab.record import ClusterSpec
from tests.integration.groups.stage import commit
from tests.proofs.hostile.player import FLOW, FLOWS
from tests.support.inline_flow import InlineFlow, create_topic, named, write

TOPICS = {"orders": 4, "payments-a": 1, "quiet": 1, "ledger": 1}
"""`ledger` isn't in the flow."""
EVIL_GROUPS = (
    "evil\x1b[31m",
    "evil\nPARKED fake",
    "evil\rdone",
    "evil\u202egnp",
    "a\tb",
    "x" * 2_000,
    "\u00e9t\u00e9",
)
_RECORDS = 30


@contextmanager
def mirrored_clusters(folder: Path) -> Iterator[dict[str, LabCluster]]:
    made = {
        name: LabCluster(ClusterSpec(name=name), folder / name, say=lambda _: None) for name in ("sf", "nyc")
    }
    try:
        for cluster in made.values():
            cluster.start()
        _mirror(folder, made["sf"], made["nyc"])
        yield made
    finally:
        for cluster in made.values():
            cluster.stop()


def _mirror(folder: Path, source: LabCluster, target: LabCluster) -> None:
    for topic, partitions in TOPICS.items():
        create_topic(source, topic, partitions)
        for partition in range(partitions):
            write(source, topic, _RECORDS, partition)
    create_topic(target, "sf.ledger")  # as a flow of somebody else would have made it
    for number, group in enumerate(EVIL_GROUPS):
        commit(source, group, {("orders", 0): number})
    (folder / "flows.yaml").write_text(FLOWS)
    flow = load_flows(folder / "flows.yaml").flow(FLOW)
    assert not InlineFlow(flow, named(source, "sf"), named(target, "nyc")).run().leaves_something_out
