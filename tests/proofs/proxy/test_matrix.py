"""Each request of the copy protocol x each fault x {worker goes on, worker killed}: after each the mirror is
the source, record by record and in order; position and map are exact; no transaction is open.

A cell whose fault never came fails too. Here a sample is played, in each run another: every request, every
fault with every ending, and the cells that find the mutations of tests/proofs/chaos/mutations.md. PROXY_SEED
plays the same again, PROXY_CELLS=all plays all of them, as `python -m tests.proofs.proxy.prove` does.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from causeway.lab.cluster import LabCluster
from tests.proofs.proxy.conftest import Outcomes
from tests.proofs.proxy.fault_points import (
    KINDS,
    SITES_V1,
    SITES_V2,
    Cell,
    Ending,
    Setting,
    Site,
    cells,
    finds_a_mutation,
    kind_of,
    sample,
)
from tests.proofs.proxy.lane_processes import lane_processes
from tests.proofs.proxy.proxy import Fault, ProxyThread
from tests.proofs.proxy.track import Track

pytestmark = [pytest.mark.integration, pytest.mark.chaos]

SEED = int(os.environ["PROXY_SEED"])


def _chosen(sites: tuple[Site, ...]) -> tuple[Cell, ...]:
    return cells(sites) if os.environ.get("PROXY_CELLS") == "all" else sample(sites, SEED)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("cell", _chosen(SITES_V2), ids=str)
def test_nothing_is_lost_repeated_or_out_of_order(cell: Cell, played_v2: Outcomes) -> None:
    played = played_v2(cell)
    assert not played.failure, f"PROXY_SEED={SEED}\n{played.failure}"


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("cell", _chosen(SITES_V1), ids=str)
def test_nothing_is_lost_repeated_or_out_of_order_with_old_transactions(
    cell: Cell, played_v1: Outcomes
) -> None:
    played = played_v1(cell)
    assert not played.failure, f"PROXY_SEED={SEED}\n{played.failure}"


def test_the_matrix_is_complete() -> None:
    for sites in (SITES_V2, SITES_V1):
        every = cells(sites)
        assert len({str(cell) for cell in every}) == len(every)
        assert len(set(sites)) == len(sites)
        for site in sites:
            told = {(cell.fault, cell.ending) for cell in every if cell.site is site}
            assert told == {(fault, ending) for fault in Fault for ending in Ending}


@pytest.mark.parametrize("sites", [SITES_V2, SITES_V1], ids=["v2", "v1"])
def test_a_sample_has_every_request_every_fault_and_the_cells_that_find_mutations(
    sites: tuple[Site, ...],
) -> None:
    first = sample(sites, 0)
    assert first == sample(sites, 0) != sample(sites, 1)
    for seed in range(50):
        chosen = sample(sites, seed)
        assert {cell.site for cell in chosen} == set(sites)
        assert {kind_of(cell) for cell in chosen} == set(KINDS)
        assert sum(map(finds_a_mutation, chosen)) == 2
        assert len(chosen) <= len(sites) + 4
        assert set(chosen) <= set(cells(sites))


@pytest.mark.parametrize("new", [pytest.param(True, id="v2"), pytest.param(False, id="v1")])
def test_no_request_of_the_protocol_is_missing(
    new: bool, sf: LabCluster, request: pytest.FixtureRequest, proxies: ProxyThread, tmp_path: Path
) -> None:
    """A lane that begins to send something new has to get its cells."""
    target: LabCluster = request.getfixturevalue("nyc" if new else "nyc_v1")
    settings = [setting for setting in Setting if new or setting is not Setting.LEFT_OPEN]
    sites = [site for site in (*SITES_V2, *(() if new else SITES_V1)) if site.setting in settings]
    listed = {(site.side, int(site.api), site.about) for site in sites}
    with lane_processes(tmp_path) as lanes:
        track = Track(f"kinds-{new}", sf, target, proxies, lanes)
        sent = set().union(*(track.kinds_sent(setting) for setting in settings))
        track.close()
    assert sent == listed
