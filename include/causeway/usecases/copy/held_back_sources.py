"""Watch for sources that are held back by an open transaction, beside the rounds of a run."""

from __future__ import annotations

from dataclasses import replace

from causeway.brokers.wire.log_reader import WireLogReader
from causeway.core.copy.held_back_sources import HeldBackSource, describe, look_again
from causeway.core.copy.ports import Clock, LogEnd
from causeway.core.copy.report import RunReport
from causeway.core.copy.round_plan import RoundPlan
from causeway.core.kernel.identity import TopicPartition
from causeway.usecases.run_lock.ownership import Say

_LOOK_AGAIN_SECONDS = 10.0


class HeldBackWatch:
    def __init__(self, source: WireLogReader, clock: Clock, say: Say) -> None:
        self._source, self._clock, self._say = source, clock, say
        self._held: dict[TopicPartition, HeldBackSource] = {}
        self._looked_at = clock.monotonic()

    async def look(self, plan: RoundPlan, report: RunReport, *, is_last: bool) -> None:
        """Now and then, and when a run ends: one request to each of the source's leaders."""
        now = self._clock.monotonic()
        if not is_last and now - self._looked_at < _LOOK_AGAIN_SECONDS:
            return
        self._looked_at = now
        stables = {facts.pair.source: facts.last_stable for facts in plan.partitions}
        ends = {
            tp: (stables[tp], end.offset)
            for tp, end in (await self._source.log_ends(list(stables))).items()
            if isinstance(end, LogEnd)
        }
        self._held = look_again(self._held, ends, now)
        for tp in stables:
            report.partitions[tp].held_back = self._held[tp].offsets if tp in self._held else 0
        for tp, held in self._held.items():
            if held.stands_still(now) and not held.is_said:
                self._say(f"{report.flow}: {describe(tp, held, now)}")
                self._held[tp] = replace(held, is_said=True)
