"""Every story with and without the janitor, random failbacks and rebuilds, and each kind of silent gap."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from causeway.lab.cluster import LabCluster
from causeway.lab.record import ClusterSpec
from tests.proofs.expiry.life import Tell, told_twice
from tests.proofs.expiry.stories import STORIES
from tests.proofs.expiry.switching import SWITCHES, rebuild_trial, trial
from tests.proofs.gaps.causeway import CausewayOnGaps
from tests.proofs.gaps.loss_cases import Case, GapGround
from tests.support.janitor import forget_all_positions

TRIALS, GAPS = 10, 3
Say = Callable[[str], None]


class JanitorNoticed(Exception):
    """A story went otherwise once a janitor had deleted the flows' positions."""


def prove(folder: Path, seed: int, say: Say, *, trials: int = TRIALS) -> str:
    """:raises JanitorNoticed: | :raises GapFailed: a gap wasn't found, or its remedy leads nowhere."""
    with _clusters(folder, say) as (old, new):
        numbers = itertools.count(1)
        for story, tell in _stories(seed, trials):
            try:
                told_twice(old, new, lambda: f"{next(numbers)}", tell)
            except AssertionError as noticed:
                raise JanitorNoticed(f"{story}: {noticed}") from noticed
            say(f"expiry: {story}")
        forgotten = _play_gaps(old, new, folder, seed, say)
    return f"""\
## Expired positions

Seed {seed}, on two real brokers: {len(STORIES) + len(SWITCHES)} stories and {trials} random failbacks
with names that stay, {trials} with prefixes and {trials} rebuilds. Each was played twice: as it is, and with
a janitor. The janitor deletes every committed position of every flow after each step, as seven days without
a commit do.

Both ways gave the same: each record that readers see, in order; where `status` finds each partition; each
number of each plan. Offsets translated alike before and after each visit of the janitor.

{GAPS} of each of the {len(Case)} silent gaps were played, too, with {forgotten} visits in between. Each gap
was found, and the printed commands repaired it.

The stories: {_words(STORIES)};
{_words(SWITCHES)}.
"""


def _stories(seed: int, trials: int) -> Iterator[tuple[str, Tell]]:
    yield from (STORIES | SWITCHES).items()
    for number in range(seed, seed + trials):
        yield f"identity {number}", partial(trial, seed=number, keeps_names=True)
        yield f"prefix {number}", partial(trial, seed=number, keeps_names=False)
        yield f"rebuild {number}", partial(rebuild_trial, seed=number)


def _play_gaps(old: LabCluster, new: LabCluster, folder: Path, seed: int, say: Say) -> int:
    played, visits = CausewayOnGaps(GapGround(old, new, seed, GAPS), folder, say), list[int]()
    played.after_step = lambda: visits.append(forget_all_positions(old, new))
    try:
        played.play()
    finally:
        played.close()
    return len(visits)


def _words(stories: Iterable[str]) -> str:
    return ", ".join(name.replace("_", " ") for name in stories)


@contextmanager
def _clusters(folder: Path, say: Say) -> Iterator[tuple[LabCluster, LabCluster]]:
    made = [LabCluster(ClusterSpec(name=name), folder / name, say=say) for name in ("sf", "nyc")]
    try:
        for cluster in made:
            cluster.start()
        yield made[0], made[1]
    finally:
        for cluster in made:
            cluster.stop()
