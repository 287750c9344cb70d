"""Real brokers for every test that asks for one: started when first asked for, stopped after the last one.

`sf`, `nyc` and `nyc_v1` last as long as the session, any other one as long as a module at most: a broker that
nobody asks any more takes some 2 % of a core, and dozens of them take minutes from the suite.

They die with pytest, even if that is killed with -9. Homes and logs stay under pytest's temporary directory
(`pytest --basetemp` says where), as long as pytest keeps it.

`make test` runs three workers, each with whole files and with brokers and ports of its own.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from hypothesis import HealthCheck, settings

from causeway.lab.clients import admin_client
from causeway.lab.cluster import LabCluster
from causeway.lab.ports import PORTS_VARIABLE
from causeway.lab.record import ClusterSpec
from causeway.usecases.run_lock import write_proof
from causeway.usecases.takeover import run as takeover_run
from tests.support import took
from tests.support.scratch import use_scratch

_PORTS_OF_A_WORKER = 2_000

use_scratch()

settings.register_profile(
    "causeway",
    max_examples=int(os.environ.get("PROPERTY_EXAMPLES", "25")),  # 5000 digs for the rare ones
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],  # it judges by the clock
)
settings.load_profile("causeway")

_KEEPS = {"log.retention.check.interval.ms": "86400000"}
"""Tests write records from years ago. A shared broker must not delete them in the middle of another test."""

LabClusterFactory = Callable[..., LabCluster]
AdminOf = Callable[[LabCluster], AdminClient]


def pytest_configure(config: pytest.Config) -> None:
    """One seed for all workers: it decides which cells of the proxy's matrix are tests.

    And Ctrl-C counts, also where a shell has started the suite in the background: tests press it.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.setdefault("PROXY_SEED", str(random.SystemRandom().randrange(1_000_000)))
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if worker:
        first = 16_000 + _PORTS_OF_A_WORKER * int(worker.removeprefix("gw"))
        os.environ[PORTS_VARIABLE] = f"{first}-{first + _PORTS_OF_A_WORKER - 1}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Once for all workers."""
    reports = [each for of_kind in terminalreporter.stats.values() for each in of_kind]
    timed = [each for each in reports if isinstance(each, pytest.TestReport)]
    if said := took.lines(took.folders(timed)):
        terminalreporter.section("seconds by folder of tests, of all workers together")
        for line in said:
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def shared_clusters(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[LabClusterFactory]:
    """Of `sf`, `nyc` and `nyc_v1`."""
    yield from cluster_factory(tmp_path_factory, request)


@pytest.fixture(scope="module")
def lab_clusters(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[LabClusterFactory]:
    """Makes clusters that last as long as the module; prefer `sf` and `nyc`, which everybody shares."""
    yield from cluster_factory(tmp_path_factory, request)


@pytest.fixture
def lab_cluster(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[LabClusterFactory]:
    """Makes and starts clusters for one test, to be mistreated: `lab_cluster("x", nodes=3)`."""
    yield from cluster_factory(tmp_path_factory, request)


@pytest.fixture(scope="session")
def sf(shared_clusters: LabClusterFactory) -> LabCluster:
    return shared_clusters("sf", broker_settings=_KEEPS)


@pytest.fixture(scope="session")
def nyc(shared_clusters: LabClusterFactory) -> LabCluster:
    return shared_clusters("nyc", broker_settings=_KEEPS)


@pytest.fixture(scope="session")
def nyc_v1(shared_clusters: LabClusterFactory) -> LabCluster:
    """A target of the old kind: Kafka 3.9, where transactions are of version 1."""
    return shared_clusters("nyc_v1", kafka_version="3.9.2", broker_settings=_KEEPS)


@pytest.fixture(scope="module")
def admin_of() -> AdminOf:
    """A confluent AdminClient of a cluster, one per cluster."""
    clients: dict[str, AdminClient] = {}

    def of(cluster: LabCluster) -> AdminClient:
        if cluster.cluster_id not in clients:
            clients[cluster.cluster_id] = admin_client(cluster.endpoint())
        return clients[cluster.cluster_id]

    return of


@pytest.fixture
def nobody_is_held_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """No group sync runs beside the test's failovers: they don't wait for what one may have sent before."""
    monkeypatch.setattr(write_proof, "OUTLIVED_SECONDS", 0.05)


@pytest.fixture
def nobody_writes_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """No MirrorMaker 2 is at work beside the test's takeovers: they don't watch for three seconds."""
    monkeypatch.setattr(takeover_run, "_WATCHED_SECONDS", 0.1)


@pytest.fixture
def sf_admin(sf: LabCluster, admin_of: AdminOf) -> AdminClient:
    return admin_of(sf)


@pytest.fixture
def nyc_admin(nyc: LabCluster, admin_of: AdminOf) -> AdminClient:
    return admin_of(nyc)


@pytest.fixture
def topic_name() -> Callable[..., str]:
    """Names that no other test has, on clusters that tests share: `topic_name()`, `topic_name("orders")`."""
    token, numbers = uuid.uuid4().hex[:8], itertools.count(1)
    return lambda stem="topic": f"{stem}-{token}-{next(numbers)}"


def cluster_factory(
    temp: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[LabClusterFactory]:
    """What a fixture yields: it kills all that it has made."""
    made, say = list[LabCluster](), _say(request)

    def make(name: str = "lab", *, home: Path | None = None, start: bool = True, **wishes: Any) -> LabCluster:
        cluster = LabCluster(ClusterSpec(name=name, **wishes), home or temp.mktemp(name), say=say)
        made.append(cluster)
        if start:
            cluster.start()
        return cluster

    yield make
    for cluster in made:
        cluster.kill()  # nobody reads its data any more, and to end in order takes seconds


def _say(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Straight to the terminal: a fixture that fetches jars for a minute must not look like a hang."""
    capture = request.config.pluginmanager.getplugin("capturemanager")

    def say(line: str) -> None:
        with capture.global_and_fixture_disabled():
            print(f"\n{line}", file=sys.stderr, flush=True)  # a worker has no other way to the terminal

    return say
