"""What readers of both clusters see, and what follows from it for each sheet and each group's place.

The mirror's log is the beginning of the source's, record by record, so places are compared by their number in
the log: that of the first record from there on.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from causeway.core.kernel.estimate import Bound
from tests.integration.failover.reader import Log, Place

Stands = dict[str, dict[Place, int]]
"""By group: offsets on the source."""
Held = dict[str, dict[Place, int]]
"""By group: offsets on the target, under its topics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One failover: what its sheet showed, and where groups stood after it."""

    name: str
    run: str
    is_latest: bool
    sheet: Mapping[str, Any]
    held: Held

    @property
    def knows_source(self) -> bool:
        return bool(self.sheet["source_answers"])


@dataclass
class Truth:
    source: dict[Place, Log]
    target: dict[Place, Log]
    """By the source's topic."""
    synced: Stands
    stands: Stands
    moment_ms: int
    mirrored: Callable[[Place], Place]
    lost: int = field(init=False)

    def __post_init__(self) -> None:
        self.lost = sum(len(log) - len(self.target[place]) for place, log in self.source.items())
        self._there = {place: [seen.offset for seen in log] for place, log in self.source.items()}
        self._here = {place: [seen.offset for seen in log] for place, log in self.target.items()}

    def wrong_logs(self) -> Iterator[str]:
        for place, log in self.target.items():
            told = [(seen.time_ms, seen.value) for seen in log]
            if told != [(seen.time_ms, seen.value) for seen in self.source[place][: len(log)]]:
                yield f"{place}: the mirror isn't the beginning of its source"

    def wrong_with(self, trial: Trial) -> Iterator[str]:
        moves = {(move["group"], (move["topic"], move["partition"])): move for move in trial.sheet["moves"]}
        yield from self._wrong_loss(trial)
        for group, stands in self.stands.items():
            if set(trial.held[group]) != {self.mirrored(place) for place in stands}:
                yield f"{trial.name}: {group} stands on other partitions than it reads"
                continue
            for place in stands:
                at = trial.held[group][self.mirrored(place)]
                yield from self._wrong_place(trial, group, place, at)
                move = moves[group, self.mirrored(place)]
                yield from self._wrong_price(trial, group, place, move, at)

    def wrong_behind(self, trial: Trial, rest: Mapping[str, Mapping[Place, Log]]) -> Iterator[str]:
        """What each group had read, what it reads on and what the sheet called lost is all there is.

        By numbers, not by values: a writer that lost its broker's answer may have written some of them twice.
        """
        for group, stands in self.stands.items():
            for place in stands:
                read_on = [seen.value for seen in rest[group][self.mirrored(place)]]
                mirrored = [seen.value for seen in self.source[place][: len(self.target[place])]]
                begins, stood = len(mirrored) - len(read_on), self._stood(group, place)
                if read_on != mirrored[begins:]:
                    yield f"{trial.name}: {group} doesn't read the end of {place} in its order"
                if begins != stood:
                    yield f"{trial.name}: {group} had read {stood} of {place}, and reads on from {begins}"

    def _wrong_loss(self, trial: Trial) -> Iterator[str]:
        said = trial.sheet["lost_records"]
        if said["number"] != (self.lost if trial.knows_source else None):
            yield f"{trial.name}: {self.lost} records are lost, and the sheet says {said}"

    def _wrong_place(self, trial: Trial, group: str, place: Place, at: int) -> Iterator[str]:
        """On its record; after the last one there is nothing before it."""
        wanted, found = self._wanted(trial, group, place), self._number(place, at)
        is_exact = wanted == len(self._here[place]) or at == self._here[place][wanted]
        if found != wanted or not is_exact:
            yield f"{trial.name}: {group} stands at {at} of {place}: record {found}, and not {wanted}"

    def _wanted(self, trial: Trial, group: str, place: Place) -> int:
        log = self.target[place]
        if not trial.is_latest:
            late = (n for n, seen in enumerate(log) if seen.time_ms >= self.moment_ms)
            return next(late, len(log))
        known = self.stands if trial.knows_source else self.synced
        return min(bisect_left(self._there[place], known[group][place]), len(log))

    def _wrong_price(
        self, trial: Trial, group: str, place: Place, move: Mapping[str, Any], at: int
    ) -> Iterator[str]:
        stood, found = self._stood(group, place), self._number(place, at)
        again, never = max(stood - found, 0), max(found - stood, 0)
        if move["after"] != at or not (_holds(move["rereads"], again) and _holds(move["skips"], never)):
            said = f"{move['rereads']} again and {move['skips']} never, to {move['after']}"
            yield f"{trial.name}: {group} on {place}: {said}; it is {again} and {never}, at {at}"
        if trial.is_latest and never:
            yield f"{trial.name}: {group} on {place} skips {never} that aren't lost"
        if trial.knows_source and not move["rereads"]["bound"] == move["skips"]["bound"] == Bound.EXACT:
            yield f"{trial.name}: {group} on {place}: the source answers, and a price isn't exact"

    def _stood(self, group: str, place: Place) -> int:
        """How many of what is mirrored it had read."""
        return min(bisect_left(self._there[place], self.stands[group][place]), len(self.target[place]))

    def _number(self, place: Place, at: int) -> int:
        return bisect_left(self._here[place], at)


def _holds(figure: Mapping[str, Any], number: int) -> bool:
    said: int | None = figure["number"]
    match figure["bound"]:
        case Bound.EXACT:
            return said == number
        case Bound.AT_LEAST:
            return said is not None and said <= number
        case Bound.AT_MOST:
            return said is not None and number <= said
    return False
