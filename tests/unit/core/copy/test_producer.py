import pytest

from causeway.core.copy.producer import ProducerState
from causeway.core.kernel.identity import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def test_sequences_begin_at_zero_and_go_on_by_record_count() -> None:
    producer = ProducerState(7, 3)
    assert [producer.take_sequence(A, n) for n in (5, 1, 2)] == [0, 5, 6]
    assert producer.next_sequence(A) == 8


def test_each_partition_counts_for_itself_and_each_epoch_again() -> None:
    producer = ProducerState(7, 3)
    producer.take_sequence(A, 5)
    assert producer.take_sequence(B, 1) == 0
    assert ProducerState(7, 4).next_sequence(A) == 0


def test_looking_takes_nothing() -> None:
    producer = ProducerState(7, 3)
    assert producer.next_sequence(A) == producer.next_sequence(A) == producer.take_sequence(A, 1) == 0


# DefaultRecordBatch.incrementSequence of Kafka: increment - (MAX_VALUE - sequence) - 1 once it overflows.
@pytest.mark.parametrize(
    ("before", "records", "then"),
    [
        (2**31 - 2, 1, 2**31 - 1),
        (2**31 - 1, 1, 0),
        (2**31 - 5, 10, 5),
        (2**31 - 1, 2**31 - 1, 2**31 - 2),
    ],
)
def test_sequences_wrap_as_the_broker_counts_them(before: int, records: int, then: int) -> None:
    producer = ProducerState(7, 3)
    producer.take_sequence(A, before)
    assert producer.take_sequence(A, records) == before
    assert producer.next_sequence(A) == then


def test_it_says_who_it_is() -> None:
    assert str(ProducerState(7, 3)) == "producer 7 epoch 3"
