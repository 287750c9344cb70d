"""What was begun again by hand is compared from there on, and what lies before it is named."""

from __future__ import annotations

import pytest

from causeway.core.kernel.identity import TopicPartition
from causeway.core.verify.report import PartitionVerdict
from causeway.lab.cluster import LabCluster
from causeway.render.verify import verdict_text
from causeway.usecases.repair.adopt import adopt_partition
from causeway.usecases.repair.reconcile import reconcile_partition
from causeway.usecases.repair.restart_topic import restart_topic
from causeway.usecases.repair.set_positions import Reason
from tests.support.inline_flow import InlineFlow, create_topic, delete_topic, own_flow, topic_of, write

pytestmark = pytest.mark.integration
REASON = Reason(by="a test", because="it was made again")


@pytest.fixture
def runs(sf: LabCluster, nyc: LabCluster) -> InlineFlow:
    mirrored = own_flow(sf, nyc, "begins")
    create_topic(sf, topic_of(mirrored))
    write(sf, topic_of(mirrored), 30)
    assert mirrored.run().records == 30
    return mirrored


def place_of(runs: InlineFlow) -> TopicPartition:
    return TopicPartition(topic_of(runs), 0)


def adopt(runs: InlineFlow, offset: int) -> None:
    ends = runs.source, runs.target
    adopt_partition(runs.flow, *ends, place_of(runs), offset, REASON, even_though_healthy=True)


def verified(runs: InlineFlow) -> PartitionVerdict:
    (verdict,) = runs.verify().partitions
    return verdict


def found(verdict: PartitionVerdict) -> tuple[int, int, int, int, int]:
    return verdict.equal, verdict.different, verdict.missing, verdict.extra, verdict.not_compared


def test_a_topic_that_was_begun_again(runs: InlineFlow, sf: LabCluster, nyc: LabCluster) -> None:
    topic = topic_of(runs)
    delete_topic(sf, topic)
    create_topic(sf, topic)
    write(sf, topic, 12)
    restart_topic(runs.flow, runs.source, runs.target, topic, REASON)
    assert found(verified(runs)) == (0, 0, 0, 0, 31), "nothing of it is mirrored yet"
    assert runs.run().records == 12

    assert found(verified(runs)) == (12, 0, 0, 0, 31)  # thirty records and a marker lie before it
    text = verdict_text(runs.flow.name, runs.verify())
    assert f"{topic}-0: compared from source offset 0 and target offset 31 on" in text
    assert "restart-topic" in text
    assert "a test" in text
    assert "it was made again" in text
    write(nyc, f"sf.{topic}", 1)
    assert found(verified(runs)) == (12, 0, 0, 1, 31), "a foreign record behind the beginning is found"


def test_adopted_further_on_and_further_back(runs: InlineFlow, sf: LabCluster) -> None:
    topic = topic_of(runs)
    write(sf, topic, 30)
    adopt(runs, 50)
    assert runs.run().records == 10
    assert found(verified(runs)) == (10, 0, 0, 0, 31)
    adopt(runs, 0)
    assert runs.run().records == 60
    assert found(verified(runs)) == (60, 0, 0, 0, 42)


def test_reconciled_after_what_somebody_else_wrote(runs: InlineFlow, sf: LabCluster, nyc: LabCluster) -> None:
    topic = topic_of(runs)
    write(nyc, f"sf.{topic}", 2)
    assert verified(runs).extra == 2
    reconcile_partition(runs.flow, runs.source, runs.target, place_of(runs), REASON)
    write(sf, topic, 5)
    assert runs.run().records == 5
    assert found(verified(runs)) == (5, 0, 0, 0, 33)
