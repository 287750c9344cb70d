"""What a run knows of what its target asks: learned by the lanes from refusals, or set on the topics.

Kept for as long as the run lasts, by source partition; the next run learns it anew, at the price of one
refused batch each. Limits are raised here, between rounds, because that is no lane's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from causeway.brokers.admin import ClusterAdmin
from causeway.brokers.topic_limits import raise_topic_limit
from causeway.core.demands import Demands, LimitRaise, codec_demanded
from causeway.core.errors import CausewayError
from causeway.core.flow import Flow
from causeway.core.identity import TopicPartition
from causeway.core.lane_task import LaneResult, PartitionRow
from causeway.core.ports import Clock
from causeway.core.round_plan import RoundPlan, with_demands
from causeway.core.topics import TopicSetting
from causeway.flows.ownership import Say

_LOOK_AGAIN_SECONDS = 300.0
_UNTIL_KNOWN_SECONDS = 15.0
"""How long brokers may take to go by a setting that they have accepted."""


class TargetDemands:
    def __init__(self, flow: Flow, admin: ClusterAdmin, clock: Clock, say: Say) -> None:
        self._flow, self._admin, self._clock, self._say = flow, admin, clock, say
        self._learned: dict[TopicPartition, Demands] = {}
        self._raised: dict[tuple[str, str], tuple[int, float]] = {}
        self._types: dict[str, str | None] = {}
        self._looked_at = -_LOOK_AGAIN_SECONDS

    def told_to(self, plan: RoundPlan) -> RoundPlan:
        """The same plan, each partition with what is known of it."""
        pairs = [facts.pair for facts in plan.partitions]
        self._look({pair.target.topic for pair in pairs})
        demands: dict[TopicPartition, Demands] = {}
        for pair in pairs:
            codec = codec_demanded(self._types.get(pair.target.topic))
            learned = self._learned.get(pair.source)
            if codec is not None or learned is not None:
                demands[pair.source] = replace(learned or Demands(), codec=codec)
        return with_demands(plan, demands)

    def _look(self, topics: set[str]) -> None:
        """Where settings may not be seen, or not now, the target's brokers compress anew by themselves."""
        now = self._clock.monotonic()
        if topics <= self._types.keys() and now - self._looked_at < _LOOK_AGAIN_SECONDS:
            return
        self._looked_at = now
        try:
            found = self._admin.topic_settings(topics)
        except CausewayError:
            found = {}
        self._types = {topic: _compression_type(found.get(topic, ())) for topic in topics}

    def learn(self, results: Iterable[LaneResult]) -> None:
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
            raise_topic_limit(self._admin.endpoint, topic, limit.setting, limit.at_least)
        except CausewayError as error:
            self._give_up(row.source, f"{limit.setting} can't be raised: {error}")
            return
        self._raised[topic, limit.setting] = limit.at_least, now
        self._say(f"{self._flow.name}: raised {limit.setting} of {topic} to {limit.at_least}")

    def _give_up(self, source: TopicPartition, why: str) -> None:
        self._learned[source] = replace(self._learned.get(source, Demands()), cannot_raise=why)


def _compression_type(settings: Iterable[TopicSetting] | CausewayError) -> str | None:
    if isinstance(settings, CausewayError):
        return None
    told: Mapping[str, str | None] = {each.name: each.value for each in settings}
    return told.get("compression.type")
