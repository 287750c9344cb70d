"""Where partitions began: the first place that a round handed to a lane, and it is the only one ever.

Asked of what lanes are given, not of what the flow has written down about it: a start that slides shows there
before a reader can see it. Nor may it pass over a record that its rule wants. What readers see is held to the
same place: nothing before it, and each record from it on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from causeway.core.copy.lane_task import LaneTask
from causeway.core.kernel.identity import TopicPartition
from causeway.core.model.flow import Start
from tests.simulation.cluster.history import Broken, History


class Starts:
    """By source partition."""

    def __init__(self, rule: Start, histories: Mapping[TopicPartition, History]) -> None:
        self._rule, self._histories = rule, histories
        self.at: dict[TopicPartition, int] = {}

    def carried(self, tasks: Iterable[LaneTask]) -> None:
        for assignment in (each for task in tasks for each in task.assignments):
            if assignment.start is None:
                continue
            source, offset = assignment.pair.source, int(assignment.start.offset)
            if source not in self.at:
                self._refuse_passing_over(source, offset)
            first = self.at.setdefault(source, offset)
            if offset != first:
                raise Broken(f"{source} begins at {offset}, and has begun at {first} before")

    def _refuse_passing_over(self, source: TopicPartition, offset: int) -> None:
        if self._rule.at == "latest":
            return
        history, since = self._histories[source], self._rule.timestamp_ms or 0
        for entry in history.branches[-1]:
            if history.log.start <= entry.offset < offset and entry.record.timestamp_ms >= since:
                raise Broken(f"{source} begins at {offset}, and offset {entry.offset} is wanted, too")

    def of(self, source: TopicPartition) -> int:
        """What was never carried has no record to be seen; its log's start is as good as any."""
        return self.at.get(source, 0)
