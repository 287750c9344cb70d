"""An open transaction on the source is reported when it lasts while the log grows; idleness isn't."""

from causeway.core.copy.held_back_sources import STANDS_STILL_SECONDS, HeldBackSource, describe, look_again
from causeway.core.kernel.identity import TopicPartition

AT = TopicPartition("orders", 3)


def looked(*looks: tuple[float, int, int]) -> dict[TopicPartition, HeldBackSource]:
    held: dict[TopicPartition, HeldBackSource] = {}
    for now, stable, end in looks:
        held = look_again(held, {AT: (stable, end)}, now)
    return held


def test_it_is_blocked_once_that_took_long_and_the_log_grew() -> None:
    held = looked((10, 100, 120), (30, 100, 150), (10 + STANDS_STILL_SECONDS, 100, 150))[AT]
    assert not held.stands_still(10 + STANDS_STILL_SECONDS - 1)
    assert held.stands_still(10 + STANDS_STILL_SECONDS)
    assert held.offsets == 50
    assert describe(AT, held, 70) == (
        "orders-3 stands at its last stable offset 100 for 60 s, and its log has grown to 150: a transaction "
        "is open there; `kafka-transactions.sh find-hanging --topic orders --partition 3` names it"
    )


def test_a_log_that_does_not_grow_is_held_back_and_not_called_stuck() -> None:
    assert not looked((10, 100, 120), (90, 100, 120))[AT].stands_still(90)


def test_what_moves_on_begins_again_and_what_is_stable_to_its_end_is_forgotten() -> None:
    assert not looked((10, 100, 120), (90, 101, 150))[AT].stands_still(90)
    assert looked((10, 100, 120), (90, 150, 150)) == {}
