"""A broker that doesn't know a topic's id answers so just after a restart or a move: that parks nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from causeway.brokers.wire.log_reader import WireLogReader
from causeway.core.copy.ports import Refused
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.lab.cluster import LabCluster
from tests.integration.failover.reader import read_all
from tests.integration.groups.stage import make_topic, write
from tests.support.mirroring import Mirror, make_flow

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("side", ["sf", "nyc"])
@pytest.mark.parametrize("code", [Code.UNKNOWN_TOPIC_ID, Code.INCONSISTENT_TOPIC_ID])
def test_one_such_answer_is_no_word_on_the_topic(
    sf: LabCluster,
    nyc: LabCluster,
    topic_name: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    side: str,
    code: Code,
) -> None:
    topic = topic_name("lags")
    mirror = Mirror(make_flow(topic.replace("-", "_"), topic), sf, nyc)
    make_topic(sf, topic)
    write(sf, topic, range(500), 1)
    mirror.run()
    write(sf, topic, range(500, 1_000), 1)
    parse = WireLogReader._parse_fetch
    altered: list[Any] = []

    def once(self: WireLogReader, answer: Any, wanted: Any, partitions: Any) -> Any:
        names = {tp.topic for tp in partitions}
        ours = {"sf": topic, "nyc": f"sf.{topic}"}[side]
        if altered or ours not in names:
            return parse(self, answer, wanted, partitions)
        altered.append(partitions)
        return dict.fromkeys(partitions, Refused(int(code)))

    monkeypatch.setattr(WireLogReader, "_parse_fetch", once)
    report = mirror.run()
    mirror.close()
    assert altered
    assert (report.outcome, report.lag, report.parked) == ("caught up", 0, [])
    assert not [line for line in mirror.said if "parked" in line or "restart-topic" in line]
    found = read_all(nyc, [f"sf.{topic}"], 1)[f"sf.{topic}", 0]
    assert [each.value for each in found] == [b"%d" % n for n in range(1_000)]
