"""A run of a flow, step by step: take the turn, then rounds of plan, carry, report, until it is time to end.

Who drives a run does between two steps what a step can't: carry lanes, pause, ask admin clients, which block.
There are two drivers: `blocking_driver.py`, and the simulation's in virtual time. A step itself awaits the
clusters' wires and its clock, and nothing else.

What a run knows of its own success is what is committed on the target, read back at the end; rows of
lanes are for progress and counts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from causeway.core.copy.lane_task import LaneResult, LastOwner
from causeway.core.copy.ports import Clock, LaneFenced, OutcomeUnknown, Unreachable
from causeway.core.copy.progress import Progress
from causeway.core.copy.report import RunReport, outcome_of
from causeway.core.copy.round_plan import RoundPlan, last_owners_after, with_last_owners
from causeway.core.copy.run_end import RunEnd
from causeway.core.copy.unknown_outcomes import UnknownOutcomes
from causeway.core.kernel.errors import CausewayError, ClusterUnreachable
from causeway.core.kernel.identity import Generation
from causeway.core.kernel.timestamps import rfc3339
from causeway.core.model.flow import Flow
from causeway.core.state.flow_state import FlowState
from causeway.core.state.known_pairs import KnownPair
from causeway.core.state.repair_commands import next_command
from causeway.core.state.reverse_flow import ReverseFlow
from causeway.core.topics.topic_choice import refuse_unknown_topics
from causeway.usecases.copy.administration import Administration
from causeway.usecases.copy.held_back_sources import HeldBackWatch
from causeway.usecases.copy.parked import ParkedOfRun
from causeway.usecases.copy.permissions import check_own_rights
from causeway.usecases.copy.planning import Landscape, plan_round, survey_topics
from causeway.usecases.copy.record_starts import record_starts
from causeway.usecases.copy.round_facts import Memory
from causeway.usecases.copy.run_steps import Administer, CopyLanes, End, Pause, Step
from causeway.usecases.copy.target_limits import KnownLimits
from causeway.usecases.copy.topics_of_run import TopicsOfRun
from causeway.usecases.copy.update_report import update_report
from causeway.usecases.run_lock.fence import claim_all_lanes
from causeway.usecases.run_lock.ownership import (
    RunOwner,
    Say,
    acquire_ownership,
    check_still_owner,
    refuse_fenced,
    remember_clusters,
    write_keepalive,
)
from causeway.usecases.run_lock.reverse_flow import ReverseFlowReader
from causeway.usecases.session.both_clusters import Clusters, refuse_one_cluster, refuse_other_clusters
from causeway.usecases.session.flows_topic_health import refuse_unsound

PASSING = (Unreachable, OutcomeUnknown, LaneFenced, ClusterUnreachable)
"""A cluster that can't be used now may come back."""
_IDLE_SECONDS = 0.2
_PATIENCE_SECONDS = 90.0
_LONGEST_PAUSE_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    holder: RunOwner
    run_for_seconds: float | None
    """None: until caught up (`core/copy/run_end.py`)."""
    to_the_last_record: bool = False
    """Until a lag of 0, with writers that are at rest."""
    topics: frozenset[str] | None = None
    """The source topics that the run is about; None: all of the flow's."""
    take_over: bool = False
    is_interrupted: Callable[[], bool] = lambda: False
    """Asked between rounds: a signal may have struck where its exception went unheard."""


@dataclass(frozen=True, slots=True)
class _Fruitless:
    """Nothing could be done in this round."""

    why: str


_Next = Callable[[], Awaitable[Step | _Fruitless]]


