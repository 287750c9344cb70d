"""Come home: a planned failover of the reverse flow, and then the forward flow goes on.

Writers have stopped on the new primary. What is left is mirrored to the old one, groups go to the very record
that they would have read next; the reverse flow stays fenced, and the forward flow adopts where the reverse
flow's last record ends. Killed anywhere and run again it goes on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from causeway.core.errors import BadInput
from causeway.core.failback.plan import FailbackRun, Step, Way
from causeway.core.failover.journal import fence_words
from causeway.core.failover.rights import closing_rights, journal_rights
from causeway.core.failover.sheet import Sheet
from causeway.core.failover.wish import Mode, Wish
from causeway.core.flow import Flow
from causeway.core.flow_state import FlowState
from causeway.core.group_filter import FlowGroups
from causeway.core.identity import Pair, TopicPartition
from causeway.core.position import Position
from causeway.core.remedies import next_command, not_yet, reconcile_remedy
from causeway.flows.by_hand import Beginning, Reason, at_both_clusters, target_ends
from causeway.flows.clusters import Clusters, open_target, state_on
from causeway.flows.failback.adoption import adopt_all, hand_over
from causeway.flows.failback.again import clear_the_way, look_at_earlier
from causeway.flows.failback.leaving import keep_what_they_leave
from causeway.flows.failback.logbook import Ways, newest_failback, still_mirrors, told
from causeway.flows.failback.parting import Pairing
from causeway.flows.failback.rebuild import empty_again
from causeway.flows.failover import apply
from causeway.flows.failover.apply import FailedOver
from causeway.flows.failover.sides import Sides, told_if_interrupted
from causeway.flows.failover.steps import known_run
from causeway.flows.fence import close_for, open_for
from causeway.flows.lacking import refuse_without
from causeway.flows.standing import where_they_stand


@dataclass(frozen=True, slots=True, kw_only=True)
class CameHome:
    run: FailbackRun
    moved: FailedOver | None
    """None: all was home already."""
    not_yet: tuple[str, ...] = ()
    """Flows that could go on now if no fence of people stopped them: whose, since when, what lifts it."""


def home_wish(reverse: Flow) -> Wish:
    return Wish(flow=reverse.name, at_ms=None, mode=Mode.HOME)


def look_before_homecoming(ways: Ways, selection: FlowGroups, *, for_real: bool = False) -> Sheet:
    """The sheet alone. Nothing is written. `for_real`: its rights are asked for, too.

    :raises BadInput: no failback has opened the way, or it can't be gone again, or nothing is left to do.
    """
    run = _on_its_way(ways)
    earlier = look_at_earlier(ways, run)
    if not for_real and earlier.is_home:
        raise BadInput(
            f"failback {run.run} of {run.flow}",
            rule="has come home already: no group is left to move",
            remedy=f"{next_command(run.flow)} says where the flow is",
        )
    reverse, wish = ways.reverse, home_wish(ways.reverse)
    return apply.look_before_failover(
        reverse, ways.new, ways.old, wish, selection, home_of=ways.forward, for_real=for_real
    )


def come_home(ways: Ways, selection: FlowGroups, operator: apply.Operator) -> CameHome:
    """`selection` is the reverse flow's.

    :raises BadInput: no failback has opened the way, or somebody still writes; names who.
    """
    run = _on_its_way(ways)
    goes_on = apply.way_home(ways.forward)
    is_home = f"groups and positions of {ways.forward.name} are home; the same command does the rest"
    earlier = look_at_earlier(ways, run)
    if earlier.is_home:
        with told_if_interrupted(goes_on, after=is_home):
            return _let_go_on(ways, CameHome(run=run, moved=None), operator)
    _refuse_without_rights(ways)
    if run.way is Way.REBUILD and not earlier.is_taken_back:
        with told_if_interrupted(goes_on):
            _leave_nothing_that_came_back(ways, run, operator)

    def consent(sheet: Sheet) -> None:
        operator.consent(sheet)
        if not earlier.is_nothing:
            with told_if_interrupted(goes_on):
                clear_the_way(ways, earlier, operator.by)
                operator.say(f"{ways.forward.name}: on its way home again; {ways.reverse.name} leads")

    forward, reverse = ways.forward, ways.reverse
    moved = apply.fail_over(
        reverse,
        ways.new,
        ways.old,
        home_wish(reverse),
        selection,
        replace(operator, consent=consent),
        home_of=forward,
        before_moving=lambda sides, moving: keep_what_they_leave(forward, reverse, run, sides, moving),
    )
    with told_if_interrupted(goes_on, after=is_home):
        return _let_forward_go_on(ways, run, operator, moved)


def _let_forward_go_on(ways: Ways, run: FailbackRun, operator: apply.Operator, moved: FailedOver) -> CameHome:
    """Groups are home. The reverse flow stands by, and the forward flow begins after what came back."""
    parted = bool(run.facts.get("parted"))
    if parted:
        _let_reverse_stand_by(ways, run, operator.by)
    with at_both_clusters(ways.forward, ways.old, ways.new, _what(ways)) as (clusters, state):
        if parted:
            _adopt(ways, clusters, state, run, operator)
        # The forward flow's clusters are the pairing's, seen from the other side.
        there = Sides(clusters.network, clusters.at_source, None)
        clusters.network.run(lambda: known_run(ways.reverse, there, moved.run))  # or it was rolled back
        back = clusters.network.run(lambda: _record_home(ways, clusters, run, moved.run))
    return _let_go_on(ways, CameHome(run=back, moved=moved), operator)


def _what(ways: Ways) -> str:
    return f"homecoming of {ways.forward.name}"


def _on_its_way(ways: Ways) -> FailbackRun:
    flow = ways.forward.name
    found, is_fenced = newest_failback(ways)
    if found is None and not is_fenced:
        raise still_mirrors(ways.forward)
    if found is None or found.is_given_up:
        first = f"`causeway failback {flow} --resume` or `--rebuild` comes first"
    elif found.step in (Step.BEGUN, Step.EXPORTED):
        first = f"{found} isn't finished: `causeway failback {flow} --{found.way}` goes on with it"
    else:
        return found
    raise BadInput(f"failback of {flow}", rule="hasn't opened the way back yet", remedy=first)


def _refuse_without_rights(ways: Ways) -> None:
    """To what comes behind the groups' move, at the other end of it.

    :raises NotAuthorized: the first that is missing, with its grant.
    """
    needed = (*closing_rights(ways.forward), *journal_rights())
    with open_target(ways.new) as (network, target):
        network.run(lambda: refuse_without(needed, {"target": target.wire}))


def _leave_nothing_that_came_back(ways: Ways, run: FailbackRun, operator: apply.Operator) -> None:
    with at_both_clusters(ways.reverse, ways.new, ways.old, _what(ways)) as (clusters, _):
        empty_again(ways, clusters, run, operator.say)


def _let_reverse_stand_by(ways: Ways, run: FailbackRun, by: str) -> None:
    """In place of the failover's fence: taking the move of the groups back doesn't open it beside the forward
    flow."""
    with at_both_clusters(ways.reverse, ways.new, ways.old, _what(ways)) as (clusters, _):
        clock, target, owner = clusters.network, clusters.target, run.stand_by_words
        clusters.network.run(lambda: close_for(target, clock, ways.reverse, owner, by=by, takes_over=True))


def _adopt(
    ways: Ways, clusters: Clusters, state: FlowState, run: FailbackRun, operator: apply.Operator
) -> None:
    target, clock, owner = clusters.target, clusters.network, run.fence_words
    own = clusters.network.run(lambda: close_for(target, clock, ways.forward, owner, by=operator.by))
    beginnings = clusters.network.run(lambda: _beginnings(ways, clusters, state))
    reason = Reason(by=operator.by, because=run.fence_words)
    generation, _ = adopt_all(ways.forward, clusters, ways.new, state, beginnings, reason)
    pairs = [each.pair for each in beginnings]
    there = (ways.reverse, clusters.at_source, ways.forward, clusters.target)
    runs = clusters.network.run(lambda: hand_over(*there, pairs, generation, own))
    operator.say(f"{ways.forward.name}: goes on behind what came back; its offset map got {runs:,} runs")


async def _beginnings(ways: Ways, clusters: Clusters, state: FlowState) -> list[Beginning]:
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
    positions = await where_they_stand(
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
        Beginning(
            pair=pair,
            source_next=int(position.target_next),
            source_epoch=position.target_epoch,
            target_end=ends[pair.target],
        )
        for pair, position in found
    ]


def _unknown(ways: Ways, pair: Pair) -> BadInput:
    reverse = ways.reverse.name
    return BadInput(
        f"how far {reverse} has written {pair.source}",
        rule="isn't known: it has no position there, and neither its offset map nor its state has one",
        remedy=reconcile_remedy(reverse, pair.target),
    )


async def _record_home(ways: Ways, clusters: Clusters, run: FailbackRun, moved: str) -> FailbackRun:
    turned = Clusters(clusters.network, clusters.target, clusters.at_source)
    return await told(Pairing(ways.forward, ways.reverse, turned), run, Step.HOME, moved=moved)


def _let_go_on(ways: Ways, home: CameHome, operator: apply.Operator) -> CameHome:
    """The forward flow; with prefixes the reverse flow, too."""
    states = {ways.forward.name: _open_forward(ways, home.run, operator)}
    if not home.run.facts.get("parted"):
        reverse = _lift_reverse(ways, str(home.run.facts.get("moved")), operator.by)
        states[ways.reverse.name] = reverse
    shut = {name: state for name, state in states.items() if state.fence is not None}
    return replace(home, not_yet=tuple(not_yet(name, state.standing) for name, state in shut.items()))


def _open_forward(ways: Ways, run: FailbackRun, operator: apply.Operator) -> FlowState:
    with at_both_clusters(ways.forward, ways.old, ways.new, _what(ways)) as (clusters, _):
        words = {"by": operator.by, "because": f"home again: {run.fence_words}"}
        target, clock, flow = clusters.target, clusters.network, ways.forward
        return clusters.network.run(lambda: open_for(target, clock, flow, run.fence_words, **words))


def _lift_reverse(ways: Ways, failover: str, by: str) -> FlowState:
    """With prefixes it writes no topic that anybody else writes: it just goes on."""
    with at_both_clusters(ways.reverse, ways.new, ways.old, _what(ways)) as (clusters, _):
        owner = fence_words(failover)
        words = {"by": by, "because": f"home again: {owner}"}
        target, clock = clusters.target, clusters.network
        return clusters.network.run(lambda: open_for(target, clock, ways.reverse, owner, **words))
