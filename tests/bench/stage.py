"""Two brokers for one workload: the source keeps its data, everything else is swept away after each turn."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka.admin import AdminClient

from causeway.lab.clients import admin_client
from causeway.lab.cluster import LabCluster
from causeway.lab.record import ClusterSpec
from tests.bench.workloads import Workload
from tests.proofs.chaos.parts.processes import wait_until

# As a server would run it: no small heap, and the compiler that the lab leaves out to start faster.
_JVM = ("-Xms1g", "-Xmx1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
_BROKER = {
    "log.retention.ms": "-1",
    "log.retention.bytes": "-1",
    "log.segment.delete.delay.ms": "500",
    "num.network.threads": "3",
    "num.io.threads": "8",
    "log.cleaner.dedupe.buffer.size": str(64 << 20),
}
_SECONDS = 60.0


class Stage:
    def __init__(
        self, folder: Path, workload: Workload, *, advertised_source_port: int | None = None
    ) -> None:
        """With an advertised port, clients that have asked the source for its address go there."""
        self.workload = workload
        moved = {"advertised.listeners": f"CLIENT://127.0.0.1:{advertised_source_port}"}
        own = dict(workload.broker_settings)
        self.source = _cluster("sf", folder, own | moved if advertised_source_port else own)
        self.target = _cluster("nyc", folder, own)

    @property
    def source_port(self) -> int:
        """Where the source really listens."""
        return int(self.source.bootstrap_servers.rpartition(":")[2])

    def __enter__(self) -> Self:
        for cluster in (self.source, self.target):
            cluster.launch()
        for cluster in (self.source, self.target):
            cluster.wait_until_ready()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.source.stop()
        self.target.stop()

    def sweep(self) -> None:
        """Delete what the last contender made, on both sides."""
        for cluster, kept in ((self.source, set(self.workload.topic_names)), (self.target, set())):
            client = admin_client(cluster.endpoint())
            doomed = _topics(client) - kept
            for answer in client.delete_topics(sorted(doomed)).values() if doomed else ():
                answer.result(_SECONDS)
            wait_until(partial(_has_no_others, client, kept), "topics to go", timeout_seconds=_SECONDS)


def _cluster(name: str, folder: Path, settings: dict[str, str]) -> LabCluster:
    spec = ClusterSpec(name=name, broker_settings=_BROKER | settings, jvm_options=_JVM)
    return LabCluster(spec, folder / name)


def _has_no_others(client: AdminClient, kept: set[str]) -> bool:
    return _topics(client) <= kept


def _topics(client: AdminClient) -> set[str]:
    return {name for name in client.list_topics(timeout=_SECONDS).topics if not name.startswith("__")}
