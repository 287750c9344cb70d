"""How much a lane asks for at once."""

from causeway.core.model.flow import MEBIBYTE, CopyLimits


def test_a_source_next_door_is_asked_for_the_limit() -> None:
    assert CopyLimits().fetch_bytes_over(0.0) == 16 * MEBIBYTE


def test_the_farther_away_the_more_up_to_what_a_broker_gives() -> None:
    asked = [CopyLimits().fetch_bytes_over(seconds) for seconds in (0.0, 0.02, 0.05, 0.1, 0.4, 30.0)]
    assert asked == sorted(asked)
    assert asked[2:] == [32 * MEBIBYTE, *[48 * MEBIBYTE] * 3]


def test_a_smaller_limit_stays_in_proportion() -> None:
    assert CopyLimits(fetch_bytes=MEBIBYTE).fetch_bytes_over(0.1) == 3 * MEBIBYTE
