"""The topics of a run, round by round: which ones there are, made and grown where needed, refusals reported.

What the target refuses to make is asked for again after a while; everything is reported once. A run over some
of the flow's topics (`only`) leaves the rest alone: nothing of it is made, grown, copied or reported.
"""

from __future__ import annotations

from causeway.core.copy.ports import Clock
from causeway.core.copy.report import RunReport
from causeway.core.kernel.plurals import counted
from causeway.core.model.flow import Flow
from causeway.core.state.flow_state import FlowState
from causeway.core.state.reverse_flow import ReverseFlow
from causeway.core.topics.topic_choice import TopicChoice
from causeway.core.topics.topic_facts import RefusedTopic
from causeway.usecases.copy.administration import Administration
from causeway.usecases.copy.planning import Landscape, survey_topics
from causeway.usecases.run_lock.ownership import Say
from causeway.usecases.session.both_clusters import Clusters

_REFUSED_AGAIN_SECONDS = 30.0


class TopicsOfRun:
    def __init__(self, flow: Flow, clusters: Clusters, say: Say, only: frozenset[str] | None = None) -> None:
        """`only`: source topics; None: all of the flow's."""
        self._flow, self._clusters, self._say, self._only = flow, clusters, say, only
        self._clock: Clock = clusters.network
        self._refused_until: dict[str, tuple[RefusedTopic, float]] = {}

    async def look(self, state: FlowState, other_way: ReverseFlow | None) -> Landscape:
        """As they are now, less what the target has refused to make."""
        source, target = self._clusters.source, self._clusters.target
        found = await survey_topics(self._flow, source, target, state, other_way, self._only)
        return found.after_refusals(self._not_made())

    def prepare(self, administration: Administration, landscape: Landscape, state: FlowState) -> None:
        """Create and grow what is missing on the target. It blocks."""
        fenced = {t.source for t in landscape.topics.mirrored if landscape.fence_over(t.target) is not None}
        chosen = TopicChoice(self._only, {each.topic for each in landscape.topics.refused} | fenced)
        done = administration.prepare_topics(frozenset(state.pairs), chosen)
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

    def note_refusals(self, landscape: Landscape, report: RunReport) -> None:
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
