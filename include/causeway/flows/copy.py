"""A run of a flow: take the turn, then rounds of plan, carry, report, until it is time to end.

What a run knows of its own success is what is committed on the target, read back at the end; rows of
lanes are for progress and counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from causeway import interruption
from causeway.core.doubts import LaneDoubts
from causeway.core.endpoint import ClusterEndpoint
from causeway.core.errors import CausewayError, ClusterUnreachable
from causeway.core.flow import Flow
from causeway.core.flow_state import FlowState
from causeway.core.identity import Generation
from causeway.core.instants import rfc3339
from causeway.core.known_pairs import KnownPair
from causeway.core.lane_task import LaneResult, LaneTask, LastOwner
from causeway.core.ports import Beaten, Doubt, Unreachable
from causeway.core.progress import Progress
from causeway.core.report import RunOutcome, RunReport, outcome_of
from causeway.core.round_plan import RoundPlan, last_owners_after, with_last_owners
from causeway.core.run_end import RunEnd
from causeway.core.topic_choice import refuse_unknown_topics
from causeway.flows.clusters import (
    Clusters,
    admins,
    open_clusters,
    refuse_one_cluster,
    refuse_other_clusters,
)
from causeway.flows.fence import claim_all_lanes
from causeway.flows.held_back import HeldBackWatch
from causeway.flows.internal_topics import create_internal_topics
from causeway.flows.life_signs import LifeSigns
from causeway.flows.log_health import refuse_unsound
from causeway.flows.other_way import OtherDirection
from causeway.flows.ownership import (
    Holder,
    Say,
    begin_run,
    check_turn,
    refuse_fenced,
    remember_clusters,
    sign_of_life,
)
from causeway.flows.parked import ParkedOfRun
from causeway.flows.planning import Landscape, plan_round, survey_topics
from causeway.flows.remember import remember_beginnings
from causeway.flows.rights import check_own_rights
from causeway.flows.stocktaking import take_stock
from causeway.flows.target_demands import TargetDemands
from causeway.flows.topics_of_run import TopicsOfRun

Carry = Callable[[Sequence[LaneTask]], list[LaneResult]]
"""Runs each task somewhere and brings all results back; raises only if it can't run any."""

FOLLOWING_TRANSACTION_SECONDS = 0.5
_PASSING = (Unreachable, Doubt, Beaten, ClusterUnreachable)
_IDLE_SECONDS = 0.2
_PATIENCE_SECONDS = 90.0
_LONGEST_PAUSE_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    holder: Holder
    run_for_seconds: float | None
    """None: until caught up (`core/run_end.py`)."""
    to_the_last_record: bool = False
    """Until a lag of 0, with writers that are at rest."""
    topics: frozenset[str] | None = None
    """The source topics that the run is about; None: all of the flow's."""
    take_over: bool = False
    is_interrupted: Callable[[], bool] = lambda: False
    """Asked between rounds: a signal may have struck where its exception went unheard."""


def copy_flow(
    flow: Flow,
    source: ClusterEndpoint,
    target: ClusterEndpoint,
    carry: Carry,
    options: RunOptions,
    say: Say,
    *,
    on_report: Callable[[RunReport], None] = lambda _: None,
) -> RunReport:
    """:raises CausewayError: nothing could be done, or it isn't this run's turn any more.

    `on_report` gets the report in any case once the run has begun, also in front of an error.
    """
    if options.run_for_seconds is not None:
        seconds = min(flow.limits.transaction_seconds, FOLLOWING_TRANSACTION_SECONDS)
        flow = replace(flow, limits=replace(flow.limits, transaction_seconds=seconds))
    with open_clusters(source, target) as clusters:
        run = _Run(flow, source, target, clusters, carry, options, say)
        try:
            run.begin(_may_begin(flow, clusters, options.topics))
        except (Unreachable, Doubt, Beaten) as trouble:
            raise ClusterUnreachable(
                f"flow {flow.name}", rule=f"can't begin: {trouble}", remedy="run it again"
            ) from trouble
        except KeyboardInterrupt:
            run.leave_turn()
            raise
        with LifeSigns(target, flow.name, run.generation) as signs:
            try:
                run.go_on_until_the_end()
            except CausewayError as error:
                run.report.outcome, run.report.why = outcome_of(error), str(error)
                raise
            except KeyboardInterrupt:
                run.report.outcome, run.report.why = "interrupted", "by a signal"
                raise
            finally:
                signs.stop()
                with interruption.whole():
                    run.finish(on_report)
    return run.report


def _may_begin(flow: Flow, clusters: Clusters, topics: frozenset[str] | None) -> FlowState:
    """Everything that can refuse a run does so before anything is written."""
    refuse_one_cluster(flow, clusters)
    state = clusters.network.run(lambda: clusters.flow_state(flow))
    refuse_other_clusters(flow, clusters, state)
    clusters.network.run(lambda: refuse_unsound(flow, clusters.target, state))
    refuse_fenced(flow.name, state)
    clusters.network.run(OtherDirection(flow, clusters).look_and_hold)
    if topics is not None:
        seen = clusters.network.run(lambda: survey_topics(flow, clusters.source, clusters.target, state))
        refuse_unknown_topics(flow, topics, seen.topics, seen.source, seen.gone)
    return state


