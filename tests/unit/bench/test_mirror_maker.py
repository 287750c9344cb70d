"""MirrorMaker 2's tuning counts only if its own log shows it."""

from __future__ import annotations

import pytest

from tests.bench.peers.mirror_maker import check_effect

_LOG = """\
[t] INFO ProducerConfig values:
\tbatch.size = 16384
\tclient.id = sf-mm2-sf->nyc-offsets
 (org.apache.kafka.clients.producer.ProducerConfig)
[t] INFO ProducerConfig values:
\tbatch.size = 524288
\tclient.id = connector-producer-MirrorSourceConnector-0
 (org.apache.kafka.clients.producer.ProducerConfig)
[t] INFO ConsumerConfig values:
\tclient.id = sf->nyc|MirrorSourceConnector-0|replication-consumer
\tmax.poll.records = 10000
 (org.apache.kafka.clients.consumer.ConsumerConfig)
"""
_PRODUCER, _CONSUMER = {"batch.size": "524288"}, {"max.poll.records": "10000"}


def test_a_tuning_that_the_datas_clients_show_passes() -> None:
    check_effect(_LOG, _PRODUCER, _CONSUMER)


def test_a_tuning_that_only_another_client_shows_is_refused() -> None:
    with pytest.raises(AssertionError, match=r"batch\.size = \{'524288'\}, not 16384"):
        check_effect(_LOG, {"batch.size": "16384"}, _CONSUMER)


def test_a_setting_that_is_not_printed_is_refused() -> None:
    with pytest.raises(AssertionError, match=r"fetch\.max\.bytes = nothing, not 1"):
        check_effect(_LOG, _PRODUCER, {"fetch.max.bytes": "1"})


def test_a_log_without_the_datas_clients_is_refused() -> None:
    with pytest.raises(AssertionError, match="never made a client"):
        check_effect("", {}, {})
