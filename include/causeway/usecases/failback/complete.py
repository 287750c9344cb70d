"""Complete a failback: a planned failover of the reverse flow, and then the forward flow goes on.

Writers have stopped on the new primary. What is left is mirrored to the old one, groups go to the very record
that they would have read next; the reverse flow stays fenced, and the forward flow adopts where the reverse
flow's last record ends. Killed anywhere and run again it goes on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from causeway.core.failback.divergence import FailbackMode, FailbackRun, Step
from causeway.core.failover.impact_sheet import Sheet
from causeway.core.failover.request import FailoverRequest, Mode
from causeway.core.journal.journal import fence_words
from causeway.core.kernel.errors import BadInput
from causeway.core.kernel.identity import Pair, TopicPartition
from causeway.core.model.flow import Flow
from causeway.core.model.group_filter import FlowGroups
from causeway.core.permissions.failover import closing_rights, journal_rights
from causeway.core.state.flow_state import FlowState
from causeway.core.state.position import Position
from causeway.core.state.repair_commands import not_yet, reconcile_remedy
from causeway.usecases.failback.adopt_all import adopt_all, hand_over
from causeway.usecases.failback.complete_again import Earlier, clear_the_way, read_earlier
from causeway.usecases.failback.divergence import FailbackSession
from causeway.usecases.failback.journal_store import (
    FlowPair,
    newest_failback_on,
    opened_back,
    still_mirrors,
    told,
)
from causeway.usecases.failback.kept_offsets import keep_left_offsets
from causeway.usecases.failback.rebuild import empty_again
from causeway.usecases.failover import execute
from causeway.usecases.failover.execute import FailedOver
from causeway.usecases.failover.refusals import known_run
from causeway.usecases.repair.set_positions import NewPosition, Reason, at_work, target_ends
from causeway.usecases.run_lock.fence import close_for, open_for
from causeway.usecases.run_lock.missing_rights import refuse_without
from causeway.usecases.session.both_clusters import Clusters, run_at_both, state_on
from causeway.usecases.session.pair_positions import read_pair_positions
from causeway.usecases.session.source_may_be_gone import (
    FlowSession,
    noted_if_interrupted,
    run_in_target_session,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedFailback:
    run: FailbackRun
    moved: FailedOver | None
    """None: all was home already."""
    not_yet: tuple[str, ...] = ()
    """Flows that could go on now if no fence of people stopped them: whose, since when, what lifts it."""


def completion_request(reverse: Flow) -> FailoverRequest:
    return FailoverRequest(flow=reverse.name, at_ms=None, mode=Mode.HOME)


class NothingToMoveError(BadInput):
    """Whoever only looks has nothing to look at, and whoever acts has nothing to do: that is no mistake."""

    def __init__(self, run: FailbackRun) -> None:
        super().__init__(
            f"failback {run.run} of {run.flow}", rule="is completed: no group is left to move", remedy=""
        )


def preview_completion(ways: FlowPair, selection: FlowGroups, *, for_real: bool = False) -> Sheet:
    """The sheet alone. Nothing is written. `for_real`: its rights are asked for, too.

    :raises NothingToMoveError: all is home.
    :raises BadInput: no failback has opened the way, or it can't be gone again.
    """

    async def look(sides: FlowSession) -> Earlier:
        run = await _on_its_way(ways, sides)
        async with opened_back(ways, sides) as pairing:
            return await read_earlier(pairing, run)

    earlier = run_in_target_session(ways.new, look)
    if not for_real and earlier.is_home:
        raise NothingToMoveError(earlier.run)
    reverse, wish = ways.reverse, completion_request(ways.reverse)
    return execute.preview_failover(
        reverse, ways.new, ways.old, wish, selection, home_of=ways.forward, for_real=for_real
    )


def complete_failback(ways: FlowPair, selection: FlowGroups, operator: execute.Operator) -> CompletedFailback:
    """`selection` is the reverse flow's.

    :raises BadInput: no failback has opened the way, or somebody still writes; names who.
    """
    goes_on = execute.way_home(ways.forward)
    is_home = f"groups and positions of {ways.forward.name} are home; the same command does the rest"
    earlier = run_in_target_session(ways.new, lambda sides: _prepare_move(ways, sides, operator))
    run = earlier.run
    if earlier.is_home:
        home = CompletedFailback(run=run, moved=None)
        with noted_if_interrupted(goes_on, after=is_home):
            return run_at_both(ways.old, ways.new, lambda at: _let_go_on(ways, at, home, operator))

    def consent(sheet: Sheet) -> None:
        operator.consent(sheet)
        if not earlier.is_nothing:
            with noted_if_interrupted(goes_on):
                clear_the_way(ways, earlier, operator.by)
                operator.say(f"{ways.forward.name}: on its way home again; {ways.reverse.name} leads")

    forward, reverse = ways.forward, ways.reverse
    moved = execute.fail_over(
        reverse,
        ways.new,
        ways.old,
        completion_request(reverse),
        selection,
        replace(operator, consent=consent),
        home_of=forward,
        before_moving=lambda sides, moving: keep_left_offsets(forward, reverse, run, sides, moving),
    )
    with noted_if_interrupted(goes_on, after=is_home):
        return run_at_both(ways.old, ways.new, lambda at: _let_forward_go_on(ways, at, run, operator, moved))


async def _prepare_move(ways: FlowPair, sides: FlowSession, operator: execute.Operator) -> Earlier:
    """:raises BadInput: no failback has opened the way. | :raises NotAuthorized: a right is missing."""
    run = await _on_its_way(ways, sides)
    async with opened_back(ways, sides) as pairing:
        earlier = await read_earlier(pairing, run)
        if earlier.is_home:
            return earlier
        await _refuse_without_rights(ways, sides)
        if run.way is FailbackMode.REBUILD and not earlier.is_taken_back:
            with noted_if_interrupted(execute.way_home(ways.forward)):
                await _leave_nothing_that_came_back(ways, pairing.clusters, run, operator)
    return earlier


async def _let_forward_go_on(
    ways: FlowPair, clusters: Clusters, run: FailbackRun, operator: execute.Operator, moved: FailedOver
) -> CompletedFailback:
    """Groups are home. The reverse flow stands by, and the forward flow begins after what came back.

    `clusters` are the forward flow's.
    """
    parted = bool(run.facts.get("parted"))
    if parted:
        await _let_reverse_stand_by(ways, clusters, run, operator.by)

    async def go_on(_: Clusters, state: FlowState) -> FailbackRun:
        if parted:
            await _adopt(ways, clusters, state, run, operator)
        # The forward flow's clusters are the pairing's, seen from the other side.
        there = FlowSession(clusters.network, clusters.at_source, None)
        await known_run(ways.reverse, there, moved.run)  # or it was rolled back
        return await _record_home(ways, clusters, run, moved.run)

    back = await at_work(ways.forward, clusters, _what(ways), go_on)
    return await _let_go_on(ways, clusters, CompletedFailback(run=back, moved=moved), operator)


def _what(ways: FlowPair) -> str:
    return f"homecoming of {ways.forward.name}"


async def _on_its_way(ways: FlowPair, sides: FlowSession) -> FailbackRun:
    flow = ways.forward.name
    found, is_fenced = await newest_failback_on(sides, ways.forward)
    if found is None and not is_fenced:
        raise still_mirrors(ways.forward)
    if found is None or found.is_given_up:
        first = f"`causeway failback {flow} --resume` or `--rebuild` comes first"
    elif found.step in (Step.BEGUN, Step.EXPORTED):
        first = f"{found} isn't finished: `causeway failback {flow} --{found.way}` goes on with it"
    else:
        return found
    raise BadInput(f"failback of {flow}", rule="hasn't opened the way back yet", remedy=first)


async def _refuse_without_rights(ways: FlowPair, sides: FlowSession) -> None:
    """To what comes after the groups' move, at the other end of it.

    :raises NotAuthorized: the first that is missing, with its grant.
    """
    needed = (*closing_rights(ways.forward), *journal_rights())
    await refuse_without(needed, {"target": sides.target.wire})


async def _leave_nothing_that_came_back(
    ways: FlowPair, back: Clusters, run: FailbackRun, operator: execute.Operator
) -> None:
    """`back` are the reverse flow's."""

    async def empty(clusters: Clusters, _: FlowState) -> None:
        await empty_again(ways, clusters, run, operator.say)

    await at_work(ways.reverse, back, _what(ways), empty)