class _Run:
    def __init__(
        self,
        flow: Flow,
        source: ClusterEndpoint,
        target: ClusterEndpoint,
        clusters: Clusters,
        carry: Carry,
        options: RunOptions,
        say: Say,
    ) -> None:
        self._flow, self._clusters, self._carry, self._options = flow, clusters, carry, options
        source_admin, self._target_admin = admins(source, target)
        self._clock, self._say = clusters.network, say
        both = (source_admin, self._target_admin)
        self._topics = TopicsOfRun(flow, both, self._clock, say, options.topics)
        self._end = RunEnd(
            run_for_seconds=options.run_for_seconds, to_the_last_record=options.to_the_last_record
        )
        self._began = self._clock.monotonic()
        self._landscape: Landscape | None = None
        self._remembered: dict[str, KnownPair] = {}
        self._parked = ParkedOfRun(flow, self._clock, say, options.topics)
        self._other_direction = OtherDirection(flow, clusters)
        self._held_back = HeldBackWatch(clusters.source, self._clock, say)
        self._demands = TargetDemands(flow, self._target_admin, self._clock, say)
        self._last_owners: dict[int, LastOwner] = {}
        self._progress = Progress(flow.name, options.run_for_seconds)
        self._fruitless_since: float | None = None
        self._fruitless_rounds = 0
        self._doubts = LaneDoubts(flow.name)
        self._waits_for = ""
        self.generation = Generation(-1)
        self.report: RunReport

    def begin(self, state: FlowState) -> None:
        flow, clusters = self._flow, self._clusters
        clusters.network.run(lambda: check_own_rights(flow, clusters.target))
        existing = frozenset(clusters.network.run(lambda: clusters.target.wire.topics(None)))
        create_internal_topics(flow, self._target_admin, existing)
        self.generation = clusters.network.run(
            lambda: begin_run(
                clusters.target,
                self._clock,
                flow,
                self._options.holder,
                take_over=self._options.take_over,
                say=self._say,
            )
        )
        self.report = RunReport(
            flow=flow.name,
            run=self._options.holder.run_id,
            holder=self._options.holder.name,
            generation=self.generation,
            began_at=rfc3339(self._clock.time_ms()),
        )
        clusters.network.run(self._claim_lanes_of_other_numbers)
        if state.source_cluster_id is None:
            clusters.network.run(
                lambda: remember_clusters(
                    clusters.target,
                    flow.name,
                    source_id=clusters.source.wire.cluster_id,
                    target_id=clusters.target.wire.cluster_id,
                )
            )
        now = clusters.network.run(lambda: clusters.flow_state(flow))  # an adoption may have come in between
        self._remembered = dict(now.pairs)
        self._parked.begin(now.parked)
        self.report = RunReport(
            flow=flow.name,
            run=self._options.holder.run_id,
            holder=self._options.holder.name,
            generation=self.generation,
            began_at=rfc3339(self._clock.time_ms()),
            topics=None if self._options.topics is None else tuple(sorted(self._options.topics)),
        )

    def leave_turn(self) -> None:
        """Of a run that was broken off before its first round: nobody has to watch for its silence."""
        if self.generation >= 0:
            with suppress(*_PASSING, CausewayError):
                self._clusters.network.run(self._say_ended)

    async def _claim_lanes_of_other_numbers(self) -> None:
        """A worker of a run with another number of lanes isn't fenced by the claims of this run's lanes."""
        target = self._clusters.target
        state = await target.flow_state(self._flow.name)
        if state.lanes_varied:
            claimed = await claim_all_lanes(target, self._clock, self._flow, state)
            self._say(f"{self._flow.name}: had other numbers of lanes before; claimed all {claimed}")

    # rounds

    def go_on_until_the_end(self) -> None:
        outcome: RunOutcome | None = None
        while outcome is None:
            if self._options.is_interrupted():
                raise KeyboardInterrupt
            self._waits_for = ""
            try:
                outcome = self._go_one_round()
            except _PASSING as trouble:
                self._waits_for = str(trouble)
            if self._waits_for:
                self._be_patient(self._waits_for)
        self.report.outcome = outcome

    def _go_one_round(self) -> RunOutcome | None:
        """None: it isn't the last one. Whether nothing could be done in it is in `_waits_for`."""
        asked_at = rfc3339(self._clock.time_ms())
        seen = self._plan()
        self.report.ends_seen_at = self.report.ends_seen_at or asked_at
        self._end = self._end.after_seeing(seen)
        plan = self._end.left_of(seen, self._clock.time_ms())
        outcome = self._end.outcome(plan, self._clock.monotonic() - self._began)
        self._clusters.network.run(
            lambda: self._held_back.look(seen, self.report, is_last=outcome is not None)
        )
        if outcome is not None:
            return outcome
        now = self._clock.monotonic()
        ready = self._doubts.told_to(plan, now)
        if ready.tasks:
            self._carry_round(ready)
        elif plan.tasks:
            self._pause(self._doubts.seconds_to_next(now))
        elif plan.later and self._options.run_for_seconds is None:
            self._waits_for = plan.waits
        else:
            self._got_on()  # both clusters answer: that is all there is
            self._pause(_IDLE_SECONDS)
        return None

    def _plan(self) -> RoundPlan:
        plan = self._clusters.network.run(self._plan_round)
        take_stock(self.report, plan, self._say)
        target = self._clusters.target
        self._clusters.network.run(lambda: self._parked.tell(target, self.generation, self.report))
        return plan

    async def _plan_round(self) -> RoundPlan:
        flow, source, target = self._flow, self._clusters.source, self._clusters.target
        await self._clusters.connect()
        state = await check_turn(target, flow.name, self.generation)
        other = await self._other_direction.look_and_hold()
        landscape = await self._topics.look(source, target, state, other, self.report)
        self._landscape = landscape
        known, waiting = self._remembered, self._parked.waiting()
        plan = await plan_round(flow, self.generation, source, target, landscape, state, known, waiting)
        return with_last_owners(self._demands.told_to(plan), self._last_owners)

    async def _remember(self, plan: RoundPlan) -> RoundPlan:
        assert self._landscape is not None
        target, known = self._clusters.target, self._remembered
        return await remember_beginnings(self._flow, self.generation, target, self._landscape, plan, known)

    def _carry_round(self, planned: RoundPlan) -> None:
        plan = self._clusters.network.run(lambda: self._remember(planned))
        results = self._carry(plan.tasks)
        for line in self._doubts.learn(results, self._clock.monotonic()):
            self._say(line)
        self.report.in_doubt = [doubt.as_dict() for doubt in self._doubts.stuck()]
        self.report.rounds += 1
        self.report.fold(results)
        self._demands.learn(results)
        self._last_owners = last_owners_after(self._last_owners, results)
        self._parked.note(results)
        for result in results:
            if result.error is not None:
                raise result.error
        if any(r.outcome in ("superseded", "fenced") for r in results):
            self._clusters.network.run(
                lambda: check_turn(self._clusters.target, self._flow.name, self.generation)
            )
        self._progress.add(self.report.records, self.report.size_bytes)
        lag = max(plan.lag - sum(row.records for r in results for row in r.rows), 0)
        seconds = self._clock.monotonic() - self._began
        line = self._progress.line(seconds, lag, in_doubt=len(self.report.in_doubt))
        if line:
            self._say(line)
        self._judge_progress(results)

    def _judge_progress(self, results: list[LaneResult]) -> None:
        troubles = [row.later for r in results for row in r.rows if row.later]
        if any(r.transactions for r in results) or not troubles:
            self._got_on()
        else:
            self._waits_for = troubles[0]

    def _got_on(self) -> None:
        self._fruitless_since, self._fruitless_rounds = None, 0

    def _be_patient(self, why: str) -> None:
        """A cluster that can't be used now may come back; nothing is lost by waiting for it."""
        now = self._clock.monotonic()
        if self._fruitless_since is None:
            self._fruitless_since = now
            self._say(f"{self._flow.name}: waiting: {why}")
        if now - self._fruitless_since > _PATIENCE_SECONDS:
            raise ClusterUnreachable(
                f"flow {self._flow.name}",
                rule=f"nothing could be copied for {_PATIENCE_SECONDS:.0f} s: {why}",
                remedy="nothing is lost: the next run goes on from what is committed",
            )
        self._clusters.disconnect()
        self._fruitless_rounds += 1
        self._pause(min(0.05 * 2**self._fruitless_rounds, _LONGEST_PAUSE_SECONDS))

    def _pause(self, seconds: float) -> None:
        self._clusters.network.run(lambda: self._clock.sleep(seconds))

    # the end

    def finish(self, on_report: Callable[[RunReport], None]) -> None:
        self.report.seconds = self._clock.monotonic() - self._began
        try:
            self._clusters.network.run(self._say_ended)
        except (*_PASSING, CausewayError) as trouble:
            # The word that this run ended is courtesy; without it the next run watches for silence.
            self._say(f"{self._flow.name}: couldn't sign off: {trouble}")
        finally:
            on_report(self.report)

    async def _say_ended(self) -> None:
        target = self._clusters.target
        await self._clusters.connect()
        if self.report.outcome == "interrupted":
            # What the workers left open would hold back readers until it times out: a claim aborts it.
            state = await check_turn(target, self._flow.name, self.generation)
            await claim_all_lanes(target, self._clock, self._flow, state)
        await sign_of_life(target, self._clock, self._flow.name, self.generation, ended=True)
