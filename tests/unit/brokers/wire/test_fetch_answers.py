"""The pure halves of reading a log: what is asked, and what an answer means."""

from types import SimpleNamespace
from uuid import UUID

from causeway.brokers.wire.log_reader import _by_topic, _fetch_request, _fetched
from causeway.core.copy.ports import Diverged, Fetched, FetchFrom, Refused
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def part(**fields: object) -> SimpleNamespace:
    """As kafka-python gives a partition of a Fetch answer."""
    return SimpleNamespace(
        **{
            "error_code": 0,
            "records": None,
            "diverging_epoch": SimpleNamespace(epoch=-1, end_offset=-1),
            "log_start_offset": 3,
            "last_stable_offset": 90,
            "high_watermark": 95,
            "aborted_transactions": None,
        }
        | fields
    )


def test_an_empty_answer_is_an_answer() -> None:
    assert _fetched(part()) == Fetched(
        records=memoryview(b""), log_start=3, last_stable=90, high_watermark=95, aborted=()
    )
    answer = _fetched(part(diverging_epoch=None))
    assert isinstance(answer, Fetched)
    assert answer.last_stable == 90


def test_a_partitions_error_is_a_value() -> None:
    assert _fetched(part(error_code=6, records=b"x")) == Refused(Code.NOT_LEADER_OR_FOLLOWER)


def test_a_log_that_took_another_turn_is_never_taken_for_an_empty_one() -> None:
    turned = part(diverging_epoch=SimpleNamespace(epoch=4, end_offset=70))
    assert _fetched(turned) == Diverged(4, 70)
    assert _fetched(part(diverging_epoch=SimpleNamespace(epoch=0, end_offset=0))) == Diverged(0, 0)


def test_aborted_transactions_come_by_first_offset_whatever_order_the_broker_chose() -> None:
    told = [SimpleNamespace(first_offset=o, producer_id=p) for o, p in ((50, 1), (10, 2), (30, 1))]
    answer = _fetched(part(aborted_transactions=told))
    assert isinstance(answer, Fetched)
    assert answer.aborted == ((10, 2), (30, 1), (50, 1))


def test_a_fetch_names_topics_by_id_and_what_was_read_last() -> None:
    wanted = {
        A0: FetchFrom(UUID(int=1), 10, 4),
        A1: FetchFrom(UUID(int=1), 11),
        B0: FetchFrom(UUID(int=2), 12),
    }
    request = _fetch_request(wanted, [A0, A1, B0], 1_000, 500, 250)
    assert (request.isolation_level, request.max_bytes, request.max_wait_ms, request.replica_id) == (
        1,
        1_000,
        250,
        -1,
    )
    assert (request.session_id, request.session_epoch) == (0, -1)
    asked = {
        (topic.topic_id, p.partition): (p.fetch_offset, p.last_fetched_epoch, p.partition_max_bytes)
        for topic in request.topics
        for p in topic.partitions
    }
    assert asked == {
        (UUID(int=1), 0): (10, 4, 500),
        (UUID(int=1), 1): (11, -1, 500),
        (UUID(int=2), 0): (12, -1, 500),
    }
    assert len(request.topics) == 2


def test_a_request_asks_only_the_partitions_of_its_leader() -> None:
    wanted = {A0: FetchFrom(UUID(int=1), 10), B0: FetchFrom(UUID(int=2), 12)}
    (topic,) = _fetch_request(wanted, [B0], 1, 1, 1).topics
    assert topic.topic_id == UUID(int=2)


def test_partitions_are_grouped_by_topic_in_order() -> None:
    assert _by_topic([A1, B0, A0]) == {"a": [A1, A0], "b": [B0]}
    assert _by_topic([]) == {}
