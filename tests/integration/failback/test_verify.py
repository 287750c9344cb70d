"""What `verify` says of a flow in each part of a failover and failback; the whole can be proved after."""

from __future__ import annotations

import random

import pytest
from confluent_kafka import Producer

from causeway.core.verify.report import VerifyReport
from causeway.render.verify import verdict_text
from tests.integration.failback.stage import FailbackStage

pytestmark = pytest.mark.integration


def found(report: VerifyReport) -> tuple[int, str]:
    assert report.unequal == ()
    return report.exit_code, report.rests


def count(stage: FailbackStage, *, on_new: bool) -> int:
    cluster = stage.new if on_new else stage.old
    return sum(map(len, stage.log(cluster, stage.stem).values()))


def test_a_flow_that_rests_says_so_and_all_of_it_is_proved_once_home(parted: FailbackStage) -> None:
    """What applications wrote on the mirror while the flow rested is no difference."""
    forward, reverse, dice = parted.forward, parted.reverse, random.Random(3)
    mirrored = forward.verify()
    assert found(mirrored)[0] == 0
    assert "it is fenced by a test" in mirrored.rests

    parted.resume()
    reverse.run()
    parted.write(parted.new, 20, dice)
    assert found(forward.verify()) == (0, f"{reverse.flow.name} leads the other way")
    assert forward.verify().records_equal == mirrored.records_equal
    assert found(reverse.verify()) == (0, "")

    parted.come_home()
    parted.write(parted.old, 30, dice)
    forward.run()
    assert found(reverse.verify()) == (0, f"{forward.flow.name} leads the other way")
    assert "RESTS" in verdict_text("f", reverse.verify())
    since = forward.verify()
    assert found(since) == (0, "")
    assert f"`causeway verify {forward.flow.name} --all`" in verdict_text(forward.flow.name, since)

    whole = forward.verify(across_failbacks=True)
    assert found(whole) == (0, "")
    there, here = count(parted, on_new=True), count(parted, on_new=False)
    assert since.records_equal < whole.records_equal == there
    assert here - there == sum(v.never_crossed for v in whole.partitions) > 0, "the divergent tail"

    parted.write(parted.old, 10, dice)  # never crosses
    parted.fail_over()
    parted.write(parted.new, 10, dice)
    parted.resume()
    reverse.run()
    parted.come_home()
    whole = forward.verify(across_failbacks=True)
    there, here = count(parted, on_new=True), count(parted, on_new=False)
    assert (*found(whole), whole.records_equal) == (0, "", there), "after a second circle, too"
    assert here - there == sum(v.never_crossed for v in whole.partitions)

    producer = Producer(parted.new.endpoint().settings)
    producer.produce(parted.stem, b"nobody's", partition=0)
    assert producer.flush(30) == 0
    assert [v.extra for v in forward.verify(across_failbacks=True).unequal] == [1]