async def _let_reverse_stand_by(ways: FlowPair, clusters: Clusters, run: FailbackRun, by: str) -> None:
    """In place of the failover's fence: taking the move of the groups back doesn't open it beside the forward
    flow."""

    async def close(back: Clusters, _: FlowState) -> None:
        owner = run.stand_by_words
        await close_for(back.target, back.network, ways.reverse, owner, by=by, takes_over=True)

    await at_work(ways.reverse, clusters.turned, _what(ways), close)


async def _adopt(
    ways: FlowPair, clusters: Clusters, state: FlowState, run: FailbackRun, operator: execute.Operator
) -> None:
    target, clock, owner = clusters.target, clusters.network, run.fence_words
    own = await close_for(target, clock, ways.forward, owner, by=operator.by)
    beginnings = await _beginnings(ways, clusters, state)
    reason = Reason(by=operator.by, because=run.fence_words)
    generation, _ = await adopt_all(ways.forward, clusters, ways.new, state, beginnings, reason)
    pairs = [each.pair for each in beginnings]
    there = (ways.reverse, clusters.at_source, ways.forward, clusters.target)
    runs = await hand_over(*there, pairs, generation, own)
    operator.say(
        f"{ways.forward.name}: goes on after what was mirrored back; its offset map got {runs:,} runs"
    )


