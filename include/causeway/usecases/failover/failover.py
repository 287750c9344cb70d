"""The six steps of a failover. Each may be the last one before a kill; each can be made again, in any try.

The command line makes them one after the other in one session (`execute.py`). A scheduler makes each in a
session of its own, hours apart, and hands on only the run's name.

The order is the promise. Offsets from before are kept ahead of everything else; the fence stands before
the plan is made once more and compared; only then is a group moved, and only if it stands where the
snapshot says; then one more look finds what slipped in (`move_groups.py`). How far a run came is read from
what is committed, and whether its plan held from the journal: after the first move a plan can't be compared
any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import uuid4

from causeway.brokers.wire.consumer_groups import ConsumerGroups
from causeway.core.episode.episodes import is_closed, is_left_behind
from causeway.core.failover.plan import FailoverPlan
from causeway.core.failover.request import FailoverRequest
from causeway.core.journal.journal import FailoverRun, Journal, Status
from causeway.core.journal.offset_records import offset_records
from causeway.core.journal.rollback_records import failover_asked
from causeway.core.journal.written_records import agreed_record, begun_record, ended_record
from causeway.core.kernel.errors import FlowHeld, UnknownName
from causeway.core.model.flow import Flow
from causeway.core.model.group_filter import FlowGroups
from causeway.usecases.failover.build_plan import make_sheet
from causeway.usecases.failover.copy_remaining import left_behind
from causeway.usecases.failover.move_groups import Moved, move_for_good
from causeway.usecases.failover.refusals import (
    being_taken_back,
    known_in,
    known_run,
    not_fenced,
    refuse_overtaken,
    stale_plan,
    unfinished,
)
from causeway.usecases.failover.verify import Verified, verify_run
from causeway.usecases.journal.store import create_journal, proved_journal, read_journal, write_journal
from causeway.usecases.run_lock.fence import close_for, open_for
from causeway.usecases.run_lock.write_proof import AskedProof, outlive_others, proved_state
from causeway.usecases.session.both_clusters import state_on
from causeway.usecases.session.source_may_be_gone import FlowSession


@dataclass(frozen=True, slots=True)
class Failover:
    """A step that gets only a run's name first reads that run from the journal, and refuses one that isn't
    there (UnknownName), or that was given up or taken back (BadInput).
    """

    flow: Flow
    sides: FlowSession
    selection: FlowGroups
    by: str

    async def find_earlier(self, wish: FailoverRequest) -> FailoverRun | None:
        """The run that this wish means to go on with, or that has done it all.

        :raises BadInput: another one has begun and isn't over, or the last one is being taken back.
        """
        journal = await read_journal(self.sides, self.flow.name)
        newest = journal.newest(self.flow.name)
        if newest is None:
            return None
        if newest.status is Status.ROLLING_BACK:
            if is_left_behind(newest, await state_on(self.sides.target, self.flow.name), journal):
                return None
            raise being_taken_back(newest)
        if newest.wish.key == wish.key:
            return await self._gone_on_with(newest, journal)
        if newest.status is Status.BEGUN:
            raise unfinished(newest, "with other parameters and")
        return None

    async def take_snapshot(self, plan: FailoverPlan) -> FailoverRun:
        """Keep the offsets of its groups. From here on the run has begun, and can be rolled back.

        :raises BadInput: somebody else's began while this one's sheet was read; nothing was moved.
        """
        flow, sides, run = self.flow, self.sides, uuid4().hex[:12]
        await create_journal(flow, sides)
        await write_journal(sides, offset_records(flow.name, run, plan.moves))
        await write_journal(sides, [begun_record(run, plan, by=self.by, at_ms=sides.network.time_ms())])
        await self._give_way(await read_journal(sides, flow.name), run, self.by, "a moment ago and")
        return await known_run(flow, sides, run)

    async def raise_fence(self, run: FailoverRun | str) -> None:
        """A fence of its own, beside whatever stands: people's, or a command's that goes away with it.

        :raises BadInput: it broke off while it moved groups, and the mirror has gone on since.
        """
        known = await self._known(run)
        if known.status is not Status.BEGUN:
            return
        refuse_overtaken(known, await self.sides.target.flow_state(self.flow.name))
        try:
            await close_for(self.sides.target, self.sides.network, self.flow, known.fence_words, by=self.by)
        except FlowHeld as fell:
            raise stale_plan(self.flow, f"{fell.what}, {fell.rule}", known.wish) from fell
        await self._open_if_over(known)

    async def move_groups(self, run: FailoverRun | str) -> Moved:
        """:raises StalePlan: something moved between sheet and fence; the run is given up, and its own fence
        lifted.
        :raises BadInput: a consumer began on the target just now; once it has stopped, the run goes on.
        """
        flow, sides, known = self.flow, self.sides, await self._known(run)
        if known.status is Status.DONE:
            return Moved()
        state = await sides.target.flow_state(flow.name)
        if not state.fences_of(known.fence_words):
            raise not_fenced(known)
        refuse_overtaken(known, state)
        if not known.is_agreed:
            await outlive_others(sides.network)  # who asked before the fence stood has committed by then
            await self._compare_plans(known)
        agreed = await known_run(flow, sides, known.run)

        async def refuse_any_more() -> None:
            now = await proved_state(sides.target, flow.name, "failover")
            await self._refuse_over(agreed)
            if not now.fences_of(known.fence_words) or now.run != state.run:
                raise not_fenced(known)

        return await move_for_good(flow, sides, known, self.by, AskedProof(sides.network, refuse_any_more))

    async def verify(self, run: FailoverRun | str) -> Verified:
        groups = ConsumerGroups(self.sides.target.wire)
        return await verify_run(await self._known(run), self.sides, groups)

    async def record(self, run: FailoverRun | str, facts: Mapping[str, object]) -> FailoverRun:
        """That it is done. :returns: the run as the journal has it from now on.

        :raises BadInput: somebody has taken it back, or begun to, at the latest while this was written.
        """
        known = await self._known(run)
        if known.status is Status.BEGUN:
            await self._refuse_over(await known_run(self.flow, self.sides, known.run))
            await self._write_end(known.run, Status.DONE, self.by, facts)
            await known_run(self.flow, self.sides, known.run)
        return await known_run(self.flow, self.sides, known.run)

    async def _known(self, run: FailoverRun | str) -> FailoverRun:
        return run if isinstance(run, FailoverRun) else await known_run(self.flow, self.sides, run)

    async def _gone_on_with(self, newest: FailoverRun, journal: Journal) -> FailoverRun | None:
        """None: it is over, and this is another failover."""
        if newest.status is Status.BEGUN and not newest.is_agreed:
            await self._give_way(journal, newest.run, newest.by, "and")
        state = await self.sides.flow_state(self.flow)
        if newest.status is Status.BEGUN:
            return newest
        # Where the mirror went on meanwhile, or the failback is completed, that failover is history, and this
        # is another one, whoever has fenced the flow since.
        is_history = newest.is_overtaken(state) or is_closed(newest, state, journal)
        return newest if state.fence is not None and not is_history else None

    async def _give_way(self, journal: Journal, run: str, by: str, how: str) -> None:
        """To one that began before it and isn't over. A try that died before it recorded so, records so now.

        :raises BadInput: there is one; this run is given up, and has moved nothing.
        """
        state = await state_on(self.sides.target, self.flow.name)
        rivals = [each for each in journal.rivals_of(run) if not is_left_behind(each, state, journal)]
        if rivals:
            await self._write_end(run, Status.GIVEN_UP, by)
            raise unfinished(rivals[0], how)

    async def _open_if_over(self, run: FailoverRun) -> None:
        """A try that slept before the fence may have raised it after another one was done with the run. As
        long as it is being rolled back the fence is the rollback's, which lifts it last.
        """
        known = (await read_journal(self.sides, self.flow.name)).runs.get(run.run)
        if known is not None and known.status in (Status.ROLLED_BACK, Status.GIVEN_UP):
            await self._lift(run, f"{run.fence_words} was {known.status}")
            await known_run(self.flow, self.sides, run.run)

    async def _refuse_over(self, run: FailoverRun) -> None:
        """By proof, once it may move groups. :raises BadInput: somebody has taken it back, or begun to."""
        if run.is_agreed:
            asked = failover_asked(run)
            known_in(await proved_journal(self.sides, self.flow.name, asked), self.flow, run.run)

    async def _compare_plans(self, run: FailoverRun) -> None:
        flow, sides = self.flow, self.sides
        try:
            again = await make_sheet(flow, sides, run.wish, self.selection, is_fenced=True, is_priced=False)
        except UnknownName as gone:
            return await self._give_up(run, f"moves {gone.what} that are gone: {gone.value}")
        if again.plan.hash != run.plan_hash:
            silent = f"; {flow.source} can't be asked now" if sides.silent else ""
            rule = f"was {run.plan_hash} on the sheet and {again.plan.hash} after the fence{silent}"
            return await self._give_up(run, rule)
        if behind := await left_behind(flow, sides) if run.wish.is_planned else ():
            rule = f"has {len(behind)} partitions that were written to since: {behind[0]}"
            return await self._give_up(run, rule)
        generation, at_ms = (await sides.target.flow_state(flow.name)).generation, sides.network.time_ms()
        agreed = agreed_record(flow.name, run.run, by=self.by, at_ms=at_ms, generation=generation)
        # Somebody who carries out the same run may have given it up, or somebody begun to take it back.
        known_in(await proved_journal(sides, flow.name, agreed), flow, run.run)
        return None

    async def _give_up(self, run: FailoverRun, rule: str) -> None:
        """Nothing was moved; only the run's own fence is lifted. Unless somebody who carries out the same run
        found that the plan held, a moment before: then it isn't given up.

        :raises StalePlan: it was.
        """
        await self._write_end(run.run, Status.GIVEN_UP, self.by)
        if (await read_journal(self.sides, self.flow.name)).runs[run.run].status is not Status.GIVEN_UP:
            await known_run(self.flow, self.sides, run.run)
            return
        await self._lift(run, run.fence_words)
        raise stale_plan(self.flow, rule, run.wish)

    async def _lift(self, run: FailoverRun, because: str) -> None:
        """Its own fence."""
        words = {"by": self.by, "because": because}
        await open_for(self.sides.target, self.sides.network, self.flow, run.fence_words, **words)

    async def _write_end(
        self, run: str, status: Status, by: str, facts: Mapping[str, object] | None = None
    ) -> None:
        sides, flow = self.sides, self.flow.name
        generation, at_ms = (await sides.target.flow_state(flow)).generation, sides.network.time_ms()
        ended = ended_record(flow, run, status, by=by, at_ms=at_ms, generation=generation, facts=facts)
        await write_journal(sides, [ended])
