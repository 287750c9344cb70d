"""A rebuild's own steps, between the export and the adoption: drop what was compared, and let it come back.

Told before the first record is dropped: a try that finds it in the journal goes on, whatever is gone by then.
Known limit: a broker that dies within a minute (`log.flush.start.offset.checkpoint.interval.ms`), with no
replica that lives, may bring back what was deleted. So going home looks again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from causeway.brokers.log_reader import READ_COMMITTED, READ_UNCOMMITTED
from causeway.brokers.target_log import WireTarget
from causeway.core.counting import some
from causeway.core.errors import BadInput
from causeway.core.failback.plan import Cut, FailbackPlan, FailbackRun, Step
from causeway.core.flow_state import adopted_record
from causeway.core.identity import Pair, TopicPartition
from causeway.core.naming import FLOWS_TOPIC
from causeway.flows.by_hand import Beginning
from causeway.flows.clusters import Clusters, state_on
from causeway.flows.failback.emptying import (
    Policies,
    empty,
    policies_in_the_way,
    prove_empty,
    refuse_moved,
)
from causeway.flows.failback.export import Kept
from causeway.flows.failback.logbook import Ways, told
from causeway.flows.failback.parting import Pairing, bounds
from causeway.flows.own_fence import OwnFence, own_fence_of
from causeway.flows.ownership import Say


@dataclass(frozen=True, slots=True)
class BothFences:
    """Those of the failback, in either direction: as long as they stand, no flow writes on either side."""

    forward: OwnFence
    reverse: OwnFence

    async def prove(self, pairing: Pairing) -> None:
        """:raises FlowHeld: one of them doesn't stand any more."""
        await self.forward.prove(pairing.new)
        await self.reverse.prove(pairing.old)


def empty_old(
    pairing: Pairing,
    ways: Ways,
    run: FailbackRun,
    plan: FailbackPlan,
    kept: Kept,
    say: Say,
    fences: BothFences,
) -> FailbackRun:
    """:raises BadInput: somebody still writes there, or retention goes on taking what was to come back.
    :raises FlowHeld: somebody has lifted one of the fences; what isn't empty by then stays.
    """
    work = pairing.clusters.network.run
    topics = {cut.old.topic for cut in plan.cuts}
    policies = {**policies_in_the_way(ways.old, topics), **_policies(run)}
    facts = {"plan": plan.hash, "exports": dict(kept.exports), "policies": policies}
    work(lambda: refuse_moved(pairing, plan))
    if not run.facts.get("accepts_loss"):
        work(lambda: _refuse_shrinking(pairing, plan))
    exported = work(lambda: told(pairing, run, Step.EXPORTED, **facts))
    empty(ways.old, kept.ends, policies, partial(work, lambda: fences.prove(pairing)))
    work(lambda: prove_empty(pairing, kept.ends))
    say(f"{plan.flow}: {len(topics)} topics of {pairing.forward.source} are empty")
    work(lambda: _let_back(pairing, plan))
    return exported


async def beginnings_anew(pairing: Pairing, plan: FailbackPlan) -> list[Beginning]:
    """All that the new primary has, behind what the old one's logs held."""
    starts, _ = await bounds(pairing.new, [cut.new for cut in plan.cuts], READ_COMMITTED)
    return [
        Beginning(pair=turned_pair(cut), source_next=starts[cut.new], target_end=cut.old_end)
        for cut in plan.cuts
    ]


def turned_pair(cut: Cut) -> Pair:
    return Pair(
        source=cut.new,
        target=cut.old,
        source_topic_id=cut.new_topic_id,
        target_topic_id=cut.old_topic_id,
    )


def empty_again(ways: Ways, clusters: Clusters, run: FailbackRun, say: Say) -> None:
    """What a broker that died too early has brought back."""
    back = clusters.network.run(lambda: _came_back(ways, clusters.target, run))
    if back:
        say(f"{ways.reverse.target} had forgotten that {len(back)} partitions were emptied: once more")
        forward = clusters.network.run(lambda: _forward_fence(ways, clusters, run))
        proved = partial(clusters.network.run, lambda: forward.prove(clusters.at_source))
        empty(ways.old, back, _policies(run), proved)


async def _forward_fence(ways: Ways, clusters: Clusters, run: FailbackRun) -> OwnFence:
    """Of the failback; the reverse flow is open by then.

    :raises FlowHeld: it doesn't stand any more.
    """
    return own_fence_of(
        ways.forward.name, await state_on(clusters.at_source, ways.forward.name), run.fence_words
    )


async def _came_back(ways: Ways, old: WireTarget, run: FailbackRun) -> dict[TopicPartition, int]:
    """Where the logs begin in front of what the reverse flow wrote, and where that begins."""
    state = await state_on(old, ways.reverse.name)
    ends = {
        TopicPartition(entry.target_topic, place.partition): int(place.target_next)
        for entry in sorted(state.set_by_hand.values(), key=lambda entry: entry.generation)
        if entry.because == run.fence_words
        for place in entry.places
    }
    starts, _ = await bounds(old, list(ends), READ_UNCOMMITTED)
    return {tp: end for tp, end in ends.items() if starts[tp] < end}


def _policies(run: FailbackRun) -> Policies:
    told_before = run.facts.get("policies")
    return told_before if isinstance(told_before, Mapping) else {}


async def _refuse_shrinking(pairing: Pairing, plan: FailbackPlan) -> None:
    starts, _ = await bounds(pairing.new, [cut.new for cut in plan.cuts], READ_COMMITTED)
    shrunk = sorted({cut.new.topic for cut in plan.cuts if starts[cut.new] > cut.new_start})
    if shrunk:
        raise BadInput(
            f"topics of {pairing.forward.target}",
            value=some(shrunk),
            rule="have lost records to retention while the tail was exported, and those wouldn't come back",
            remedy="raise retention.ms and retention.bytes there, then run it again",
        )


async def _let_back(pairing: Pairing, plan: FailbackPlan) -> None:
    """Into the forward flow's state: what it wrote came from logs that are empty now."""
    forward = pairing.forward
    state = await state_on(pairing.new, forward.name)
    for name in sorted({cut.new.topic for cut in plan.cuts}):
        known = replace(state.pairs[name], adopted_at=state.generation, source_emptied=True)
        key, value = adopted_record(forward.name, name, known, [])  # none goes on elsewhere
        await pairing.new.append_plain(FLOWS_TOPIC, key, value)
