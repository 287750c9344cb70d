"""The topics of a run, round by round: which ones there are, made and grown where needed, refusals said.

What the target refuses to make is asked for again after a while; everything is said once. A run over some of
the flow's topics (`only`) leaves the rest alone: nothing of it is made, grown, copied or reported.
"""

from __future__ import annotations

from causeway.brokers.admin import ClusterAdmin
from causeway.brokers.log_reader import WireLogReader
from causeway.brokers.target_log import WireTarget
from causeway.core.counting import counted
from causeway.core.flow import Flow
from causeway.core.flow_state import FlowState
from causeway.core.opposite import OtherWay
from causeway.core.ports import Clock
from causeway.core.report import RunReport
from causeway.core.topics import RefusedTopic
from causeway.flows.ownership import Say
from causeway.flows.planning import Landscape, survey_topics
from causeway.flows.topics import prepare_topics

_REFUSED_AGAIN_SECONDS = 30.0


class TopicsOfRun:
    def __init__(
        self,
        flow: Flow,
        admins: tuple[ClusterAdmin, ClusterAdmin],
        clock: Clock,
        say: Say,
        only: frozenset[str] | None = None,
    ) -> None:
        """`only`: source topics; None: all of the flow's."""
        self._flow, self._clock, self._say, self._only = flow, clock, say, only
        self._source_admin, self._target_admin = admins
        self._refused_until: dict[str, tuple[RefusedTopic, float]] = {}

    async def look(
        self,
        source: WireLogReader,
        target: WireTarget,
        state: FlowState,
        other_way: OtherWay | None,
        report: RunReport,
    ) -> Landscape:
        """As they are now, after what this run could make of them."""
        found = await survey_topics(self._flow, source, target, state, other_way, self._only)
        landscape = found.after_refusals(self._not_made())
        if landscape.topics.to_create or landscape.topics.to_grow:
            self._prepare(landscape, state)
            found = await survey_topics(self._flow, source, target, state, other_way, self._only)
            landscape = found.after_refusals(self._not_made())
        self._note_refusals(landscape, report)
        return landscape

    def _prepare(self, landscape: Landscape, state: FlowState) -> None:
        fenced = {t.source for t in landscape.topics.mirrored if landscape.fence_over(t.target) is not None}
        done = prepare_topics(
            self._flow,
            self._source_admin,
            self._target_admin,
            frozenset(state.pairs),
            leave_alone={each.topic for each in landscape.topics.refused} | fenced,
            only=self._only,
        )
        again = self._clock.monotonic() + _REFUSED_AGAIN_SECONDS
        self._refused_until |= {each.topic: (each, again) for each in done.refused}
        for topic in done.created:
            unknown = f", without what its brokers don't know: {', '.join(topic.left_out)}"
            self._say(
                f"{self._flow.name}: created {topic.name} with {counted(topic.partitions, 'partition')}"
                + (unknown if topic.left_out else "")
            )
        for growth in done.grown:
            self._say(f"{self._flow.name}: {growth.name} grew to {growth.to_partitions} partitions")

    def _not_made(self) -> list[RefusedTopic]:
        """What the target refused to make or to grow, until it is time to ask again."""
        now = self._clock.monotonic()
        return [refused for refused, until in self._refused_until.values() if until > now]

    def _note_refusals(self, landscape: Landscape, report: RunReport) -> None:
        refused = [
            {"topic": r.topic, "reason": r.reason, "remedy": r.remedy} for r in landscape.topics.refused
        ]
        for item in refused:
            if item not in report.refused_topics:
                self._say(
                    f"{self._flow.name}: left alone {item['topic']}: {item['reason']}; {item['remedy']}"
                )
        for note in landscape.topics.notes:
            if note not in report.notes:
                self._say(f"{self._flow.name}: {note}")
        report.refused_topics = refused
        report.notes = list(landscape.topics.notes)
