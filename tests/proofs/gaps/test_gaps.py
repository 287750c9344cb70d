"""Each of the six is found before the first wrong record, and its own words lead on; once, by a seed."""

from __future__ import annotations

import os
import random
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from causeway.core.kernel.identity import TopicPartition
from causeway.core.model.flow import Start
from causeway.core.state.parked import ParkReason
from causeway.lab.cluster import LabCluster
from causeway.lab.record import ClusterSpec
from causeway.usecases.repair.accept_gap import accept_gap
from causeway.usecases.repair.set_positions import Reason
from tests.proofs.gaps.causeway import CausewayOnGaps
from tests.proofs.gaps.loss_cases import GapGround, append, cut_log, put_aside, put_back, shown
from tests.support.inline_flow import create_topic
from tests.support.janitor import forget_positions
from tests.support.mirroring import Mirror, make_flow

pytestmark = pytest.mark.integration
SEED = int(os.environ.get("CAUSEWAY_GAPS_SEED", random.SystemRandom().randrange(1_000_000)))


@pytest.fixture(scope="module")
def cuttable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabCluster]:
    """A cluster that may be stopped in the middle."""
    cluster = LabCluster(ClusterSpec(name="sf"), tmp_path_factory.mktemp("cuttable"))
    cluster.start()
    yield cluster
    cluster.stop()


def test_six_losses_are_found_before_the_first_wrong_record(
    cuttable: LabCluster, nyc: LabCluster, tmp_path: Path
) -> None:
    print(f"CAUSEWAY_GAPS_SEED={SEED}")
    played = CausewayOnGaps(GapGround(cuttable, nyc, SEED, repeats=1), tmp_path, print)
    try:
        commands = played.play()
    finally:
        played.close()
    assert len(commands) == 6


def test_the_remedy_leads_on_where_the_position_has_expired_too(
    cuttable: LabCluster, nyc: LabCluster
) -> None:
    """Reported of what the map knows, and accepted of it."""
    topic = f"expired-{uuid.uuid4().hex[:6]}"
    create_topic(cuttable, topic)
    append(cuttable, topic, "first", 20)
    mirror = Mirror(make_flow(topic.replace("-", "_"), topic), cuttable, nyc)
    assert mirror.run().records == 20
    forget_positions(nyc, mirror.flow.group)
    cuttable.stop()
    cut_log(cuttable, topic, 10)
    cuttable.start()
    append(cuttable, topic, "second", 25)

    (parked,) = mirror.run().parked
    assert parked.parked is not None
    assert f"accept-gap {mirror.flow.name} {topic} 0 10 20 " in parked.parked["remedy"]
    why = Reason(by="a test", because="it is one")
    accept_gap(mirror.flow, cuttable.endpoint(), nyc.endpoint(), TopicPartition(topic, 0), 10, 20, why)
    assert mirror.run().records == 25
    assert shown(nyc, f"sf.{topic}")[20:] == shown(cuttable, topic)[10:]
    mirror.close()


def test_a_start_at_the_end_outlives_leaders_that_wrote_nothing(
    cuttable: LabCluster, nyc: LabCluster
) -> None:
    """A leader's epoch without a record is forgotten at the next election: nobody may fetch by it."""
    topic = f"latest-{uuid.uuid4().hex[:6]}"
    create_topic(cuttable, topic)
    append(cuttable, topic, "before", 20)
    cuttable.stop()
    cuttable.start()
    flow = make_flow(topic.replace("-", "_"), topic, start=Start("latest"))
    mirror = Mirror(flow, cuttable, nyc)
    assert mirror.run().records == 0
    cuttable.stop()
    cuttable.start()
    append(cuttable, topic, "since", 5)

    assert mirror.run().records == 5
    assert shown(nyc, f"sf.{topic}") == shown(cuttable, topic)[20:]
    mirror.close()


def test_a_source_that_comes_back_leaves_its_park_and_a_lost_tail_is_copied_again(
    cuttable: LabCluster, nyc: LabCluster, tmp_path: Path
) -> None:
    name = uuid.uuid4().hex[:6]
    there, back = f"there-{name}", f"back-{name}"
    for cluster, topic in ((cuttable, there), (nyc, back)):
        create_topic(cluster, topic)
        append(cluster, topic, "first", 20)
    forth = Mirror(make_flow(f"forth_{name}", there), cuttable, nyc)
    reverse = Mirror(make_flow(f"reverse_{name}", back), nyc, cuttable)
    assert (forth.run().records, reverse.run().records) == (20, 20)
    append(nyc, back, "second", 20)
    assert reverse.run().records == 20

    cuttable.stop()
    put_aside(cuttable, [there], tmp_path)
    cut_log(cuttable, there, 10)
    cut_log(cuttable, f"sf.{back}", 21)  # twenty records and a marker, then twenty more
    cuttable.start()

    (parked,) = forth.run().parked
    assert parked.parked is not None
    assert parked.parked["reason"] == ParkReason.SOURCE_TRUNCATED
    assert "10 to 19" in parked.parked["facts"]
    report = reverse.run()
    (copied,) = report.partitions.values()
    assert (copied.parked, copied.recopied_from) == (None, 20)
    assert shown(cuttable, f"sf.{back}") == shown(nyc, back)
    assert len(shown(nyc, back)) == 40

    cuttable.stop()
    put_back(cuttable, [there], tmp_path)
    cuttable.start()
    append(cuttable, there, "third", 5)

    healed = forth.run()
    assert (healed.parked, healed.records) == ([], 5)
    assert shown(nyc, f"sf.{there}") == shown(cuttable, there)
    for mirror in (forth, reverse):
        mirror.close()
