"""The bench in small: Causeway, the loop, the limit; without MirrorMaker 2, whose jars are `make bench`'s."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from causeway.lab.cluster import LabCluster
from tests.bench.bench import Bench
from tests.bench.data import make_data
from tests.bench.gauge import Gauge
from tests.bench.peers.causeway_spark import DRIVER, JVM, WORKERS, CausewayOnSpark
from tests.bench.peers.contender import Contender, Launch, Scene
from tests.bench.peers.plain_loop import PlainLoop
from tests.bench.table import plain_text
from tests.bench.turn import TurnFailed, take_turn
from tests.bench.workloads import WORKLOADS, Workload, chosen
from tests.proofs.chaos.parts.processes import Started, members
from tests.proofs.chaos.parts.processes import start as start_process

pytestmark = pytest.mark.integration


@pytest.mark.spark
def test_everybody_copies_everything_and_is_measured(tmp_path: Path) -> None:
    (work,) = chosen("plain", 0.002, None)
    said: list[str] = []
    contenders: list[Contender] = [PlainLoop(), CausewayOnSpark()]
    bench = Bench(tmp_path, contenders, rounds=1, say=said.append, followed_seconds=2.0, warms_up=False)

    outcome = bench.run(work)

    print(plain_text(outcome))
    loop, causeway = outcome.turns
    assert {turn.records for turn in outcome.turns} == {work.records}
    assert (loop.repeated, causeway.repeated) == (0, 0)
    assert len(outcome.limit_seconds) == 1
    assert outcome.log_bytes > work.value_bytes_in_all
    assert {JVM, DRIVER, WORKERS} <= causeway.cpu_by_kind.keys()
    assert {JVM, DRIVER, WORKERS} <= causeway.peak_bytes_by_kind.keys()
    assert 0.5 * causeway.cpu_seconds < sum(causeway.cpu_by_kind.values()) <= causeway.cpu_seconds
    (idle,) = outcome.idleness
    assert idle.rounds > 0
    assert list(tmp_path.glob("**/data")) == [], "the brokers' data stays behind"


class Broken:
    """Ends by itself, in a way of its own, with nothing copied."""

    name = "broken"

    def __init__(self, code: str) -> None:
        self._code = code

    def prepare(self, scene: Scene) -> Launch:
        return Launch(command=[sys.executable, "-c", self._code])


class LosesOne(PlainLoop):
    """Counts as complete for itself, but leaves out a topic."""

    def prepare(self, scene: Scene) -> Launch:
        launch = super().prepare(scene)
        return Launch(command=launch.command[:-1])


@pytest.fixture(scope="module")
def work(sf: LabCluster) -> Workload:
    two_topics = chosen("wide", 0.1, None)[0]
    small = replace(two_topics, records=400, partitions_per_topic=2)
    make_data(sf.endpoint(), small)
    return small


def take(
    contender: Contender, alias: str, work: Workload, sf: LabCluster, nyc: LabCluster, folder: Path
) -> None:
    take_turn(contender, Scene(source=sf, target=nyc, workload=work, alias=alias, folder=folder))


def test_the_data_is_what_the_workload_says(sf: LabCluster, work: Workload) -> None:
    with Gauge(sf.endpoint(), work.topic_names) as gauge:
        found = gauge.tally()
    assert found.records == work.records
    assert found.log_bytes > work.value_bytes_in_all


def test_single_records_are_batches_of_their_own(sf: LabCluster) -> None:
    single = next(each for each in WORKLOADS if each.name == "singles").scaled(0.0004)
    make_data(sf.endpoint(), single)
    with Gauge(sf.endpoint(), single.topic_names) as gauge:
        found = gauge.tally()
    assert (found.records, found.batches) == (200, 200)


def test_a_contender_that_loses_records_fails_its_turn(
    sf: LabCluster, nyc: LabCluster, work: Workload, tmp_path: Path
) -> None:
    with pytest.raises(TurnFailed, match=r"of 400 records; its log ends: "):
        take(LosesOne(), "lossy", work, sf, nyc, tmp_path)


def test_a_contender_that_ends_badly_fails_its_turn_with_its_last_words(
    sf: LabCluster, nyc: LabCluster, work: Workload, tmp_path: Path
) -> None:
    with pytest.raises(TurnFailed, match="ended with 3; its log ends: no luck"):
        take(Broken("print('no luck'); raise SystemExit(3)"), "bad", work, sf, nyc, tmp_path)


def test_a_turn_that_fails_leaves_no_process(
    sf: LabCluster, nyc: LabCluster, work: Workload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Ctrl-C, which strikes while the contender is watched."""
    started: list[Started] = []

    def start(*arguments: object) -> Started:
        started.append(start_process(*arguments))  # type: ignore[arg-type]
        return started[-1]

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tests.bench.turn.start", start)
    monkeypatch.setattr("tests.bench.turn._look", interrupt)
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)"
    with pytest.raises(KeyboardInterrupt):
        take(Broken(code), "stopped", work, sf, nyc, tmp_path)
    assert [members(run.pid) for run in started] == [[]]
