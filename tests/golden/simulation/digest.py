"""One seed's end in two digests: `whole`, and `lasting`, which a run with other timing gives as well.

Both are made of what readers of the target see, of the offset map as pairs of offsets, and of positions; the
order of requests, clocks, ids and producers are left out. `whole` has the target's offsets in it: where a
transaction ends decides them, so another order of requests changes it. `lasting` counts the visible records
instead. It exists where the seed alone decides what the target holds at the end: all of the source.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from causeway.core.records.records import Record
from tests.simulation.cluster.history import Mirror, records_of
from tests.simulation.scenario import (
    Scenario,
    Trouble,
    adopting_scenario_of,
    scenario_of,
    settling_anyway_scenario_of,
    settling_scenario_of,
    starting_scenario_of,
)
from tests.simulation.seeds import play
from tests.simulation.world import World

WORLDS: dict[str, Callable[[int], Scenario]] = {
    "any": scenario_of,
    "settling": settling_scenario_of,
    "settling-anyway": settling_anyway_scenario_of,
    "starting": starting_scenario_of,
    "adopting": adopting_scenario_of,
}
NOTHING_LASTS = "-"
_TAKE_OR_ADD = {
    Trouble.COMPACTION,
    Trouble.FOREIGN_TRANSACTION,
    Trouble.FOREIGN_WRITER,
    Trouble.RETENTION,
    Trouble.SOURCE_UNCLEAN,
    Trouble.TARGET_UNCLEAN,
}
"""They take records away or add some: what was mirrored by then decides what the target holds."""
_LETTERS = 16


@dataclass(frozen=True, slots=True)
class Ending:
    whole: str
    lasting: str

    def __str__(self) -> str:
        return f"{self.whole} {self.lasting}"

    @classmethod
    def of(cls, text: str) -> Ending:
        return cls(*text.split())


class Failed(Exception):
    """A seed doesn't end as it should, which no digest could say."""


def ending_of(world_name: str, seed: int, *, stirred: int = 0) -> Ending:
    """:raises Failed: a promise is broken there."""
    endings: list[Ending] = []
    outcome = play(
        seed,
        scenario_of=WORLDS[world_name],
        stirred=stirred,
        at_the_end=lambda world: endings.append(_ending(world)),
    )
    if outcome.failure is not None:
        raise Failed(f"{world_name} {seed}: {outcome}")
    return endings[0]


def lasts(scenario: Scenario) -> bool:
    kinds = {kind for _, kind in scenario.troubles}
    if scenario.settles and Trouble.OFFSETS_EXPIRE in kinds:
        return False
    return scenario.start.at == "earliest" and kinds.isdisjoint(_TAKE_OR_ADD)


def _ending(world: World) -> Ending:
    whole = _digest(line for tp in sorted(world.mirrors) for line in _whole(world, world.mirrors[tp]))
    if not lasts(world.scenario):
        return Ending(whole, NOTHING_LASTS)
    return Ending(
        whole, _digest(line for tp in sorted(world.mirrors) for line in _lasting(world, world.mirrors[tp]))
    )


def _whole(world: World, mirror: Mirror) -> Iterator[str]:
    position, parked = world.position_of(mirror.target), world.last_run.parked.get(mirror.history.log.tp)
    yield f"{mirror.target} parked: {parked.reason if parked else 'no'}"
    if position is not None:
        yield f"position {position.source_next} {position.target_next} {position.records}"
    for record in _visible(mirror):
        yield f"record {record.offset} {_content(record)}"
    for target, source in sorted(world.mapped(mirror).items()):
        yield f"map {target} {source}"


def _lasting(world: World, mirror: Mirror) -> Iterator[str]:
    position, visible = world.position_of(mirror.target), _visible(mirror)
    yield f"{mirror.target} position: {position.source_next if position else 'none'}"
    for record in visible:
        yield f"record {_content(record)}"
    number = {record.offset: at for at, record in enumerate(visible)}
    for target, source in sorted(world.mapped(mirror).items()):
        yield f"map {number.get(target, 'gone')} {source}"


def _visible(mirror: Mirror) -> list[Record]:
    return [record for batch in mirror.log.visible() for record in records_of(batch)]


def _content(record: Record) -> str:
    return f"{record.timestamp_ms} {record.key!r} {record.value!r} {record.headers!r}"


def _digest(lines: Iterator[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:_LETTERS]
