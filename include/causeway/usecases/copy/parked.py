"""Partitions of a run that are parked: when each is tried again, and a word about them that stays.

The word is for people who look at the flow (`status`, `plan`, `doctor`): what somebody else wrote to a
mirror, or what a target refuses, only a worker finds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.lane_task import LaneResult
from causeway.core.copy.ports import Clock
from causeway.core.copy.report import RunReport
from causeway.core.kernel.identity import Generation, TopicPartition
from causeway.core.model.flow import Flow
from causeway.core.model.naming import FLOWS_TOPIC
from causeway.core.state.flow_records import parked_record
from causeway.core.state.parked import LastParked, Parked, ParkReason
from causeway.usecases.run_lock.ownership import Say

_AGAIN_SECONDS = 30.0


class ParkedOfRun:
    def __init__(self, flow: Flow, clock: Clock, say: Say, only: frozenset[str] | None = None) -> None:
        """`only`: the source topics that the run is about; what was last recorded of others stays."""
        self._keeps, self._flow, self._clock, self._say = flow, flow.name, clock, say
        self._only, self._of_others = only, LastParked(generation=Generation(-1), at_ms=0)
        self._until: dict[TopicPartition, float] = {}
        self._told: dict[TopicPartition, str] = {}

    def begin(self, before: LastParked | None) -> None:
        """`before`: what the last word was."""
        if before is not None:
            others = {tp: why for tp, why in before.partitions.items() if self._is_left_alone(tp)}
            self._of_others = replace(before, partitions=others)
            self._told = {tp: str(why.reason) for tp, why in before.partitions.items() if tp not in others}

    def waiting(self) -> frozenset[TopicPartition]:
        """Those that aren't tried now."""
        now = self._clock.monotonic()
        return frozenset(tp for tp, until in self._until.items() if until > now)

    def note(self, results: Iterable[LaneResult]) -> None:
        again = self._clock.monotonic() + _AGAIN_SECONDS
        for row in (row for result in results for row in result.rows):
            if row.parked is not None and row.later:
                continue  # its lane ended in doubt: what lies before the trouble isn't committed yet
            if row.parked is not None:
                if row.source not in self._until:
                    self._say(f"{self._flow}: parked {row.source}: {row.parked}")
                self._until[row.source] = again
            else:
                self._until.pop(row.source, None)

    async def tell(self, target: WireTarget, generation: Generation, report: RunReport) -> None:
        """Leave word on the target, if it isn't the last one's."""
        parked = {tp: _parse_parked(p.parked) for tp, p in report.partitions.items() if p.parked}
        parked = {
            tp: why for tp, why in parked.items() if why.reason is not ParkReason.FENCED
        }  # seen at once
        now = {tp: str(why.reason) for tp, why in parked.items()}
        if now == self._told:
            return
        others = await self._still_parked(target)
        word = LastParked(
            generation=generation,
            at_ms=self._clock.time_ms(),
            partitions={**others, **parked},
            more=self._of_others.more if self._only is not None else 0,
        )
        await target.append_plain(FLOWS_TOPIC, *parked_record(self._flow, word))
        self._told = now

    def _is_left_alone(self, tp: TopicPartition) -> bool:
        return self._only is not None and tp.topic not in self._only

    async def _still_parked(self, target: WireTarget) -> dict[TopicPartition, Parked]:
        """Of other topics: the new word has a newer generation than what may have cured them."""
        mirrors = {
            tp: TopicPartition(self._keeps.naming.target_topic(tp.topic), tp.partition)
            for tp in self._of_others.partitions
        }
        if not mirrors:
            return {}
        found = await target.positions(self._keeps.group, list(mirrors.values()), stable=False)
        return self._of_others.still({tp: found[there] for tp, there in mirrors.items()})


def _parse_parked(told: dict[str, str]) -> Parked:
    return Parked(ParkReason(told["reason"]), told["facts"], told["remedy"])
