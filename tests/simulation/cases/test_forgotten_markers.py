"""A coordinator that calls transactions done without a marker for any of their partitions.

Kafka 4.3.1 does so: a transaction timed out while its only broker came back, and partitions that
the broker didn't know yet were taken for deleted. Data, map and positions hang then, all of them.
"""

from __future__ import annotations

import random
from typing import Any
from unittest.mock import patch

import pytest

from tests.simulation.cluster.coordinator import PREPARE_ABORT, Coordinator, Transactional
from tests.simulation.scenario import Trouble, scenario_of
from tests.simulation.seeds import play, told
from tests.simulation.world import World

_SEEDS, _PIECE = 800, 400
_MANY_EPOCHS = 30_000
_ANOTHER_MATTER = {
    Trouble.FOREIGN_TRANSACTION,
    Trouble.FOREIGN_WRITER,
    Trouble.IDS_EXPIRE,
    Trouble.OFFSETS_EXPIRE,
    Trouble.OTHER_LANES,
    Trouble.PRODUCERS_FORGOTTEN,
    Trouble.RETENTION,
    Trouble.SOURCE_UNCLEAN,
    Trouble.TARGET_UNCLEAN,
}
"""With a lost producer id, a lost log or lost lanes beside a forgotten marker a person has to decide."""
_send_markers = Coordinator._send_markers
_init = World.__init__


@pytest.mark.parametrize("first", range(0, _SEEDS, _PIECE))
def test_what_a_forgotten_marker_leaves_open_is_settled(first: int) -> None:
    forgotten, failed = 0, []
    for seed in range(first, first + _PIECE):
        if _ANOTHER_MATTER & {trouble for _, trouble in scenario_of(seed).troubles}:
            continue
        chance = random.Random(seed)

        def forget(self: Coordinator, found: Transactional, chance: random.Random = chance) -> None:
            nonlocal forgotten
            if found.state != PREPARE_ABORT or not found.partitions or chance.random() < 0.3:
                _send_markers(self, found)
                return
            forgotten += 1
            found.awaited = {}
            self._complete_if_done(found)

        def keep_producer_ids(self: World, *arguments: Any, **options: Any) -> None:
            """Those of an id that has been given up can only be closed by an administrator."""
            _init(self, *arguments, **options)
            self.target.most_epochs = _MANY_EPOCHS
            self.forgets_markers = True

        with (
            patch.object(Coordinator, "_send_markers", forget),
            patch.object(World, "__init__", keep_producer_ids),
        ):
            outcome = play(seed)
        if outcome.failure is not None:
            failed.append(told(outcome))
    assert not failed, "\n\n".join(failed)
    assert forgotten > 5