class FlowRun:
    """In this order: `look`, `create_internal_topics`, `begin`, `next_step` until it is `End`, `finish`."""

    def __init__(
        self, flow: Flow, clusters: Clusters, administration: Administration, options: RunOptions, say: Say
    ) -> None:
        self._flow, self._clusters, self._options, self._say = flow, clusters, options, say
        self._administration = administration
        clock: Clock = clusters.network
        self._clock, self._began = clock, clock.monotonic()
        self._topics = TopicsOfRun(flow, clusters, say, options.topics)
        self._end = RunEnd(
            run_for_seconds=options.run_for_seconds, to_the_last_record=options.to_the_last_record
        )
        self._remembered: dict[str, KnownPair] = {}
        self._parked = ParkedOfRun(flow, clock, say, options.topics)
        self._other_direction = ReverseFlowReader(flow, clusters)
        self._held_back = HeldBackWatch(clusters.source, clock, say)
        self._limits = KnownLimits(flow, administration, clock, say)
        self._last_owners: dict[int, LastOwner] = {}
        self._progress = Progress(flow.name, options.run_for_seconds)
        self._fruitless_since: float | None = None
        self._fruitless_rounds = 0
        self._doubts = UnknownOutcomes(flow.name)
        self._existing = frozenset[str]()
        self._source_id: str | None = None
        self._goes_on: _Next = self._begin_round
        self._lag = 0
        self.generation = Generation(-1)
        self.report = RunReport(
            flow=flow.name,
            run=options.holder.run_id,
            holder=options.holder.name,
            generation=self.generation,
            began_at="",
            topics=None if options.topics is None else tuple(sorted(options.topics)),
        )

    # the beginning

    async def look(self) -> None:
        """Everything that can refuse a run does so before anything is written.

        :raises CausewayError: it may not begin.
        """
        flow, clusters, topics = self._flow, self._clusters, self._options.topics
        refuse_one_cluster(flow, clusters)
        state = await clusters.flow_state(flow)
        refuse_other_clusters(flow, clusters, state)
        await refuse_unsound(flow, clusters.target, state)
        refuse_fenced(flow.name, state)
        await self._other_direction.look_and_hold()
        if topics is not None:
            seen = await survey_topics(flow, clusters.source, clusters.target, state)
            refuse_unknown_topics(flow, topics, seen.topics, seen.source, seen.gone)
        await check_own_rights(flow, clusters.target)
        self._source_id = state.source_cluster_id
        self._existing = frozenset(await clusters.target.wire.topics(None))

    def create_internal_topics(self) -> None:
        """It blocks. :raises CausewayError: one can't be made."""
        self._administration.create_internal_topics(self._existing)

    async def begin(self) -> None:
        """:raises CausewayError: it isn't this run's turn."""
        flow, target, options = self._flow, self._clusters.target, self._options
        self.generation = self.report.generation = await acquire_ownership(
            target, self._clock, flow, options.holder, take_over=options.take_over, say=self._say
        )
        await self._claim_lanes_of_other_numbers()
        if self._source_id is None:
            source_id, target_id = self._clusters.source.wire.cluster_id, target.wire.cluster_id
            await remember_clusters(target, flow.name, source_id=source_id, target_id=target_id)
        now = await self._clusters.flow_state(flow)  # an adoption may have come in between
        self._remembered = dict(now.pairs)
        self._parked.begin(now.parked)
        self.report.began_at = rfc3339(self._clock.time_ms())

    async def _claim_lanes_of_other_numbers(self) -> None:
        """A worker of a run with another number of lanes isn't fenced by the claims of this run's lanes."""
        target = self._clusters.target
        state = await target.flow_state(self._flow.name)
        if state.lanes_varied:
            claimed = await claim_all_lanes(target, self._clock, self._flow, state)
            self._say(f"{self._flow.name}: had other numbers of lanes before; claimed all {claimed}")

    # rounds

    async def next_step(self) -> Step:
        """:raises CausewayError: the run ends with it."""
        goes_on, self._goes_on = self._goes_on, self._begin_round
        try:
            step = await goes_on()
        except PASSING as trouble:
            step = _Fruitless(str(trouble))
        return self._be_patient(step.why) if isinstance(step, _Fruitless) else step

    async def _begin_round(self) -> Step | _Fruitless:
        asked_at = rfc3339(self._clock.time_ms())
        await self._clusters.connect()
        state = await check_still_owner(self._clusters.target, self._flow.name, self.generation)
        other = await self._other_direction.look_and_hold()
        landscape = await self._topics.look(state, other)
        if landscape.topics.to_create or landscape.topics.to_grow:
            return self._administer(
                lambda: self._topics.prepare(self._administration, landscape, state),
                then=partial(self._look_again, asked_at, state, other),
            )
        return await self._plan(asked_at, state, landscape)

    async def _look_again(
        self, asked_at: str, state: FlowState, other: ReverseFlow | None
    ) -> Step | _Fruitless:
        return await self._plan(asked_at, state, await self._topics.look(state, other))

    async def _plan(self, asked_at: str, state: FlowState, landscape: Landscape) -> Step | _Fruitless:
        self._topics.note_refusals(landscape, self.report)
        source, target = self._clusters.source, self._clusters.target
        memory = Memory(self._flow, state, self._remembered, landscape.other_way)
        waiting = self._parked.waiting()
        plan = await plan_round(memory, self.generation, source, target, landscape, waiting)
        then = partial(self._go_by, asked_at, landscape, plan)
        if self._limits.must_look(plan):
            return self._administer(lambda: self._limits.look(plan), then=then)
        return await then()

    async def _go_by(self, asked_at: str, landscape: Landscape, plan: RoundPlan) -> Step | _Fruitless:
        """Report what the plan has read, and see what is left to do."""
        seen = with_last_owners(self._limits.told_to(plan), self._last_owners)
        update_report(self.report, seen, self._say)
        await self._parked.tell(self._clusters.target, self.generation, self.report)
        self.report.ends_seen_at = self.report.ends_seen_at or asked_at
        self._end = self._end.after_seeing(seen)
        left = self._end.left_of(seen, self._clock.time_ms())
        outcome = self._end.outcome(left, self._clock.monotonic() - self._began)
        await self._held_back.look(seen, self.report, is_last=outcome is not None)
        return await self._copy(landscape, left) if outcome is None else End(outcome)

    async def _copy(self, landscape: Landscape, left: RoundPlan) -> Step | _Fruitless:
        now = self._clock.monotonic()
        ready = self._doubts.told_to(left, now)
        if ready.tasks:
            target, known = self._clusters.target, self._remembered
            plan = await record_starts(self._flow, self.generation, target, landscape, ready, known)
            self._lag = plan.lag
            return CopyLanes(plan.tasks)
        if left.tasks:
            return Pause(self._doubts.seconds_to_next(now))
        if left.later and self._options.run_for_seconds is None:
            return _Fruitless(left.waits)
        self._got_on()  # both clusters answer: that is all there is
        return Pause(_IDLE_SECONDS)

    def took(self, results: Sequence[LaneResult]) -> None:
        """What the lanes of the last step did. It blocks where a limit is to be raised."""
        for line in self._doubts.learn(results, self._clock.monotonic()):
            self._say(line)
        self.report.in_doubt = [doubt.as_dict() for doubt in self._doubts.stuck()]
        self.report.rounds += 1
        self.report.fold(results)
        self._limits.learn(results)
        self._last_owners = last_owners_after(self._last_owners, results)
        self._parked.note(results)
        self._goes_on = partial(self._judge, results)

    async def _judge(self, results: Sequence[LaneResult]) -> Step | _Fruitless:
        for result in results:
            if result.error is not None:
                raise result.error
        if any(r.outcome in ("superseded", "fenced") for r in results):
            await check_still_owner(self._clusters.target, self._flow.name, self.generation)
        self._progress.add(self.report.records, self.report.size_bytes)
        lag = max(self._lag - sum(row.records for r in results for row in r.rows), 0)
        seconds = self._clock.monotonic() - self._began
        line = self._progress.line(seconds, lag, in_doubt=len(self.report.in_doubt))
        if line:
            self._say(line)
        troubles = [row.later for r in results for row in r.rows if row.later]
        if troubles and not any(r.transactions for r in results):
            return _Fruitless(troubles[0])
        self._got_on()
        return Pause(0.0)

    def _administer(self, work: Callable[[], None], *, then: _Next) -> Administer:
        def do() -> None:
            try:
                work()
            except PASSING as trouble:
                self._goes_on = partial(self._lose_round, str(trouble))

        self._goes_on = then
        return Administer(do)

    async def _lose_round(self, why: str) -> _Fruitless:
        return _Fruitless(why)

    def _got_on(self) -> None:
        self._fruitless_since, self._fruitless_rounds = None, 0

    def _be_patient(self, why: str) -> Pause:
        """A cluster that can't be used now may come back; nothing is lost by waiting for it."""
        now = self._clock.monotonic()
        if self._fruitless_since is None:
            self._fruitless_since = now
            self._say(f"{self._flow.name}: waiting: {why}")
        if now - self._fruitless_since > _PATIENCE_SECONDS:
            raise ClusterUnreachable(
                f"flow {self._flow.name}",
                rule=f"nothing could be copied for {_PATIENCE_SECONDS:.0f} s: {why}",
                remedy="what is committed stays, and the next run continues from it; "
                f"{next_command(self._flow.name)} says what comes next",
            )
        self._clusters.disconnect()
        self._fruitless_rounds += 1
        return Pause(min(0.05 * 2**self._fruitless_rounds, _LONGEST_PAUSE_SECONDS))

    # the end

    def broke_off(self, end: CausewayError | KeyboardInterrupt) -> None:
        """A step was ended by it; `finish` comes next."""
        if isinstance(end, CausewayError):
            self.report.outcome, self.report.why = outcome_of(end), str(end)
        else:
            self.report.outcome, self.report.why = "interrupted", "by a signal"

    async def finish(self) -> None:
        self.report.seconds = self._clock.monotonic() - self._began
        try:
            await self._sign_off()
        except (*PASSING, CausewayError) as trouble:
            # The word that this run ended is courtesy; without it the next run watches for silence.
            self._say(f"{self._flow.name}: couldn't sign off: {trouble}")

    async def leave_turn(self) -> None:
        """Of a run that was broken off before its first round: nobody has to watch for its silence."""
        if self.generation >= 0:
            with suppress(*PASSING, CausewayError):
                await self._sign_off()

    async def _sign_off(self) -> None:
        target = self._clusters.target
        await self._clusters.connect()
        if self.report.outcome == "interrupted":
            # What the workers left open would hold back readers until it times out: a claim aborts it.
            state = await check_still_owner(target, self._flow.name, self.generation)
            await claim_all_lanes(target, self._clock, self._flow, state)
        await write_keepalive(target, self._clock, self._flow.name, self.generation, ended=True)
