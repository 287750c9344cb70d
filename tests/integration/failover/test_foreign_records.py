"""Somebody wrote into `causeway-failovers.internal`: it is reported, and stops nobody."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import Producer

from causeway.core.journal.journal import Status
from causeway.core.journal.journal_format import FAILOVERS_TOPIC
from causeway.core.kernel.errors import ProtocolFault
from causeway.lab.cluster import LabCluster
from causeway.render.failover_text import sheet_text
from tests.integration.failover.conftest import MakeStage
from tests.integration.failover.stage import BASE_MS, FailoverStage

pytestmark = pytest.mark.integration
LabClusterFactory = Callable[..., LabCluster]


def foreign(stage: FailoverStage, key: bytes, value: bytes) -> None:
    producer, errors = Producer(stage.target.endpoint().settings), list[object]()
    told = lambda error, _: errors.append(error)  # noqa: E731
    producer.produce(FAILOVERS_TOPIC, value, key, partition=0, on_delivery=told)
    assert producer.flush(30) == 0
    assert errors == [None]


def test_failovers_and_rollbacks_go_on_and_the_sheet_says_it_and_a_newer_version_stops_them(
    stage: MakeStage, lab_cluster: LabClusterFactory
) -> None:
    made = stage(target=lab_cluster("nyc"), partitions=1)
    made.write([BASE_MS + n for n in range(100)])
    made.run()
    made.commit("billing", {0: 90})
    first = made.fail_over(made.wish(BASE_MS + 30))
    place = made.there("billing")
    foreign(made, b"order-7", b"hello")
    foreign(made, b"\xff\x00", b"\x00\xff")
    assert made.fail_over(made.wish(BASE_MS + 30)).was_done
    assert made.roll_back(first.run).restored == 1
    sheet = made.sheet(made.wish(BASE_MS + 30))
    assert f"journal: 2 records of {FAILOVERS_TOPIC} left out" in sheet_text(sheet)
    again = made.fail_over(made.wish(BASE_MS + 30))
    assert (again.was_done, made.there("billing")) == (False, place)
    assert [run.status for run in made.journal()] == [Status.ROLLED_BACK, Status.DONE]
    foreign(made, b'[2,"begun","another flow","r"]', b'{"v":2}')
    assert made.roll_back(again.run).restored == 1, "it harms that flow alone"
    again = made.fail_over(made.wish(BASE_MS + 30))
    foreign(made, b'[2,"begun","%s","r"]' % made.flow.name.encode(), b'{"v":2}')
    with pytest.raises(ProtocolFault, match="a newer Causeway may have written it"):
        made.roll_back(again.run)
