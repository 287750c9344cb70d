"""What the comparison says about two logs, however they are cut into buffers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causeway.core.kernel.identity import SourceOffset, TopicPartition
from causeway.core.verify.comparison import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    Content,
    Headers,
    PartitionComparison,
    RecordBuffer,
)
from causeway.core.verify.report import Kind, PartitionVerdict, VerifyReport

SOURCE, TARGET = TopicPartition("orders", 0), TopicPartition("sf.orders", 0)
Records = Sequence[tuple[int, Content]]


def content(
    value: bytes | None, *, key: bytes | None = None, headers: Headers = None, at: tuple[int, int] = (1, 5)
) -> Content:
    return (at, key, value, headers)


def log(values: Sequence[str | Content], start: int = 0, step: int = 1) -> list[tuple[int, Content]]:
    contents = [content(v.encode()) if isinstance(v, str) else v for v in values]
    return [(start + i * step, each) for i, each in enumerate(contents)]


def compare(
    source: Records,
    target: Records,
    *,
    chunk: int = 1000,
    source_end: int | None = None,
    gone: tuple[int, int] = (0, 0),
) -> PartitionVerdict:
    """Feed both logs in buffers of `chunk` records; `gone` bounds what may be skipped on each side."""
    comparison = PartitionComparison(
        source_log_end=SourceOffset(source[-1][0] + 1 if source else 0),
        source_end=None if source_end is None else SourceOffset(source_end),
        may_skip_source=gone[0],
        may_skip_target=gone[1],
    )
    buffers, rests = (RecordBuffer(), RecordBuffer()), [list(source), list(target)]
    for _ in range(10 * (len(source) + len(target) + 1)):
        for side, buffer in enumerate(buffers):
            count = chunk - len(buffer)
            taken, rests[side] = rests[side][:count], rests[side][count:]
            buffer.offsets += [offset for offset, _ in taken]
            buffer.contents += [each for _, each in taken]
            buffer.is_complete = not rests[side]
        if comparison.advance(*buffers):
            return comparison.verdict(SOURCE, TARGET)
    raise AssertionError("the comparison never ends")


def counts(verdict: PartitionVerdict) -> tuple[int, int, int, int]:
    return verdict.equal, verdict.different, verdict.missing, verdict.extra


ALPHABET = [chr(ord("a") + i) for i in range(20)]


@pytest.mark.parametrize("chunk", [5, 7, 1000])
class TestCounts:
    def test_equal_logs_with_other_offsets_are_equal(self, chunk: int) -> None:
        verdict = compare(log(ALPHABET, start=100, step=3), log(ALPHABET), chunk=chunk)
        assert counts(verdict) == (20, 0, 0, 0)
        assert verdict.is_equal

    def test_a_changed_record_is_one_difference(self, chunk: int) -> None:
        changed = [*ALPHABET[:9], "X", *ALPHABET[10:]]
        verdict = compare(log(ALPHABET), log(changed), chunk=chunk)
        assert counts(verdict) == (19, 1, 0, 0)
        (difference,) = verdict.differences
        assert (difference.source_offset, difference.target_offset) == (9, 9)
        assert (difference.field, difference.source_value, difference.target_value) == (
            "value",
            "b'j'",
            "b'X'",
        )

    @pytest.mark.parametrize("at", [0, 9, 17])
    def test_a_lost_record_is_one_missing_record(self, chunk: int, at: int) -> None:
        verdict = compare(log(ALPHABET), log([*ALPHABET[:at], *ALPHABET[at + 1 :]]), chunk=chunk)
        assert counts(verdict) == (19, 0, 1, 0)
        assert verdict.differences[0].source_offset == at

    @pytest.mark.parametrize("at", [0, 9, 20])
    def test_a_foreign_record_is_one_extra_record(self, chunk: int, at: int) -> None:
        verdict = compare(log(ALPHABET), log([*ALPHABET[:at], "X", *ALPHABET[at:]]), chunk=chunk)
        assert counts(verdict) == (20, 0, 0, 1)
        assert verdict.differences[0].target_offset == at

    def test_a_repeated_run_is_extra(self, chunk: int) -> None:
        verdict = compare(log(ALPHABET), log([*ALPHABET[:9], *ALPHABET[7:]]), chunk=chunk)
        assert counts(verdict) == (20, 0, 0, 2)

    def test_two_records_in_the_wrong_order_are_never_equal(self, chunk: int) -> None:
        swapped = [*ALPHABET[:9], ALPHABET[10], ALPHABET[9], *ALPHABET[11:]]
        assert counts(compare(log(ALPHABET), log(swapped), chunk=chunk)) == (18, 2, 0, 0)

    def test_source_records_that_the_target_does_not_have_yet_are_lag(self, chunk: int) -> None:
        verdict = compare(log(ALPHABET), log(ALPHABET[:12]), chunk=chunk)
        assert counts(verdict) == (12, 0, 0, 0)
        assert verdict.behind == 8
        assert verdict.is_equal

    def test_source_records_that_the_target_must_have_are_missing(self, chunk: int) -> None:
        verdict = compare(log(ALPHABET), log(ALPHABET[:12]), chunk=chunk, source_end=15)
        assert counts(verdict) == (12, 0, 3, 0)
        assert (verdict.behind, verdict.is_equal) == (5, False)

    def test_what_the_targets_retention_deleted_is_gone_not_missing(self, chunk: int) -> None:
        verdict = compare(log(ALPHABET), log(ALPHABET[12:], start=12), chunk=chunk, gone=(12, 0))
        assert counts(verdict) == (8, 0, 0, 0)
        assert (verdict.gone_on_target, verdict.is_equal) == (12, True)

    def test_what_the_sources_retention_deleted_is_gone_not_extra(self, chunk: int) -> None:
        verdict = compare(log(ALPHABET[12:], start=12), log(ALPHABET), chunk=chunk, gone=(0, 12))
        assert counts(verdict) == (8, 0, 0, 0)
        assert (verdict.gone_on_source, verdict.is_equal) == (12, True)

    def test_more_than_retention_can_have_deleted_is_missing(self, chunk: int) -> None:
        verdict = compare(log(ALPHABET), log(ALPHABET[6:], start=4), chunk=chunk, gone=(4, 0))
        assert verdict.gone_on_target == 4
        assert verdict.missing == 2 or verdict.different
        assert not verdict.is_equal

    def test_retention_on_both_sides(self, chunk: int) -> None:
        dated = [content(v.encode(), at=(1, i)) for i, v in enumerate(ALPHABET)]
        verdict = compare(log(dated[5:], start=5), log(dated[9:], start=9), chunk=chunk, gone=(9, 5))
        assert (verdict.equal, verdict.gone_on_target, verdict.is_equal) == (11, 4, True)
        verdict = compare(log(dated[9:], start=9), log(dated[5:], start=5), chunk=chunk, gone=(5, 9))
        assert (verdict.equal, verdict.gone_on_source, verdict.is_equal) == (11, 4, True)

    def test_a_log_that_retention_emptied(self, chunk: int) -> None:
        gone_source = compare([], log(ALPHABET), chunk=chunk, gone=(0, 20))
        assert (gone_source.gone_on_source, gone_source.is_equal) == (20, True)
        gone_target = compare(log(ALPHABET), [], chunk=chunk, gone=(15, 0), source_end=20)
        assert (gone_target.gone_on_target, gone_target.missing) == (15, 5)

    def test_both_empty(self, chunk: int) -> None:
        assert counts(compare([], [], chunk=chunk)) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("ours", "theirs", "field"),
    [
        (content(b"x"), content(None), "value"),
        (content(b""), content(None), "value"),
        (content(b"x", key=b"k"), content(b"x"), "key"),
        (content(b"x", key=b""), content(b"x", key=None), "key"),
        (content(b"x", at=(CREATE_TIME, 5)), content(b"x", at=(CREATE_TIME, 6)), "timestamp"),
        (content(b"x", at=(CREATE_TIME, 5)), content(b"x", at=(LOG_APPEND_TIME, 5)), "timestamp"),
        (content(b"x", headers=[("h", None)]), content(b"x", headers=[("h", b"")]), "headers"),
        (content(b"x", headers=[("h", b"1")]), content(b"x"), "headers"),
        (content(b"x", headers=[("h", b"1"), ("h", b"2")]), content(b"x", headers=[("h", b"2")]), "headers"),
        (
            content(b"x", headers=[("a", b"1"), ("b", b"2")]),
            content(b"x", headers=[("b", b"2"), ("a", b"1")]),
            "headers",
        ),
    ],
)
def test_each_field_counts_down_to_null_and_order(ours: Content, theirs: Content, field: str) -> None:
    verdict = compare(log([ours]), log([theirs]))
    assert counts(verdict) == (0, 1, 0, 0)
    assert verdict.differences[0].field == field


def test_values_are_escaped_and_cut_where_they_differ() -> None:
    ours, theirs = b"\x1b[2J" + b"a" * 500 + b"1", b"\x1b[2J" + b"a" * 500 + b"2"
    told = str(compare(log([content(ours)]), log([content(theirs)])).differences[0])
    assert "\x1b" not in told
    assert "1' on the source" in told
    assert "2' on the target" in told
    assert len(told) < 300


def test_only_the_first_differences_are_kept_but_all_are_counted() -> None:
    verdict = compare(log([str(i) for i in range(100)]), log([f"x{i}" for i in range(100)]))
    assert verdict.different == 100
    assert len(verdict.differences) == 10


def test_the_report_is_1_if_any_partition_differs_or_could_not_be_compared() -> None:
    fine = PartitionVerdict(source=SOURCE, target=TARGET, equal=3, behind=9, gone_on_source=2)
    assert VerifyReport((fine,)).exit_code == 0
    for bad in (
        PartitionVerdict(source=SOURCE, target=TARGET, missing=1),
        PartitionVerdict(source=SOURCE, target=TARGET, trouble="no such topic"),
    ):
        assert VerifyReport((fine, bad)).exit_code == 1
        assert VerifyReport((fine, bad)).unequal == (bad,)


few_values = st.lists(st.sampled_from("abc"), max_size=30)


@given(source=few_values, target=few_values, chunk=st.integers(1, 12))
def test_the_verdict_is_equal_only_for_equal_logs_and_every_record_is_counted_once(
    source: list[str], target: list[str], chunk: int
) -> None:
    verdict = compare(log(source), log(target), chunk=chunk, source_end=len(source))
    assert verdict.is_equal == (source == target)
    assert verdict.equal + verdict.different + verdict.missing == len(source)
    assert verdict.equal + verdict.different + verdict.extra == len(target)
    assert all(difference.kind in Kind for difference in verdict.differences)


@given(st.lists(st.integers(0, 1000), unique=True, min_size=1, max_size=60), st.data())
def test_one_planted_fault_in_distinct_records_is_named_exactly(
    numbers: list[int], data: st.DataObject
) -> None:
    source = [str(number) for number in numbers]
    at = data.draw(st.integers(0, len(source) - 1))
    kind = data.draw(st.sampled_from(["lose", "repeat", "flip"]))
    target = {
        "lose": [*source[:at], *source[at + 1 :]],
        "repeat": [*source[: at + 1], *source[at:]],
        "flip": [*source[:at], "flipped", *source[at + 1 :]],
    }[kind]
    verdict = compare(log(source), log(target), source_end=len(source))
    expected = {"lose": (0, 1, 0), "repeat": (0, 0, 1), "flip": (1, 0, 0)}[kind]
    assert (verdict.different, verdict.missing, verdict.extra) == expected
