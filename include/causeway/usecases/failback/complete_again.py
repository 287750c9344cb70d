"""Complete a failback again after an earlier completion that was rolled back, or given up.

One that was rolled back has closed nothing: its groups are on the new primary again. So the failback is on
its way as it was before: the forward flow is closed, that is kept in the journal, and only then the reverse
flow is opened, so that never both are open. That is right as long as nothing was written at home since: what
was would have to be compared, which a failover and a failback do.

Killed anywhere and run again it goes on. Nothing is changed before an operator has agreed to the sheet.
"""

from __future__ import annotations

from dataclasses import dataclass

from causeway.core.episode.episodes import was_rolled_back
from causeway.core.failback.divergence import FailbackRun, Step
from causeway.core.failover.request import Mode
from causeway.core.journal.journal import Journal, Status
from causeway.core.kernel.errors import BadInput
from causeway.core.kernel.identity import Pair, TopicPartition
from causeway.core.state.flow_state import FlowState
from causeway.core.state.position import Position
from causeway.core.state.repair_commands import next_command
from causeway.usecases.failback.divergence import FailbackSession
from causeway.usecases.failback.journal_store import FlowPair, journal_of, told
from causeway.usecases.failover.refusals import being_taken_back
from causeway.usecases.journal.store import read_journal
from causeway.usecases.run_lock.command_fence import CommandFence
from causeway.usecases.run_lock.fence import claim_all_lanes, open_for
from causeway.usecases.run_lock.ownership import Terms, write_fence, write_lift
from causeway.usecases.run_lock.reverse_flow import ReverseFlowReader
from causeway.usecases.session.both_clusters import Clusters, run_at_both, state_on
from causeway.usecases.session.pair_positions import read_pair_positions
from causeway.usecases.session.source_may_be_gone import FlowSession, trouble_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """What earlier homecomings have left in the way of the next one."""

    run: FailbackRun
    is_taken_back: bool = False
    """The one that has closed the reverse flow was rolled back."""
    given_up: tuple[str, ...] = ()
    """Fences whose homecoming was given up, and killed before it lifted them: the words of each."""

    @property
    def is_home(self) -> bool:
        """No group is left to move."""
        return self.run.step is Step.HOME and not self.is_taken_back

    @property
    def is_nothing(self) -> bool:
        return not (self.is_taken_back or self.given_up)


async def read_earlier(pairing: FailbackSession, run: FailbackRun) -> Earlier:
    """:raises BadInput: one is being rolled back, or was, and something new was written at home since; or the
    failback was killed before it opened the way."""
    with trouble_of(pairing.reverse):
        return await _look(pairing, run)


async def _look(pairing: FailbackSession, run: FailbackRun) -> Earlier:
    state, journal = await _kept(pairing)
    newest = journal.newest(run.reverse)
    if newest is not None and newest.status is Status.ROLLING_BACK:
        raise being_taken_back(newest)
    is_parted = bool(run.facts.get("parted"))
    if is_parted and run.step is Step.RETURNING and state.fences_of(run.fence_words):
        raise BadInput(
            f"failback of {run.flow}",
            rule="hasn't opened the way back yet",
            remedy=f"{run} isn't finished: `causeway failback {run.flow} --{run.way}` goes on with it",
        )
    is_back = _is_taken_back(run, state, journal)
    if is_back:
        await _refuse_written_at_home(pairing, run, state)
    over = [each for each in journal.of_flow(run.reverse) if each.status is Status.GIVEN_UP]
    given_up = tuple(each.fence_words for each in over if state.fences_of(each.fence_words))
    return Earlier(run=run, is_taken_back=is_back, given_up=given_up)


async def _kept(pairing: FailbackSession) -> tuple[FlowState, Journal]:
    """What the reverse flow keeps on the old primary."""
    sides = FlowSession(pairing.clusters.network, pairing.old, None, "it isn't asked")
    name = pairing.reverse.name
    return await state_on(pairing.old, name), await read_journal(sides, name)


def _is_taken_back(run: FailbackRun, state: FlowState, journal: Journal) -> bool:
    """`state` and `journal` are the reverse flow's."""
    if run.step is Step.HOME:
        return was_rolled_back(run, journal)
    if run.step is not Step.RETURNING or not state.fences_of(run.stand_by_words):
        return False
    newest = journal.newest(run.reverse)
    if newest is None or newest.wish.mode is not Mode.HOME:
        return True
    return newest.status is Status.DONE and newest.is_overtaken(state)


def clear_the_way(ways: FlowPair, earlier: Earlier, by: str) -> None:
    """:raises BadInput: as `read_earlier`, or somebody else has gone on meanwhile; all is as it was."""

    async def clear(clusters: Clusters) -> None:
        with trouble_of(ways.reverse):
            await _clear(FailbackSession(ways.forward, ways.reverse, clusters), earlier, by)

    run_at_both(ways.new, ways.old, clear)


