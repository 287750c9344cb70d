"""Come home: a planned failover of the reverse flow, and then the forward flow goes on.

Writers have stopped on the new primary. What is left is mirrored to the old one, groups go to the very record
that they would have read next; the reverse flow stays fenced, and the forward flow adopts where the reverse
flow's last record ends. Killed anywhere and run again it goes on.
"""

from __future__ import annotations

from dataclasses import dataclass

from causeway.core.errors import BadInput
from causeway.core.failback.plan import FailbackRun, Step, Way
from causeway.core.failover.rights import closing_rights, journal_rights
from causeway.core.failover.wish import Mode, Wish
from causeway.core.flow import Flow
from causeway.core.flow_state import FlowState
from causeway.core.group_filter import FlowGroups
from causeway.core.identity import Pair, TopicPartition
from causeway.core.position import Position
from causeway.flows.by_hand import Beginning, Reason, at_both_clusters
from causeway.flows.clusters import Clusters, open_target, state_on
from causeway.flows.failback.adoption import adopt_all, hand_over
from causeway.flows.failback.logbook import Ways, newest_failback, told
from causeway.flows.failback.parting import Pairing
from causeway.flows.failback.rebuild import empty_again
from causeway.flows.failover import apply
from causeway.flows.failover.apply import FailedOver
from causeway.flows.fence import write_and_claim
from causeway.flows.lacking import refuse_without
from causeway.flows.ownership import write_lift


@dataclass(frozen=True, slots=True, kw_only=True)
class CameHome:
    run: FailbackRun
    moved: FailedOver | None
    """None: all was home already."""


def home_wish(reverse: Flow) -> Wish:
    return Wish(flow=reverse.name, at_ms=None, mode=Mode.HOME)


def come_home(ways: Ways, selection: FlowGroups, operator: apply.Operator) -> CameHome:
    """`selection` is the reverse flow's.

    :raises BadInput: no failback has opened the way, or somebody still writes; names who.
    """
    run = _on_its_way(ways)
    if run.step is Step.HOME:
        _let_go_on(ways, run, operator.by)
        return CameHome(run=run, moved=None)
    _refuse_without_rights(ways)
    if run.way is Way.REBUILD:
        _leave_nothing_that_came_back(ways, run, operator)
    reverse, wish = ways.reverse, home_wish(ways.reverse)
    moved = apply.fail_over(reverse, ways.new, ways.old, wish, selection, operator, home_of=ways.forward)
    parted = bool(run.facts.get("parted"))
    if parted:
        _let_reverse_stand_by(ways, run, operator.by)
    with at_both_clusters(ways.forward, ways.old, ways.new, _what(ways)) as (clusters, state):
        if parted:
            _adopt(ways, clusters, state, run, operator)
        # The forward flow's clusters are the pairing's, seen from the other side.
        back = clusters.network.run(lambda: _record_home(ways, clusters, run, moved.run))
    _let_go_on(ways, back, operator.by)
    return CameHome(run=back, moved=moved)


def _what(ways: Ways) -> str:
    return f"homecoming of {ways.forward.name}"


def _on_its_way(ways: Ways) -> FailbackRun:
    found, _ = newest_failback(ways)
    if found is None or found.step not in (Step.RETURNING, Step.HOME) or "given_up" in found.facts:
        flow = ways.forward.name
        raise BadInput(
            f"failback of {flow}",
            rule="hasn't opened the way back yet",
            remedy=f"`causeway failback {flow} --resume` or `--rebuild` comes first",
        )
    return found


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
    """Under words of its own: taking the move of the groups back doesn't open it beside the forward flow."""
    with at_both_clusters(ways.reverse, ways.new, ways.old, _what(ways)) as (clusters, _):
        words = {"by": by, "because": run.stand_by_words}
        clock, target = clusters.network, clusters.target
        clusters.network.run(lambda: write_and_claim(target, clock, ways.reverse, **words))


def _adopt(
    ways: Ways, clusters: Clusters, state: FlowState, run: FailbackRun, operator: apply.Operator
) -> None:
    beginnings = clusters.network.run(lambda: _beginnings(ways, clusters, state))
    reason = Reason(by=operator.by, because=run.fence_words)
    generation, _ = adopt_all(ways.forward, clusters, ways.new, state, beginnings, reason)
    pairs = [each.pair for each in beginnings]
    there = (ways.reverse, clusters.at_source, ways.forward, clusters.target)
    runs = clusters.network.run(lambda: hand_over(*there, pairs, generation))
    operator.say(f"{ways.forward.name}: goes on behind what came back; its map was told {runs:,} runs")


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
    positions = await clusters.at_source.positions(
        ways.reverse.group, [pair.source for pair in pairs], stable=True, marked=True
    )
    found: list[Beginning] = []
    for pair in pairs:
        position = positions[pair.source]
        if isinstance(position, Position) and position.target_topic_id == pair.source_topic_id:
            next_, epoch = int(position.target_next), position.target_epoch
            found.append(Beginning(pair=pair, source_next=next_, source_epoch=epoch))
    return found


async def _record_home(ways: Ways, clusters: Clusters, run: FailbackRun, moved: str) -> FailbackRun:
    turned = Clusters(clusters.network, clusters.target, clusters.at_source)
    return await told(Pairing(ways.forward, ways.reverse, turned), run, Step.HOME, moved=moved)


def _let_go_on(ways: Ways, run: FailbackRun, by: str) -> None:
    """The forward flow; with prefixes the reverse flow, too."""
    _open_forward(ways, run, by)
    if not run.facts.get("parted"):
        _lift_reverse(ways, str(run.facts.get("moved")), by)


def _open_forward(ways: Ways, run: FailbackRun, by: str) -> None:
    with at_both_clusters(ways.forward, ways.old, ways.new, _what(ways)) as (clusters, state):
        fence = state.fence
        if fence is not None and fence.because == run.fence_words:
            words = {"by": by, "because": f"home again: {run.fence_words}"}
            target, clock = clusters.target, clusters.network
            lift = fence.generation
            clusters.network.run(lambda: write_lift(target, clock, ways.forward, lifts=lift, **words))


def _lift_reverse(ways: Ways, failover: str, by: str) -> None:
    """With prefixes it writes no topic that anybody else writes: it just goes on."""
    with at_both_clusters(ways.reverse, ways.new, ways.old, _what(ways)) as (clusters, state):
        fence = state.fence
        if fence is not None and fence.because == f"failover {failover}":
            words = {"by": by, "because": f"home again: failover {failover}"}
            target, clock = clusters.target, clusters.network
            lift = fence.generation
            clusters.network.run(lambda: write_lift(target, clock, ways.reverse, lifts=lift, **words))
