"""What a run knows of what its target asks: learned by the lanes from refusals, or set on the topics.

Kept for as long as the run lasts, by source partition; the next run learns it again, at the price of one
refused batch each. Limits are raised here, between rounds, because that is no lane's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from causeway.core.copy.lane_task import LaneResult, PartitionRow
from causeway.core.copy.ports import Clock
from causeway.core.copy.round_plan import RoundPlan, with_limits
from causeway.core.copy.target_limits import LimitRaise, TargetLimits, codec_wanted
from causeway.core.kernel.errors import CausewayError
from causeway.core.kernel.identity import TopicPartition
from causeway.core.model.flow import Flow
from causeway.core.topics.carried_settings import TopicSetting
from causeway.usecases.copy.administration import Administration
from causeway.usecases.run_lock.ownership import Say

_LOOK_AGAIN_SECONDS = 300.0
_UNTIL_KNOWN_SECONDS = 15.0
"""How long brokers may take to go by a setting that they have accepted."""


class KnownLimits:
    def __init__(self, flow: Flow, administration: Administration, clock: Clock, say: Say) -> None:
        self._flow, self._administration, self._clock, self._say = flow, administration, clock, say
        self._learned: dict[TopicPartition, TargetLimits] = {}
        self._raised: dict[tuple[str, str], tuple[int, float]] = {}
        self._types: dict[str, str | None] = {}
        self._looked_at = -_LOOK_AGAIN_SECONDS

    def told_to(self, plan: RoundPlan) -> RoundPlan:
        """The same plan, each partition with what is known of it."""
        demands: dict[TopicPartition, TargetLimits] = {}
        for pair in (facts.pair for facts in plan.partitions):
            codec = codec_wanted(self._types.get(pair.target.topic))
            learned = self._learned.get(pair.source)
            if codec is not None or learned is not None:
                demands[pair.source] = replace(learned or TargetLimits(), codec=codec)
        return with_limits(plan, demands)

    def must_look(self, plan: RoundPlan) -> bool:
        """Whether there are topics that it hasn't looked at, or not for long."""
        is_late = self._clock.monotonic() - self._looked_at >= _LOOK_AGAIN_SECONDS
        return is_late or not _topics_of(plan) <= self._types.keys()

    def look(self, plan: RoundPlan) -> None:
        """At the topics' settings; it blocks. Where they may not be seen, or not now, the target's brokers
        compress again by themselves."""
        topics = _topics_of(plan)
        self._looked_at = self._clock.monotonic()
        try:
            found = self._administration.topic_settings(topics)
        except CausewayError:
            found = {}
        self._types = {topic: _compression_type(found.get(topic, ())) for topic in topics}

    def learn(self, results: Iterable[LaneResult]) -> None:
        """It blocks where a limit is to be raised."""
        for row in (row for result in results for row in result.rows):
            if row.demands is not None:
                self._learned[row.source] = row.demands
            if row.quarantined:
                self._say(
                    f"{self._flow.name}: {len(row.quarantined)} records of {row.source} went to "
                    f"{self._flow.quarantine_topic}, the first one's source offset is {min(row.quarantined)}"
                )
            if row.wanted_limit is not None:
                self._raise(row, row.wanted_limit)

    def _raise(self, row: PartitionRow, limit: LimitRaise) -> None:
        topic, now = row.target.topic, self._clock.monotonic()
        at_least, since = self._raised.get((topic, limit.setting), (-1, now))
        if at_least >= limit.at_least:
            if now - since > _UNTIL_KNOWN_SECONDS:
                self._give_up(row.source, f"{limit.setting} is {at_least} by now, and it is still refused")
            return
        try:
            self._administration.raise_limit(topic, limit)
        except CausewayError as error:
            self._give_up(row.source, f"{limit.setting} can't be raised: {error}")
            return
        self._raised[topic, limit.setting] = limit.at_least, now
        self._say(f"{self._flow.name}: raised {limit.setting} of {topic} to {limit.at_least}")

    def _give_up(self, source: TopicPartition, why: str) -> None:
        self._learned[source] = replace(self._learned.get(source, TargetLimits()), cannot_raise=why)


def _topics_of(plan: RoundPlan) -> set[str]:
    return {facts.pair.target.topic for facts in plan.partitions}


def _compression_type(settings: Iterable[TopicSetting] | CausewayError) -> str | None:
    if isinstance(settings, CausewayError):
        return None
    told: Mapping[str, str | None] = {each.name: each.value for each in settings}
    return told.get("compression.type")
