"""Where a mirror stands, by its records alone."""

from causeway.core.verify.tail_search import Followed, Search, ShownRecord, follow


def shown(*values: bytes, first: int = 0, step: int = 1) -> list[ShownRecord]:
    return [(first + n * step, ((1, 1_000), None, value, None)) for n, value in enumerate(values)]


def test_a_tail_that_goes_on_as_the_source_does_is_mirrored() -> None:
    source = shown(b"a", b"b", b"c", first=100, step=10)
    assert follow(95, iter(source), shown(b"a", b"b")) == Followed(source_next=111, found=2)


def test_foreign_records_stay_and_what_is_after_them_still_counts() -> None:
    source = shown(b"a", b"b", b"c", first=100)
    followed = follow(100, iter(source), shown(b"x", b"a", b"y", b"b"))
    assert followed == Followed(source_next=102, found=2, foreign=2)


def test_a_tail_of_nothing_but_foreign_records_moves_nothing() -> None:
    assert follow(100, iter(shown(b"a", first=100)), shown(b"x")) == Followed(source_next=100, foreign=1)
    assert follow(100, iter([]), shown(b"x")) == Followed(source_next=100, foreign=1)


def found(last: list[bytes], source: list[ShownRecord]) -> list[int]:
    search = Search(shown(*last))
    for record in source:
        search.offer(record)
    return search.places


def test_the_last_records_are_found_where_they_lie_one_after_the_other() -> None:
    source = shown(b"a", b"b", b"a", b"c", b"a", b"b", b"d", first=100, step=2)
    assert found([b"a", b"b", b"d"], source) == [113]
    assert found([b"a", b"b"], source) == [103, 111], "twice: nobody can tell which"
    assert found([b"b", b"c"], source) == []
