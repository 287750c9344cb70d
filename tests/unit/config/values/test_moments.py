"""Moments as people write them in a hurry: one instant, or a refusal that tells both readings."""

from __future__ import annotations

import pytest

from causeway.config.values.moments import parse_moment_ms
from causeway.config.values.refusal import Refusal
from causeway.config.values.units import parse_instant_ms

NOW_MS = 1_795_060_800_000  # 2026-11-19T04:00:00Z
AT_MS = 1_794_974_580_000  # 2026-11-18T04:03:00Z


def parsed(text: str) -> int:
    return parse_moment_ms(text, now_ms=NOW_MS, local_zone="America/New_York")


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("2026-11-18T04:03:00Z", AT_MS),
        ("2026-11-18t04:03:00z", AT_MS),
        ("2026-11-18 04:03:00Z", AT_MS),
        ("  2026-11-18T04:03:00Z ", AT_MS),
        ("2026-11-18T04:03Z", AT_MS),
        ("2026-11-18T04:03:00 Z", AT_MS),
        ("2026-11-18 04:03:00 z", AT_MS),
        ("2026-11-18T05:03:00 +01:00", AT_MS),
        ("2026-11-18T05:03:00  Europe/Berlin", AT_MS),
        ("2026-11-18T05:03:00+01:00", AT_MS),
        ("2026-11-17T23:03:00-05:00", AT_MS),
        ("2026-11-18T05:03:00 Europe/Berlin", AT_MS),
        ("2026-11-18T05:03:00[Europe/Berlin]", AT_MS),
        ("2026-11-18T04:03:00 UTC", AT_MS),
        ("2026-11-18T04:03:00.5Z", AT_MS + 500),
        ("2026-11-18T04:03:00.999999999Z", AT_MS + 999),
        ("2026-03-29T01:59:59 Europe/Berlin", 1_774_745_999_000),
        ("2026-03-29T03:00:00 Europe/Berlin", 1_774_746_000_000),
        ("1970-01-01T00:00:00Z", 0),
    ],
)
def test_one_instant(text: str, expected_ms: int) -> None:
    assert parsed(text) == expected_ms


@pytest.mark.parametrize(
    ("text", "why", "ways_out"),
    [
        ("2026-11-18T04:03:00", "zone", ("2026-11-18T04:03:00Z if it is UTC", "2026-11-18T09:03:00Z")),
        ("1763438580", "no unit", ("2025-11-18T04:03:00Z if these are seconds", "1970-01-21T09:50:38Z")),
        ("1763438580000", "no unit", ("2025-11-18T04:03:00Z if these are milliseconds",)),
        ("1763438580000000", "no unit", ("2025-11-18T04:03:00Z if these are microseconds",)),
        ("-1", "no unit", ("write 2026",)),
        ("1e400", "no unit", ("write 2026",)),
        ("2026-03-29T02:30:00 Europe/Berlin", "never was", ("2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z")),
        ("2026-10-25T02:30:00 Europe/Berlin", "was twice", ("2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z")),
        (
            "2026-11-01T01:30:00 America/New_York",
            "was twice",
            ("2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"),
        ),
        ("2026-11-18T04:03:00 CST", "different zones", ("Europe/Berlin",)),
        ("2026-11-18T04:03:00 Mars/Olympus", "doesn't know", ("Europe/Berlin",)),
        ("2026-11-18T04:03:00+25:00", "no zone has", ("+01:00",)),
        ("2026-11-19T04:00:01Z", "in the future: here it is 2026-11-19T04:00:00Z now", ("latest",)),
        ("9999-12-31T23:59:59Z", "in the future", ("latest",)),
        ("1969-12-31T23:59:59Z", "1970", ("write 2026",)),
        ("2026-02-30T00:00:00Z", "calendar", ("write 2026",)),
        ("2026-11-18T25:00:00Z", "calendar", ("write 2026",)),
        ("2026-11-18T24:00:00Z", "calendar", ("write 2026",)),
        ("2016-12-31T23:59:60Z", "leap second", ("2016-12-31T23:59:59Z",)),
        ("2026-11-18", "timestamp", ("2026-11-18T04:03:00Z",)),
        ("04:03", "timestamp", ("2026-11-18T04:03:00Z",)),
        ("18/11/2026 04:03Z", "timestamp", ("2026-11-18T04:03:00Z",)),
        ("2026-W47-3T04:03:00Z", "timestamp", ("2026-11-18T04:03:00Z",)),
        ("yesterday", "timestamp", ("2026-11-18T04:03:00Z",)),
        ("NaN", "timestamp", ("2026-11-18T04:03:00Z",)),
        ("", "plain characters", ("write 2026",)),
        ("2026-11-18T04:03:00\x00Z", "plain characters", ("write 2026",)),
        ("\uff12026-11-18T04:03:00Z", "plain characters", ("write 2026",)),
        ("2" * 10_000_000, "plain characters", ("write 2026",)),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else None,
)
def test_refused_with_the_reason_and_the_remedy(text: str, why: str, ways_out: tuple[str, ...]) -> None:
    with pytest.raises(Refusal) as refused:
        parsed(text)
    assert why in refused.value.rule
    for way_out in ways_out:
        assert way_out in refused.value.remedy


def test_where_the_machine_lives_in_utc_there_is_one_reading_and_a_hint() -> None:
    with pytest.raises(Refusal) as refused:
        parse_moment_ms("2026-11-18T04:03:00", now_ms=NOW_MS, local_zone="UTC")
    assert "2026-11-18T04:03:00Z if it is UTC" in refused.value.remedy
    assert "zone that it was read in" in refused.value.remedy


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("9999-12-31T23:59:59-12:00", "future"),
        ("9999-12-31T23:59:59 America/New_York", "future"),
        ("9999-12-31T23:59:59+14:00", "future"),
        ("0001-01-01T00:00:00 Asia/Tokyo", "1970"),
        ("2026-11-18T05:03:00 America/Argentina", "the time zone database doesn't know"),
    ],
)
def test_the_ends_of_the_calendar_and_a_folder_of_zones_are_refused(text: str, why: str) -> None:
    with pytest.raises(Refusal, match=why) as refusal:
        parsed(text)
    assert refusal.value.remedy


def test_a_region_names_one_of_its_zones() -> None:
    with pytest.raises(Refusal) as refusal:
        parsed("2026-11-18T05:03:00 America/Argentina")
    assert "America/Argentina/Buenos_Aires" in refusal.value.remedy


def test_a_start_after_the_year_9999_is_refused() -> None:
    with pytest.raises(Refusal, match="future"):
        parse_instant_ms("9999-12-31T23:59:59-14:00")
