"""A run of a flow: take the turn, then rounds of plan, carry, report, until it is time to end.

What a run knows of its own success is what is committed on the target, read back at the end; rows of
lanes are for progress and counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from causeway.core.counting import counted
from causeway.core.endpoint import ClusterEndpoint
from causeway.core.errors import CausewayError, ClusterUnreachable, FlowFenced, Superseded
from causeway.core.flow import Flow
from causeway.core.flow_state import FlowState, KnownPair, pair_record
from causeway.core.identity import Generation
from causeway.core.instants import rfc3339
from causeway.core.lane_task import LaneResult, LaneTask, LastOwner
from causeway.core.naming import FLOWS_TOPIC
from causeway.core.ports import Beaten, Doubt, Unreachable
from causeway.core.progress import Progress
from causeway.core.report import RunOutcome, RunReport
from causeway.core.round_plan import RoundPlan, last_owners_after, with_last_owners
from causeway.core.topics import RefusedTopic
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
from causeway.flows.planning import Landscape, pairs_to_remember, plan_round, survey_topics
from causeway.flows.rights import check_own_rights
from causeway.flows.stocktaking import take_stock
from causeway.flows.target_demands import TargetDemands
from causeway.flows.topics import prepare_topics

Carry = Callable[[Sequence[LaneTask]], list[LaneResult]]
"""Runs each task somewhere and brings all results back; raises only if it can't run any."""

FOLLOWING_TRANSACTION_SECONDS = 0.5
_PASSING = (Unreachable, Doubt, Beaten, ClusterUnreachable)
_IDLE_SECONDS = 0.2
_REFUSED_AGAIN_SECONDS = 30.0
_PATIENCE_SECONDS = 90.0
_LONGEST_PAUSE_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    holder: Holder
    run_for_seconds: float | None
    """None: until caught up."""
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
            run.begin(_may_begin(flow, clusters))
        except (Unreachable, Doubt, Beaten) as trouble:
            raise ClusterUnreachable(
                f"flow {flow.name}", rule=f"can't begin: {trouble}", remedy="run it again"
            ) from trouble
        with LifeSigns(target, flow.name, run.generation) as signs:
            try:
                run.go_on_until_the_end()
            except CausewayError as error:
                run.report.outcome, run.report.why = _ending(error), str(error)
                raise
            except KeyboardInterrupt:
                run.report.outcome, run.report.why = "interrupted", "by a signal"
                raise
            finally:
                signs.stop()
                run.finish(on_report)
    return run.report


def _ending(error: CausewayError) -> RunOutcome:
    match error:
        case FlowFenced():
            return "fenced"
        case Superseded():
            return "superseded"
        case _:
            return "failed"


def _may_begin(flow: Flow, clusters: Clusters) -> FlowState:
    """Everything that can refuse a run does so before anything is written."""
    refuse_one_cluster(flow, clusters)
    state = clusters.network.run(lambda: clusters.flow_state(flow))
    refuse_other_clusters(flow, clusters, state)
    refuse_fenced(flow.name, state)
    clusters.network.run(OtherDirection(flow, clusters).look_and_hold)
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
        self._source_admin, self._target_admin = admins(source, target)
        self._clock, self._say = clusters.network, say
        self._began = self._clock.monotonic()
        self._landscape: Landscape | None = None
        self._remembered: dict[str, KnownPair] = {}
        self._parked = ParkedOfRun(flow.name, self._clock, say)
        self._other_direction = OtherDirection(flow, clusters)
        self._held_back = HeldBackWatch(clusters.source, self._clock, say)
        self._demands = TargetDemands(flow, self._target_admin, self._clock, say)
        self._last_owners: dict[int, LastOwner] = {}
        self._refused_until: dict[str, tuple[RefusedTopic, float]] = {}
        self._progress = Progress(flow.name, options.run_for_seconds)
        self._fruitless_since: float | None = None
        self._fruitless_rounds = 0
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
        )

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
            try:
                outcome = self._go_one_round()
            except _PASSING as trouble:
                self._be_patient(str(trouble))
        self.report.outcome = outcome

    def _go_one_round(self) -> RunOutcome | None:
        plan = self._plan()
        outcome = self._is_over(plan)
        self._clusters.network.run(
            lambda: self._held_back.look(plan, self.report, is_last=outcome is not None)
        )
        if outcome is not None:
            return outcome
        if plan.tasks:
            self._carry_round(plan)
        elif plan.later and self._options.run_for_seconds is None:
            self._be_patient(next(iter(plan.later.values())))
        else:
            self._fruitless_since, self._fruitless_rounds = (
                None,
                0,
            )  # both clusters answer: that is all there is
            self._pause(_IDLE_SECONDS)
        return None

    def _is_over(self, plan: RoundPlan) -> RunOutcome | None:
        run_for = self._options.run_for_seconds
        if run_for is None:
            return None if plan.tasks or plan.later else "caught up"
        return "time over" if self._clock.monotonic() - self._began >= run_for else None

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
        landscape = (await survey_topics(flow, source, target, state, other)).after_refusals(self._not_made())
        if landscape.topics.to_create or landscape.topics.to_grow:
            self._prepare_topics(landscape, state)
            landscape = await survey_topics(flow, source, target, state, other)
            landscape = landscape.after_refusals(self._not_made())
        self._note_refusals(landscape)
        self._landscape = landscape
        known, waiting = self._remembered, self._parked.waiting()
        plan = await plan_round(flow, self.generation, source, target, landscape, known, waiting)
        return with_last_owners(self._demands.told_to(plan), self._last_owners)

    def _prepare_topics(self, landscape: Landscape, state: FlowState) -> None:
        done = prepare_topics(
            self._flow,
            self._source_admin,
            self._target_admin,
            frozenset(state.pairs),
            leave_alone={each.topic for each in landscape.topics.refused},
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

    def _note_refusals(self, landscape: Landscape) -> None:
        refused = [
            {"topic": r.topic, "reason": r.reason, "remedy": r.remedy} for r in landscape.topics.refused
        ]
        for item in refused:
            if item not in self.report.refused_topics:
                self._say(
                    f"{self._flow.name}: left alone {item['topic']}: {item['reason']}; {item['remedy']}"
                )
        for note in landscape.topics.notes:
            if note not in self.report.notes:
                self._say(f"{self._flow.name}: {note}")
        self.report.refused_topics = refused
        self.report.notes = list(landscape.topics.notes)

    async def _remember_pairs(self) -> None:
        """Said before the first record: a target topic that goes away is then known to have been ours."""
        assert self._landscape is not None
        for name, pair in pairs_to_remember(self._flow, self._landscape, self._remembered).items():
            key, value = pair_record(self._flow.name, name, pair)
            await self._clusters.target.append_plain(FLOWS_TOPIC, key, value)
            self._remembered[name] = pair

    def _carry_round(self, plan: RoundPlan) -> None:
        self._clusters.network.run(self._remember_pairs)
        results = self._carry(plan.tasks)
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
        line = self._progress.line(self._clock.monotonic() - self._began, lag)
        if line:
            self._say(line)
        self._judge_progress(results)

    def _judge_progress(self, results: list[LaneResult]) -> None:
        troubles = [r.why for r in results if r.why]
        troubles += [row.later for r in results for row in r.rows if row.later]
        if any(r.transactions for r in results) or not troubles:
            self._fruitless_since, self._fruitless_rounds = None, 0
            return
        self._be_patient(troubles[0])

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
