"""What is made of checkpoints and positions: rows, a part of a page, a plot."""

from __future__ import annotations

from xml.etree import ElementTree

from causeway.core.offsets.why_not import NeverMirrored
from tests.proofs.translation.lags import LagRow, _rows, parse_checkpoint, part, plot


def test_the_peers_checkpoint_is_read_as_it_writes_it() -> None:
    key = bytes.fromhex("000267310003412e7400000003")
    value = bytes.fromhex("00000000000000000064000000000000002a0000")
    assert parse_checkpoint(key, value) == ("g1", 42)


def test_records_between_the_answer_and_the_place_are_read_again() -> None:
    truth = [0, 1, 2, 4, 5, 6]  # a marker at 3
    places = {"a": (10, 4), "b": (10, 4), "c": (10, 2), "d": (10, 0)}
    rows = _rows(places, truth, {"a": 5, "b": 2, "c": 4, "d": NeverMirrored()}, truth, {"a": 3, "c": 0})
    assert rows == [LagRow(10, ours=[0, 2, -1, None], peer=[1, None, 2, None])]


def test_groups_without_an_answer_are_counted_apart() -> None:
    rows = [LagRow(10, ours=[0, 0], peer=[58, None]), LagRow(1_000, ours=[0, 0], peer=[518, 900])]
    text = part(rows, records=5_000, day="2026-11-19")
    assert "| about 10 | 2 | 0 | 0 | 0 | 58 | 58 | 1 |" in text
    assert "| about 1,000 | 2 | 0 | 0 | 0 | 709 | 900 | 0 |" in text


def test_the_plot_is_a_picture() -> None:
    rows = [LagRow(10, ours=[0], peer=[58]), LagRow(500_000, ours=[0], peer=[162_639])]
    drawn = ElementTree.fromstring(plot(rows))
    lines = drawn.findall("{http://www.w3.org/2000/svg}polyline")
    assert [len(line.attrib["points"].split()) for line in lines] == [2, 2]