async def _clear(pairing: FailbackSession, earlier: Earlier, by: str) -> None:
    await _refuse_gone_on(pairing, earlier.run)
    run, lifts = earlier.run, list(earlier.given_up)
    if earlier.is_taken_back:
        own = None
        if run.facts.get("parted"):
            own = await _close_forward(pairing, run, by)
            lifts.append(run.stand_by_words)
        if run.step is Step.HOME:
            await told(pairing, run, Step.RETURNING)
        if own is not None:
            await own.prove(pairing.new)
    words = {"by": by, "because": f"on its way home again: {run.fence_words}"}
    for owner in lifts:
        await open_for(pairing.old, pairing.clusters.network, pairing.reverse, owner, **words)


async def _refuse_gone_on(pairing: FailbackSession, run: FailbackRun) -> None:
    """Two people at one question: the second would lead away again what the first has led home."""
    now = (await read_journal(journal_of(pairing), run.flow)).newest_failback(run.flow)
    if now != run:
        raise BadInput(
            str(now or run),
            rule="went on, or is over, since this one's sheet was read",
            remedy=f"{next_command(run.flow)} says what comes next",
        )


async def _close_forward(pairing: FailbackSession, run: FailbackRun, by: str) -> CommandFence:
    """With a fence of this try's own, so that who finds that it mustn't be closed opens it beside nobody who
    leads away. That may take long: only then it is asked whether somebody has gone on.

    :raises FlowHeld: somebody has opened it, for all is home.
    """
    forward, clock, terms = pairing.forward, pairing.clusters.network, Terms(owner=run.fence_words)
    raised = await write_fence(pairing.new, clock, forward, by=by, because=terms.owner, terms=terms)
    own = CommandFence(forward.name, terms.token, raised)
    await claim_all_lanes(pairing.new, clock, forward, await pairing.new.flow_state(forward.name))
    try:
        await _refuse_written_at_home(pairing, run, (await _kept(pairing))[0])
        await _refuse_gone_on(pairing, run)
    except BadInput:
        await _open_again(pairing, own, by)
        raise
    await own.check(pairing.new)
    return own


async def _open_again(pairing: FailbackSession, own: CommandFence, by: str) -> None:
    fence = (await pairing.new.flow_state(own.flow)).fences.get(own.token)
    if fence is not None:
        because = f"not closed by {fence.owner} after all"
        await write_lift(
            pairing.new, pairing.clusters.network, pairing.forward, fence, by=by, because=because
        )


async def _refuse_written_at_home(pairing: FailbackSession, run: FailbackRun, state: FlowState) -> None:
    if not run.facts.get("parted"):
        return  # each of the two flows writes topics of its own
    written = await _written_at_home(pairing, run, state)
    if written is None:
        return
    raise BadInput(
        f"failback {run.run} of {run.flow}",
        rule=f"was completed, and that was rolled back; {written} has new records since"
        + ("" if run.step is Step.RETURNING else ", so both clusters have to be compared again"),
        remedy=_lead_on(run) if run.step is Step.RETURNING else _compare(run),
    )


def _compare(run: FailbackRun) -> str:
    return (
        f"`causeway failover {run.flow} --at latest` or `--planned`, and then "
        f"`causeway failback {run.flow} --resume`, mirror back what was written"
    )


def _lead_on(run: FailbackRun) -> str:
    """The forward flow rests since its failover: there is none to begin with, and no other failback."""
    return (
        f'`causeway lift {run.reverse} --because "..."` lets {run.reverse} mirror on; its runs park '
        f"partitions that can't go on, each with the command that repairs it; then `{run.command}`"
    )


async def _written_at_home(
    pairing: FailbackSession, run: FailbackRun, state: FlowState
) -> TopicPartition | None:
    """A partition of the old primary with records that the reverse flow didn't write, since it was closed.

    What the forward flow has mirrored since may be gone there. As long as it rests it has mirrored nothing,
    whatever place it was given for the time after.
    """
    pairs = [
        Pair(
            source=TopicPartition(known.source_topic, number),
            target=TopicPartition(name, number),
            source_topic_id=known.source_topic_id,
            target_topic_id=known.target_topic_id,
        )
        for name, known in sorted(state.pairs.items())
        for number in range(known.partitions)
    ]
    at = [pair.target for pair in pairs]
    found = await read_pair_positions(pairing.reverse, pairing.old, state, at, stable=True, marked=True)
    rests = run.step is Step.RETURNING
    other = None if rests else await ReverseFlowReader(pairing.reverse, pairing.clusters).look()
    for pair in pairs:
        position = found[pair.target]
        if not isinstance(position, Position) or position.target_topic_id != pair.target_topic_id:
            continue
        is_mirrored = other is not None and position.source_next < other.end_of(pair)
        if is_mirrored or await _goes_on(pairing.clusters, pair.target, int(position.target_next)):
            return pair.target
    return None


async def _goes_on(clusters: Clusters, at: TopicPartition, reached: int) -> bool:
    """Whether a reader finds anything there; markers of transactions are nothing."""
    async for _ in clusters.target.records(at, reached, await clusters.target.end_of(at)):
        return True
    return False
