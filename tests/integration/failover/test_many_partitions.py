"""A group with more partitions than one request to its coordinator may carry.

Its name is long, so that a few hundred of them are as much as thousands with usual names.
"""

from __future__ import annotations

from typing import Any

import pytest

from causeway.brokers.wire.consumer_groups import ConsumerGroups
from tests.integration.failover.conftest import MakeStage
from tests.integration.failover.stage import BASE_MS
from tests.support.killing import Killed, killed_inside

pytestmark = pytest.mark.integration
PARTITIONS, FIRST, HELD = 460, 100, 150
NAME = "g" * 4_000


def test_it_is_moved_and_taken_back_whole_in_whatever_try(stage: MakeStage) -> None:
    """A try that dies between two requests is gone on with: what was committed is seen."""
    made = stage(partitions=PARTITIONS)
    for partition in range(3):
        made.write([BASE_MS + n for n in range(100)], partition)
    made.run()
    made.commit(NAME, {0: 50})
    before = dict.fromkeys(range(HELD), 7)
    made.commit(NAME, before, on_target=True)
    places = {0: 60, 1: 60, 2: 60}
    after = {number: places.get(number, 0) for number in range(PARTITIONS)}
    real = ConsumerGroups.commit

    async def half_of_it(self: ConsumerGroups, wanted: dict[str, Any], *rest: Any) -> Any:
        ((group, offsets),) = wanted.items()
        await real(self, {group: dict(list(offsets.items())[:FIRST])}, *rest)
        raise Killed

    wish = made.wish(BASE_MS + 60)
    with killed_inside(ConsumerGroups, "commit", half_of_it):
        made.fail_over(wish)
    done = made.fail_over(wish)
    assert done.moved == PARTITIONS - FIRST
    assert (done.verified.as_planned, made.there(NAME)) == (PARTITIONS, after)
    back = made.roll_back(done.run)
    assert (back.restored, made.there(NAME)) == (PARTITIONS, before)


def test_its_clone_is_removed_after_a_drill(stage: MakeStage) -> None:
    """A group's end is one batch of its coordinator, too."""
    made = stage(partitions=PARTITIONS)
    made.write([BASE_MS + n for n in range(100)], 0)
    made.run()
    made.commit(NAME, dict.fromkeys(range(PARTITIONS), 0))
    done = made.rehearse()
    assert (done.groups, done.as_planned, made.clones()) == (1, PARTITIONS, [])
