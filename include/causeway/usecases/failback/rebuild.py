"""A rebuild's own steps, between the export and the adoption: drop what was compared, and let it come back.

Recorded before the first record is dropped: a try that finds it in the journal goes on, whatever is gone by
then. Known limit: a broker that dies within a minute (`log.flush.start.offset.checkpoint.interval.ms`), with
no replica that lives, may bring back what was deleted. So the completion of the failback looks again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from causeway.brokers.wire.log_reader import READ_COMMITTED, READ_UNCOMMITTED
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.failback.divergence import Divergence, FailbackPlan, FailbackRun, Step
from causeway.core.kernel.errors import BadInput
from causeway.core.kernel.identity import Pair, TopicPartition
from causeway.core.kernel.plurals import some
from causeway.core.model.naming import FLOWS_TOPIC
from causeway.core.state.flow_records import adopted_record
from causeway.usecases.failback.delete_records import (
    Policies,
    empty,
    policies_in_the_way,
    prove_empty,
    refuse_moved,
)
from causeway.usecases.failback.divergence import FailbackSession, bounds
from causeway.usecases.failback.export import Kept
from causeway.usecases.failback.journal_store import FlowPair, told
from causeway.usecases.repair.set_positions import NewPosition
from causeway.usecases.run_lock.command_fence import CommandFence, command_fence_of
from causeway.usecases.run_lock.ownership import Say
from causeway.usecases.session.blocking import blocking
from causeway.usecases.session.both_clusters import Clusters, state_on


@dataclass(frozen=True, slots=True)
class BothFences:
    """Those of the failback, in either direction: as long as they stand, no flow writes on either side."""

    forward: CommandFence
    reverse: CommandFence

    async def prove(self, pairing: FailbackSession) -> None:
        """:raises FlowHeld: one of them doesn't stand any more."""
        await self.forward.prove(pairing.new)
        await self.reverse.prove(pairing.old)


async def empty_old(
    pairing: FailbackSession,
    ways: FlowPair,
    run: FailbackRun,
    plan: FailbackPlan,
    kept: Kept,
    say: Say,
    fences: BothFences,
) -> FailbackRun:
    """:raises BadInput: somebody still writes there, or retention goes on taking what was to come back.
    :raises FlowHeld: somebody has lifted one of the fences; what isn't empty by then stays.
    """
    topics = {cut.old.topic for cut in plan.cuts}
    in_the_way = await blocking(lambda: policies_in_the_way(ways.old, topics))
    policies = {**in_the_way, **_policies(run)}
    facts = {"plan": plan.hash, "exports": dict(kept.exports), "policies": policies}
    await refuse_moved(pairing, plan)
    if not run.facts.get("accepts_loss"):
        await _refuse_shrinking(pairing, plan)
    exported = await told(pairing, run, Step.EXPORTED, **facts)
    await empty(ways.old, kept.ends, policies, lambda: fences.prove(pairing))
    await prove_empty(pairing, kept.ends)
    say(f"{plan.flow}: {len(topics)} topics of {pairing.forward.source} are empty")
    await _let_back(pairing, plan)
    return exported


async def positions_after_rebuild(pairing: FailbackSession, plan: FailbackPlan) -> list[NewPosition]:
    """All that the new primary has, after what the old one's logs held."""
    starts, _ = await bounds(pairing.new, [cut.new for cut in plan.cuts], READ_COMMITTED)
    return [
        NewPosition(pair=turned_pair(cut), source_next=starts[cut.new], target_end=cut.old_end)
        for cut in plan.cuts
    ]


def turned_pair(cut: Divergence) -> Pair:
    return Pair(
        source=cut.new,
        target=cut.old,
        source_topic_id=cut.new_topic_id,
        target_topic_id=cut.old_topic_id,
    )


async def empty_again(ways: FlowPair, clusters: Clusters, run: FailbackRun, say: Say) -> None:
    """What a broker that died too early has brought back."""
    back = await _came_back(ways, clusters.target, run)
    if back:
        say(f"{ways.reverse.target} had forgotten that {len(back)} partitions were emptied: once more")
        forward = await _forward_fence(ways, clusters, run)
        await empty(ways.old, back, _policies(run), lambda: forward.prove(clusters.at_source))


async def _forward_fence(ways: FlowPair, clusters: Clusters, run: FailbackRun) -> CommandFence:
    """Of the failback; the reverse flow is open by then.

    :raises FlowHeld: it doesn't stand any more.
    """
    return command_fence_of(
        ways.forward.name, await state_on(clusters.at_source, ways.forward.name), run.fence_words
    )


async def _came_back(ways: FlowPair, old: WireTarget, run: FailbackRun) -> dict[TopicPartition, int]:
    """Where the logs begin before what the reverse flow wrote, and where that begins."""
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


async def _refuse_shrinking(pairing: FailbackSession, plan: FailbackPlan) -> None:
    starts, _ = await bounds(pairing.new, [cut.new for cut in plan.cuts], READ_COMMITTED)
    shrunk = sorted({cut.new.topic for cut in plan.cuts if starts[cut.new] > cut.new_start})
    if shrunk:
        raise BadInput(
            f"topics of {pairing.forward.target}",
            value=some(shrunk),
            rule="have lost records to retention while the tail was exported, and those wouldn't come back",
            remedy="raise retention.ms and retention.bytes there, then run it again",
        )


async def _let_back(pairing: FailbackSession, plan: FailbackPlan) -> None:
    """Into the forward flow's state: what it wrote came from logs that are empty now."""
    forward = pairing.forward
    state = await state_on(pairing.new, forward.name)
    for name in sorted({cut.new.topic for cut in plan.cuts}):
        known = replace(state.pairs[name], adopted_at=state.generation, source_emptied=True)
        key, value = adopted_record(forward.name, name, known, [])  # none goes on elsewhere
        await pairing.new.append_plain(FLOWS_TOPIC, key, value)
