"""Three stories in which positions truly expire: a broker that keeps committed offsets for a minute only.

All three are played up to their quiet time, then it passes once for all of them.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from causeway.core.failback.divergence import FailbackMode
from causeway.core.model.flow import Start
from causeway.lab.cluster import LabCluster
from causeway.usecases.run_lock.fence import fence_flow, lift_fence
from tests.conftest import LabClusterFactory
from tests.integration.failback.stage import FailbackStage, values
from tests.integration.groups.stage import committed
from tests.proofs.expiry.life import Life
from tests.proofs.expiry.switching import LEDGER, ORDERS, come_home, failback_stage, parted, told_numbers
from tests.support.mirroring import Mirror

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("nobody_is_held_up")]
_FORGETFUL = {"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "1000"}
_PATIENCE_SECONDS = 240.0


@dataclass
class Expired:
    """All positions on the new cluster are gone, by its brokers' own hand."""

    life: Life
    latest: Mirror
    latest_topic: str
    ledger: FailbackStage
    fenced: FailbackStage
    holidays: int
    """The generation of the fence of `fenced`."""


@pytest.fixture(scope="module")
def forgetful(lab_clusters: LabClusterFactory) -> LabCluster:
    return lab_clusters("forgetful", broker_settings=_FORGETFUL)


@pytest.fixture(scope="module")
def expired(sf: LabCluster, forgetful: LabCluster) -> Iterator[Expired]:
    life = Life(sf, forgetful, uuid.uuid4().hex[:8], has_janitor=False)
    try:
        topic = life.topic("latest", 2)
        life.write(sf, topic, 20, 0)
        mirror = life.mirror(topic, start=Start("latest"))
        life.run(mirror)
        ledger = parted(life, keeps_names=True)
        fenced = failback_stage(_another(life, "fenced"), keeps_names=True)
        life.write(sf, fenced.stem, 2, ORDERS)
        fence = fence_flow(fenced.forward.flow, forgetful.endpoint(), by="ops", because="holidays")
        flows = (mirror.flow, ledger.forward.flow, fenced.forward.flow)
        _wait_until_expired(forgetful, [flow.group for flow in flows])
        yield Expired(life, mirror, topic, ledger, fenced, fence.generation)
    finally:
        life.close()


def _another(life: Life, name: str) -> Life:
    other = Life(life.old, life.new, f"{name}-{life.name}", has_janitor=False)
    life.leave(other.close)
    return other


def _wait_until_expired(cluster: LabCluster, groups: list[str]) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    assert all(committed(cluster, group) for group in groups)
    while left := [group for group in groups if committed(cluster, group)]:
        assert time.monotonic() < deadline, f"still there: {left}"
        time.sleep(1)


def test_records_of_a_partition_that_was_empty_for_a_week_all_come(expired: Expired) -> None:
    life, topic = expired.life, expired.latest_topic
    life.write(life.old, topic, 5, 0)
    life.write(life.old, topic, 30, 1)
    assert life.run(expired.latest).records == 35
    life.both_sides(expired.latest, topic, 2)
    source, mirrored = life.seen("source")[-1], life.seen("mirror")[-1]
    assert mirrored == {0: source[0][20:], 1: source[1]}


def test_a_failback_a_week_after_the_failover_parts_where_they_parted(expired: Expired) -> None:
    stage = expired.ledger
    stage.commit(stage.new, "a", stage.mirrored, {ORDERS: 40, LEDGER: 100})  # these expire here as well
    come_home(expired.life, stage, FailbackMode.RESUME)
    told_numbers(expired.life)


def test_a_failover_a_week_after_the_fence_and_its_failback(expired: Expired) -> None:
    stage, life = expired.fenced, _another(expired.life, "after")
    stage.commit(life.old, "a", stage.stem, {ORDERS: 40, LEDGER: 100})
    stage.fail_over()
    flow, target = stage.forward.flow, stage.new.endpoint()
    lift_fence(flow, target, by="ops", because="the failover has its own", number=expired.holidays)
    assert stage.stands(life.new, "a", stage.mirrored)[LEDGER] == 100
    life.write(life.new, stage.stem, 5, ORDERS)
    come_home(life, stage, FailbackMode.RESUME)
    told_numbers(life)
    old, new = (values(stage.log(cluster, stage.stem)[ORDERS]) for cluster in (life.old, life.new))
    assert new == [*old[:100], *old[102:]], "all but the tail, once, in order"
