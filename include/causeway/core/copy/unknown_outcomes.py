"""What a run knows of its lanes in doubt: when each is tried again, what it proves first, when it parks.

Each lane has a pause of its own, which grows for as long as it does nothing but doubt; the others go on. A
lane whose commits the target refuses has appended its data for nothing: after the second time it commits as
much without data first (`LaneTask.refused_commit`), and after some more its partitions park.

Kept for as long as the run lasts, by lane.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from causeway.core.copy.lane_task import LaneResult, LaneTask, RefusedCommit
from causeway.core.copy.round_plan import RoundPlan
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.kernel.kafka_errors import error_name
from causeway.core.state.parked import Parked, ParkReason

_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.1, 5.0
_UNTIL_TRIAL, _UNTIL_PARKED = 2, 10
_SAID_AFTER = 2
_DEFAULT_MESSAGE_BYTES = 1_048_588
_KIBIBYTE = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownOutcome:
    """Of one lane, since it last was done or committed something."""

    lane: int
    times: int
    why: str
    tried_again_at: float
    refusals: int = 0
    """Commits that the target refused."""
    refused: RefusedCommit | None = None
    """The last of them."""

    @property
    def is_parked(self) -> bool:
        return self.refusals >= _UNTIL_PARKED

    def as_dict(self) -> dict[str, object]:
        return {"lane": self.lane, "times": self.times, "why": self.why}


class UnknownOutcomes:
    def __init__(self, flow: str) -> None:
        self._flow = flow
        self._of: dict[int, UnknownOutcome] = {}
        self._got_through: set[int] = set()
        """Lanes that this run has seen do something else."""

    def told_to(self, plan: RoundPlan, now: float) -> RoundPlan:
        """The same plan without the lanes that pause; the others get what they have to prove first."""
        return replace(
            plan, tasks=tuple(self._with_trial(task) for task in plan.tasks if not self._pauses(task, now))
        )

    def _pauses(self, task: LaneTask, now: float) -> bool:
        doubt = self._of.get(task.lane)
        return doubt is not None and doubt.tried_again_at > now

    def _with_trial(self, task: LaneTask) -> LaneTask:
        doubt = self._of.get(task.lane)
        if doubt is None or doubt.refusals < _UNTIL_TRIAL:
            return task
        return replace(task, refused_commit=doubt.refused)

    def seconds_to_next(self, now: float) -> float:
        """Until a lane that pauses is tried again; 0: none does."""
        waits = [doubt.tried_again_at - now for doubt in self._of.values() if doubt.tried_again_at > now]
        return min(waits, default=0.0)

    def learn(self, results: Iterable[LaneResult], now: float) -> list[str]:
        """What is worth saying. Rows of lanes that are refused time and again are parked in place."""
        said: list[str] = []
        for result in results:
            if result.outcome in ("doubt", "beaten"):
                said += self._learn_doubt(result, now)
            else:
                self._of.pop(result.lane, None)
                self._got_through.add(result.lane)
        return said

    def _learn_doubt(self, result: LaneResult, now: float) -> list[str]:
        before = self._of.get(result.lane)
        if result.transactions:
            before = None
            self._got_through.add(result.lane)
        times = before.times + 1 if before else 1
        refusals = before.refusals if before else 0
        doubt = self._of[result.lane] = UnknownOutcome(
            lane=result.lane,
            times=times,
            why=result.why,
            tried_again_at=now + min(_FIRST_PAUSE_SECONDS * 2 ** min(times - 1, 10), _LONGEST_PAUSE_SECONDS),
            refusals=refusals + (result.refused_commit is not None),
            refused=result.refused_commit or (before.refused if before else None),
        )
        if doubt.is_parked and result.refused_commit is not None:
            self._park(result, doubt)
            return []
        is_news = times == _SAID_AFTER or (before is not None and before.why != doubt.why)
        return [f"{self._flow}: lane {result.lane} is in doubt: {result.why}"] if is_news else []

    def _park(self, result: LaneResult, doubt: UnknownOutcome) -> None:
        parked = commit_refused(self._flow, doubt)
        for row in result.rows:
            row.parked, row.later = row.parked or parked, ""

    def stuck(self) -> list[UnknownOutcome]:
        """Lanes whose doubt doesn't end; one that parks is reported by its partitions."""
        return [
            doubt
            for doubt in self._of.values()
            if not doubt.is_parked and (doubt.times >= _SAID_AFTER or doubt.lane not in self._got_through)
        ]


def commit_refused(flow: str, doubt: UnknownOutcome) -> Parked:
    refused = doubt.refused
    assert refused is not None, "only of a lane whose commits were refused"
    return Parked(
        ParkReason.COMMIT_REFUSED,
        f"the target refused {doubt.refusals} commits of lane {doubt.lane} of flow {flow} in a row: "
        f"{refused.why}",
        f"{_remedy(refused)}; the flow goes on by itself",
    )


def _remedy(refused: RefusedCommit) -> str:
    if refused.map_topic and refused.code == Code.MESSAGE_TOO_LARGE:
        least = (refused.map_bytes // _KIBIBYTE + 2) * _KIBIBYTE
        return (
            "on the target, `kafka-configs.sh --alter --entity-type topics --entity-name "
            f"{refused.map_topic} --add-config max.message.bytes={max(_DEFAULT_MESSAGE_BYTES, least)}`"
        )
    match refused.code:
        case Code.OFFSET_METADATA_TOO_LARGE:
            return "raise offset.metadata.max.bytes of the target's brokers to 4096, Kafka's default"
        case Code.NOT_ENOUGH_REPLICAS | Code.NOT_ENOUGH_REPLICAS_AFTER_APPEND:
            return "bring back the target's brokers that hold its replicas"
        case _:
            return f"look for {error_name(refused.code)} in the logs of the target's brokers"