async def _beginnings(ways: FlowPair, clusters: Clusters, state: FlowState) -> list[NewPosition]:
    """Of all that the reverse flow wrote: where its last record ends."""
    reverse = await state_on(clusters.at_source, ways.reverse.name)
    pairs: list[Pair] = [
        Pair(
            source=TopicPartition(name, number),
            target=TopicPartition(known.source_topic, number),
            source_topic_id=known.target_topic_id,
            target_topic_id=known.source_topic_id,
        )
        for name, known in sorted(reverse.pairs.items())
        if known.source_topic in state.pairs
        for number in range(known.partitions)
    ]
    positions = await read_pair_positions(
        ways.reverse,
        clusters.at_source,
        reverse,
        [pair.source for pair in pairs],
        stable=True,
        marked=True,
    )
    found: list[tuple[Pair, Position]] = []
    for pair in pairs:
        position = positions[pair.source]
        if position is None:
            raise _unknown(ways, pair)
        if isinstance(position, Position) and position.target_topic_id == pair.source_topic_id:
            found.append((pair, position))
    ends = await target_ends(clusters, [pair for pair, _ in found])
    return [
        NewPosition(
            pair=pair,
            source_next=int(position.target_next),
            source_epoch=position.target_epoch,
            target_end=ends[pair.target],
        )
        for pair, position in found
    ]


def _unknown(ways: FlowPair, pair: Pair) -> BadInput:
    reverse = ways.reverse.name
    return BadInput(
        f"how far {reverse} has written {pair.source}",
        rule="isn't known: it has no position there, and neither its offset map nor its state has one",
        remedy=reconcile_remedy(reverse, pair.target),
    )


async def _record_home(ways: FlowPair, clusters: Clusters, run: FailbackRun, moved: str) -> FailbackRun:
    pairing = FailbackSession(ways.forward, ways.reverse, clusters.turned)
    return await told(pairing, run, Step.HOME, moved=moved)


async def _let_go_on(
    ways: FlowPair, clusters: Clusters, home: CompletedFailback, operator: execute.Operator
) -> CompletedFailback:
    """The forward flow; with prefixes the reverse flow, too. `clusters` are the forward flow's."""
    states = {ways.forward.name: await _open_forward(ways, clusters, home.run, operator)}
    if not home.run.facts.get("parted"):
        moved = str(home.run.facts.get("moved"))
        states[ways.reverse.name] = await _lift_reverse(ways, clusters, moved, operator.by)
    shut = {name: state for name, state in states.items() if state.fence is not None}
    return replace(home, not_yet=tuple(not_yet(name, state.standing) for name, state in shut.items()))


async def _open_forward(
    ways: FlowPair, clusters: Clusters, run: FailbackRun, operator: execute.Operator
) -> FlowState:
    async def lift(at: Clusters, _: FlowState) -> FlowState:
        words = {"by": operator.by, "because": f"home again: {run.fence_words}"}
        return await open_for(at.target, at.network, ways.forward, run.fence_words, **words)

    return await at_work(ways.forward, clusters, _what(ways), lift)


async def _lift_reverse(ways: FlowPair, clusters: Clusters, failover: str, by: str) -> FlowState:
    """With prefixes it writes no topic that anybody else writes: it just goes on."""

    async def lift(back: Clusters, _: FlowState) -> FlowState:
        owner = fence_words(failover)
        words = {"by": by, "because": f"home again: {owner}"}
        return await open_for(back.target, back.network, ways.reverse, owner, **words)

    return await at_work(ways.reverse, clusters.turned, _what(ways), lift)
