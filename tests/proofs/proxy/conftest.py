"""The matrix is played once for all of its tests: what was selected, by a few players at the same time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import pytest

from causeway.lab.cluster import LabCluster
from tests.proofs.proxy.fault_points import Cell
from tests.proofs.proxy.matrix import Played, play
from tests.proofs.proxy.proxy import ProxyThread

Outcomes = Callable[[Cell], Played]


@pytest.fixture(scope="session")
def played_v2(
    request: pytest.FixtureRequest,
    sf: LabCluster,
    nyc: LabCluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> Outcomes:
    return _play_selected(request, "played_v2", sf, nyc, tmp_path_factory)


@pytest.fixture(scope="session")
def played_v1(
    request: pytest.FixtureRequest,
    sf: LabCluster,
    nyc_v1: LabCluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> Outcomes:
    return _play_selected(request, "played_v1", sf, nyc_v1, tmp_path_factory)


@pytest.fixture
def proxies() -> Iterator[ProxyThread]:
    thread = ProxyThread()
    yield thread
    thread.close()


def _play_selected(
    request: pytest.FixtureRequest,
    fixture: str,
    source: LabCluster,
    target: LabCluster,
    temp: pytest.TempPathFactory,
) -> Outcomes:
    cells: list[Cell] = []
    for item in request.session.items:
        if isinstance(item, pytest.Function) and fixture in item.fixturenames:
            cell = item.callspec.params["cell"]
            assert isinstance(cell, Cell)
            cells.append(cell)
    played = play(cells, source, target, temp.mktemp(fixture))
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        green = sum(not each.failure for each in played.values())
        line = f"\n{green} of {len(cells)} cells green on Kafka {target.spec.kafka_version}"
        print(line, file=sys.stderr, flush=True)
    return lambda cell: played[str(cell)]
