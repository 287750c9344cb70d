"""The network between a mirror and its clusters: one link to each broker.

Only the mirror goes through them. Producers, readers and whoever asks for the truth go straight to the
brokers.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from causeway.lab.cluster import LabCluster
from causeway.lab.ports import free_ports
from tests.proofs.chaos.parts.link import HOST
from tests.proofs.chaos.parts.processes import Started, start, wait_until

_ROOT = Path(__file__).parents[4]


@dataclass(slots=True)
class _Link:
    name: str
    port: int
    broker_port: int
    process: Started | None = None


@dataclass(slots=True)
class Links:
    clusters: Sequence[LabCluster]
    folder: Path
    _links: dict[str, _Link] = field(init=False)
    _starts: int = 0

    def __post_init__(self) -> None:
        brokers = [(cluster, number) for cluster in self.clusters for number in cluster.node_numbers]
        ports = free_ports(len(brokers))
        self._links = {}
        for (cluster, number), port in zip(brokers, ports, strict=True):
            name = cluster.name if len(cluster.node_numbers) == 1 else f"{cluster.name}/{number}"
            broker_port = _broker_ports(cluster)[number - 1]
            self._links[name] = _Link(name, port, broker_port)

    @property
    def names(self) -> list[str]:
        return list(self._links)

    def start(self) -> None:
        for link in self._links.values():
            self._start(link)

    def stop(self) -> None:
        for link in self._links.values():
            if link.process is not None:
                link.process.kill_all()

    def bootstrap_servers(self, cluster: LabCluster) -> str:
        by_broker = {link.broker_port: link.port for link in self._links.values()}
        return ",".join(f"{HOST}:{by_broker[port]}" for port in _broker_ports(cluster))

    def connection_json(self, cluster: LabCluster) -> str:
        """As the cluster's own, but through the links."""
        settings = {**cluster.endpoint().settings, "bootstrap.servers": self.bootstrap_servers(cluster)}
        return json.dumps({"conn_type": "kafka", "extra": settings})

    def is_open(self, name: str) -> bool:
        process = self._links[name].process
        return process is not None and process.exit_code is None and not process.is_stopped()

    def silence(self, name: str, seconds: float) -> None:
        process = self._process(name)
        process.send(signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            process.send(signal.SIGCONT)

    def cut(self, name: str, seconds: float) -> None:
        self._process(name).kill_all()
        time.sleep(seconds)
        self._start(self._links[name])

    def _process(self, name: str) -> Started:
        process = self._links[name].process
        assert process is not None
        assert process.exit_code is None, f"link {name} ended by itself: {process.output()[-2000:]}"
        return process

    def _start(self, link: _Link) -> None:
        self._starts += 1
        readdressed = {each.broker_port: each.port for each in self._links.values()}
        command = [
            sys.executable,
            "-m",
            "tests.proofs.chaos.parts.link",
            str(link.port),
            str(link.broker_port),
        ]
        log = self.folder / f"link-{self._starts}.log"
        paths = f"{_ROOT}:{os.environ.get('PYTHONPATH', '')}"
        link.process = started = start(
            f"link to {link.name}",
            [*command, json.dumps(readdressed)],
            log,
            {**os.environ, "PYTHONPATH": paths},
        )
        wait_until(
            lambda: "listening" in started.output() or started.exit_code is not None,
            f"{started.name} listens",
        )
        assert started.exit_code is None, started.output()


def _broker_ports(cluster: LabCluster) -> list[int]:
    """In the order of the nodes' numbers."""
    return [int(address.rpartition(":")[2]) for address in cluster.bootstrap_servers.split(",")]
