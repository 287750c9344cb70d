"""The table at the end of a run: seconds by folder of tests."""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.took import folders, lines


@dataclass
class Report:
    nodeid: str
    when: str
    duration: float


def reports(test: str, setup: float, call: float, teardown: float) -> list[Report]:
    seconds = {"setup": setup, "call": call, "teardown": teardown}
    return [Report(test, when, duration) for when, duration in seconds.items()]


ALL = [
    *reports("tests/unit/core/records/test_varint.py::test_it", 0.1, 0.4, 0.0),
    *reports("tests/integration/failover/trials/test_crowd.py::test_it[1]", 1_200.0, 30.0, 4.0),
    *reports("tests/unit/lab/test_ports.py::test_it", 0.0, 1.5, 0.0),
]


def test_a_folder_takes_what_its_tests_take_with_their_fixtures() -> None:
    found = [(each.name, each.tests, round(each.seconds, 3)) for each in folders(ALL)]
    assert found == [("tests/integration/failover", 1, 1_234.0), ("tests/unit", 2, 2.0)]


def test_the_slowest_is_on_top_and_the_sum_at_the_end() -> None:
    assert lines(folders(ALL)) == [
        "   1,234 s       1 tests  tests/integration/failover",
        "       2 s       2 tests  tests/unit",
        "   1,236 s       3 tests  all",
    ]


def test_a_run_of_one_folder_says_nothing() -> None:
    assert lines(folders(ALL[:3])) == []
