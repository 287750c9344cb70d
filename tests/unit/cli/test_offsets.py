"""`causeway translate` and `maintain`: what is asked, what is printed; the clusters are elsewhere."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TypedDict
from uuid import UUID

import pytest

from causeway.cli.main import main
from causeway.core.kernel.identity import SourceOffset, TargetOffset, TopicPartition
from causeway.core.offsets.mm2_offset_syncs import Inherited
from causeway.core.offsets.translation import FlowMap, PartitionMap, Reach
from causeway.usecases.offsets import maintain_map, translate
from tests.support import builders
from tests.support.flows_yaml import ONE_FLOW


class Ids(TypedDict):
    source_topic_id: UUID
    target_topic_id: UUID


IDS = Ids(source_topic_id=UUID(int=1), target_topic_id=UUID(int=2))
PAIR = builders.known_pair()
PLACE = TopicPartition("sf.orders", 0)
RUN = builders.mapped_range(100, 40, (3, 2), (2, 0))


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "flows.yaml").write_text(ONE_FLOW)
    monkeypatch.chdir(tmp_path)
    for name in ("SF", "NYC"):
        connection = {"conn_type": "kafka", "extra": {"bootstrap.servers": f"{name}:1"}}
        monkeypatch.setenv(f"AIRFLOW_CONN_KAFKA_{name}", json.dumps(connection))
    index = PartitionMap([RUN], Reach(source_next=SourceOffset(107), target_next=TargetOffset(45)), **IDS)
    found = FlowMap({"sf.orders": PAIR}, {PLACE: index})
    monkeypatch.setattr(translate, "load_flow_map", lambda *_, **__: found)


def test_each_place_gets_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", "sf_to_nyc", "orders:0:101", "orders:0:103"]) == 0
    assert capsys.readouterr().out == "orders:0:101 -> sf.orders:0:41\norders:0:103 -> sf.orders:0:43\n"
    assert main(["translate", "sf_to_nyc", "sf.orders:0:44", "--reverse"]) == 0
    assert capsys.readouterr().out == "sf.orders:0:44 -> orders:0:106\n"


def test_a_lower_bound_is_an_answer_that_says_what_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    points = ((10, 5), (60, 30))
    told = Inherited(source_next=SourceOffset(100), target_next=TargetOffset(40), points=points, **IDS)
    index = PartitionMap(
        [RUN], Reach(source_next=SourceOffset(107), target_next=TargetOffset(45)), **IDS, inherited=told
    )
    found = FlowMap({"sf.orders": PAIR}, {PLACE: index})
    monkeypatch.setattr(translate, "load_flow_map", lambda *_, **__: found)
    bound = "a lower bound, by MirrorMaker 2's offset syncs"
    assert main(["translate", "sf_to_nyc", "orders:0:61", "orders:0:100"]) == 0
    assert (
        capsys.readouterr().out
        == f"orders:0:61 -> sf.orders:0:31 ({bound})\norders:0:100 -> sf.orders:0:40\n"
    )
    assert main(["translate", "sf_to_nyc", "sf.orders:0:7", "--reverse", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["translations"]
    assert (row["to"], row["is_lower_bound"], row["why"]) == ("orders:0:11", True, bound)


def test_what_leads_nowhere_says_why_and_ends_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", "sf_to_nyc", "orders:0:9", "orders:0:100", "orders:1:0", "other:0:0"]) == 1
    assert capsys.readouterr().out == (
        "orders:0:9: older than the map, which begins with 100 -> 40\n"
        "orders:0:100 -> sf.orders:0:40\n"
        "orders:1:0: never mirrored\n"
        "other:0:0: topic not in the flow\n"
    )


def test_many_come_from_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("orders:0:100\n\n orders:0:999 \n"))
    assert main(["translate", "sf_to_nyc", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "flow": "sf_to_nyc",
        "is_reverse": False,
        "translations": [
            {
                "from": "orders:0:100",
                "to": "sf.orders:0:40",
                "reason": None,
                "why": None,
                "is_lower_bound": False,
            },
            {
                "from": "orders:0:999",
                "to": None,
                "reason": "ahead of the mirror",
                "why": "ahead of the mirror, which ends with 107 -> 45",
                "is_lower_bound": False,
            },
        ],
    }


@pytest.mark.parametrize(
    "place",
    ["orders", "orders:0", "orders:0:x", "orders:-1:5", "orders:0:5:6", ":0:5", "o:0:" + "9" * 20],
)
def test_what_is_no_place_is_refused(capsys: pytest.CaptureFixture[str], place: str) -> None:
    assert main(["translate", "sf_to_nyc", place]) == 2
    assert "isn't one; write orders:0:123" in capsys.readouterr().err


def test_maintenance_tells_what_became_of_the_map(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    report = maintain_map.MaintenanceReport(
        flow="sf_to_nyc",
        partitions=2,
        entries_before=60,
        bytes_before=4_000,
        entries_after=17,
        bytes_after=900,
        transactions=1,
        put_off=["sf.orders-0"],
    )
    monkeypatch.setattr(maintain_map, "maintain_map", lambda *_: report)
    assert main(["maintain", "sf_to_nyc"]) == 0
    assert capsys.readouterr().out == (
        "sf_to_nyc: 60 entries of 4,000 bytes became 17 of 900, for 2 partitions, in 1 transaction\n"
        "PUT OFF sf.orders-0: a lane wrote there meanwhile\n"
    )
