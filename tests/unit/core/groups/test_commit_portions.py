"""What one request to a group's coordinator carries."""

from __future__ import annotations

from causeway.core.groups.commit_portions import MOST_BYTES, MOST_PARTITIONS, by_topic, in_portions
from causeway.core.kernel.identity import TopicPartition


def places(count: int, topic: str = "t") -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(count)]


def test_usual_names_go_by_their_number() -> None:
    some = places(2 * MOST_PARTITIONS + 1)
    cut = list(in_portions("g", dict.fromkeys(some, "")))
    assert [len(each) for each in cut] == [MOST_PARTITIONS, MOST_PARTITIONS, 1]
    assert [tp for portion in cut for tp in portion] == some


def test_long_names_and_much_metadata_go_by_their_bytes() -> None:
    """Also where a character takes several."""
    for group, topic, words in (
        ("g" * 5_000, "t", ""),
        ("g", "t" * 249, "w" * 4_096),
        ("g", "t", "\u20ac" * 1_300),
    ):
        some = places(400, topic)
        cut = list(in_portions(group, dict.fromkeys(some, words)))
        assert [tp for portion in cut for tp in portion] == some
        each = sum(len(text.encode()) for text in (group, topic, words))
        assert MOST_BYTES // 2 < max(len(portion) for portion in cut) * each < MOST_BYTES


def test_what_is_too_large_goes_alone_and_nothing_is_no_portion() -> None:
    some = places(2)
    assert list(in_portions("g" * MOST_BYTES, dict.fromkeys(some, ""))) == [some[:1], some[1:]]
    assert list(in_portions("g", {})) == []


def test_a_request_names_each_topic_once() -> None:
    a, b = places(2, "a"), places(1, "b")
    assert by_topic([a[0], b[0], a[1]]) == {"a": a, "b": b}
