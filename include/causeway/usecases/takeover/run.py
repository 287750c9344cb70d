"""Take a flow over from MirrorMaker 2: find where each mirror stands, then set the positions after a fence.

    is it stopped -> what it left -> compare -> has nothing moved -> fence, claim
    -> keep its offset syncs, remember the pairs, enter the positions, commit them

What can't be proved is left without a position, with the remedy; the others go on. Typed again, it does what
is still to be done: a partition that has a position of ours is left as it is.

Invariants
    A. Nothing is written before everything has been compared, and a position only if its target still ends
       where it did, and nobody has set one meanwhile.
    B. MirrorMaker 2 was seen stopped before and after the comparison. If it is started later, its records
       are foreign data, and their partitions park.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial

from causeway.brokers.admin.record_reader import RecordReader
from causeway.brokers.admin.topics import ClusterAdmin
from causeway.core.copy.ports import LogEnd, Refused, Unreachable
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import BadInput
from causeway.core.kernel.identity import Generation, SourceOffset, TargetOffset, TopicPartition
from causeway.core.model.flow import Flow
from causeway.core.offsets.mm2_offset_syncs import Inherited, inherited_record, inherited_topic_of, points_of
from causeway.core.permissions.flow import takeover_rights
from causeway.core.state.flow_state import FlowState
from causeway.core.state.repair_commands import adopt_remedy, restart_remedy
from causeway.core.takeover.mm2_mirror import MirrorMakerPlaces, Unproved
from causeway.usecases.copy.round_facts import resolve_start
from causeway.usecases.repair.adopt import remember_pair
from causeway.usecases.repair.record_positions import record_positions
from causeway.usecases.repair.set_positions import (
    NewPosition,
    Reason,
    commit_positions,
    fenced,
    refuse_leading_back,
    run_command,
)
from causeway.usecases.run_lock.command_fence import CommandFence
from causeway.usecases.run_lock.internal_topics import create_missing_topics, inherited_topic
from causeway.usecases.run_lock.missing_rights import refuse_without
from causeway.usecases.session.blocking import blocking
from causeway.usecases.session.both_clusters import Clusters
from causeway.usecases.takeover.match_tail import Place, Proof
from causeway.usecases.takeover.mm2_state import (
    Candidate,
    Mm2State,
    read_mm2_state,
    refuse_growth,
    refuse_set_meanwhile,
)

Say = Callable[[str], None]
_WATCHED_SECONDS = 3.0
_SAY_SECONDS = 2.0


class Taken(StrEnum):
    ADOPTED = "adopted"
    BEGINS = "begins"
    """Nothing was mirrored yet: by the flow's start rule."""
    STANDS = "stands"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionTaken:
    candidate: Candidate
    outcome: Taken
    source_next: int = -1
    place: Place | None = None
    why: str = ""
    """Of a refusal, with the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenOver:
    flow: str
    partitions: tuple[PartitionTaken, ...]
    left_out: tuple[str, ...]
    """Topics that MirrorMaker 2 has mirrored and the flow doesn't select."""
    generation: int = -1
    """-1: nothing was written."""

    def of(self, outcome: str) -> list[PartitionTaken]:
        return [each for each in self.partitions if each.outcome == outcome]


def take_over(
    flow: Flow,
    places: MirrorMakerPlaces,
    source: ClusterEndpoint,
    target: ClusterEndpoint,
    reason: Reason,
    say: Say,
    *,
    dry_run: bool = False,
) -> TakenOver:
    """:raises FlowHeld: MirrorMaker 2 works. | :raises BadInput: its mirrors aren't the source's records.
    | :raises NotAuthorized: a right is missing; nothing was written.
    """
    if places.altering:
        raise BadInput(
            places.altering,
            rule="changes records on their way: MirrorMaker 2's mirrors aren't the source's records",
            remedy="let Causeway make mirrors of its own, or adopt each partition by hand",
        )

    async def steps(clusters: Clusters, state: FlowState) -> TakenOver:
        work = _Work(flow, places, clusters, target, state)
        ground = await work.look()
        found = await work.prove(ground, source, say)
        await work.watch(ground)
        generation = await work.write(found, reason, dry_run=dry_run)
        return TakenOver(
            flow=flow.name, partitions=tuple(found), left_out=ground.left_out, generation=generation
        )

    return run_command(flow, source, target, f"takeover of {flow.name}", steps)


@dataclass
class _Work:
    flow: Flow
    places: MirrorMakerPlaces
    clusters: Clusters
    target: ClusterEndpoint
    state: FlowState
    began: float = field(init=False)

    async def look(self) -> Mm2State:
        flow, places, clusters = self.flow, self.places, self.clusters
        self.began = clusters.network.monotonic()
        await refuse_without(takeover_rights(flow, places), clusters.wires)
        return await read_mm2_state(flow, places, clusters, self.state)

    async def prove(self, ground: Mm2State, source: ClusterEndpoint, say: Say) -> list[PartitionTaken]:
        found = await blocking(lambda: self._compare_all(ground, source, say))
        starts = await self._starts([each for each in found if each.outcome is Taken.BEGINS])
        return [
            each
            if each.outcome is not Taken.BEGINS
            else PartitionTaken(
                candidate=each.candidate,
                outcome=Taken.BEGINS,
                source_next=starts[each.candidate.pair.source],
            )
            for each in found
        ]

    def _compare_all(self, ground: Mm2State, source: ClusterEndpoint, say: Say) -> list[PartitionTaken]:
        with (
            RecordReader(source, as_mirrored=True, is_isolated=self.places.is_isolated) as here,
            RecordReader(self.target) as there,
        ):
            proof, found, clock = Proof(here, there), list[PartitionTaken](), self.clusters.network
            said_at = clock.monotonic()
            for number, candidate in enumerate(ground.candidates):
                found.append(self._judge(candidate, proof))
                if clock.monotonic() - said_at > _SAY_SECONDS:
                    said_at = clock.monotonic()
                    say(f"{self.flow.name}: compared {number + 1:,} of {len(ground.candidates):,} partitions")
        return found

    def _judge(self, candidate: Candidate, proof: Proof) -> PartitionTaken:
        name, source = self.flow.name, candidate.pair.source
        if candidate.own == "stands":
            return PartitionTaken(candidate=candidate, outcome=Taken.STANDS)
        if candidate.own == "other topics":
            why = f"{name} has mirrored a topic of that name that is gone"
            return _refused(candidate, f"{why}; {restart_remedy(name, source.topic)}")
        try:
            place = proof.find(candidate)
        except Unproved as cause:
            said = "no offset" if candidate.committed is None else f"offset {candidate.committed}"
            why = f"{cause} (MirrorMaker 2 had committed {said}); {adopt_remedy(name, source)}"
            return _refused(candidate, why)
        if place is None:
            return PartitionTaken(candidate=candidate, outcome=Taken.BEGINS)
        return PartitionTaken(
            candidate=candidate, outcome=Taken.ADOPTED, source_next=place.source_next, place=place
        )

    async def _starts(self, fresh: Sequence[PartitionTaken]) -> Mapping[TopicPartition, int]:
        ends = {each.candidate.pair.source: LogEnd(each.candidate.source_stable, -1) for each in fresh}
        log_starts = {each.candidate.pair.source: each.candidate.extent.source_start for each in fresh}
        found = await resolve_start(self.flow, self.clusters.source, list(ends), ends, log_starts)
        starts: dict[TopicPartition, int] = {}
        for tp, start in found.items():
            if isinstance(start, Refused):
                raise Unreachable(f"where {tp} begins: {start}")
            starts[tp] = int(start.offset)
        return starts

    async def watch(self, ground: Mm2State) -> None:
        """MirrorMaker 2 on a quiet source writes little: give it a moment to show itself."""
        network = self.clusters.network
        left = _WATCHED_SECONDS - (network.monotonic() - self.began)
        if left > 0:
            await network.sleep(left)
        await refuse_growth(self.clusters, self.places, ground.ends)

    async def write(self, found: Sequence[PartitionTaken], reason: Reason, *, dry_run: bool) -> int:
        topics = _by_proved_topic(found)
        beginnings = {topic: [_beginning(each) for each in members] for topic, members in topics.items()}
        await self._refuse_circles(beginnings.values())
        if dry_run or not topics:
            return -1
        to_set = {e.candidate.pair.target: e.candidate for members in topics.values() for e in members}
        async with fenced(self.flow, self.clusters, self.target, reason) as own:
            await own.prove(self.clusters.target)
            await refuse_set_meanwhile(self.flow, self.clusters, to_set)
            await self._keep(topics)
            await self._commit_all(beginnings, found, reason, own)
        return own.generation

    async def _refuse_circles(self, topics: Iterable[Sequence[NewPosition]]) -> None:
        for members in topics:
            await refuse_leading_back(self.flow, self.clusters, members)

    async def _keep(self, topics: Mapping[str, Sequence[PartitionTaken]]) -> None:
        """The offset syncs, before there is a position that stands on them."""
        target, topic = self.clusters.target, inherited_topic(self.flow)
        existing = frozenset(await target.wire.topics(None))
        await blocking(lambda: create_missing_topics((topic,), ClusterAdmin(self.target), existing))
        records = [
            inherited_record(each.candidate.pair.target, _inherited(each, each.place))
            for members in topics.values()
            for each in members
            if each.place is not None
        ]
        await target.append_many(inherited_topic_of(self.flow.name), records)

    async def _commit_all(
        self,
        topics: Mapping[str, Sequence[NewPosition]],
        found: Sequence[PartitionTaken],
        reason: Reason,
        own: CommandFence,
    ) -> None:
        """The ledger comes first: who is killed between the two leaves no position that nobody entered. An
        entry without its position was proved all the same: a run goes on there, and so does the same command.
        """
        flow, clusters = self.flow, self.clusters
        mirrors = [each.candidate.pair.target for each in found]
        for topic, members in topics.items():
            count = 1 + max(mirror.partition for mirror in mirrors if mirror.topic == topic)
            remember = partial(self._remember, members, count, reason, own.generation)
            await commit_positions(flow, clusters, members, own, remember)

    async def _remember(
        self, members: Sequence[NewPosition], count: int, reason: Reason, generation: Generation
    ) -> None:
        flow, clusters, pairs = self.flow, self.clusters, [each.pair for each in members]
        await remember_pair(flow, clusters, self.state, pairs, generation, partitions=count)
        ends = {each.pair.source: TargetOffset(each.target_end) for each in members}
        await record_positions(flow, clusters, "import-mm2", members, ends, reason, generation)


def _by_proved_topic(found: Sequence[PartitionTaken]) -> dict[str, list[PartitionTaken]]:
    """What is to be set. Topics of which nothing is proved stay as if nobody had looked; not those with a
    log that isn't empty, where no run begins by itself."""
    proved = {each.candidate.pair.target.topic for each in found if _is_to_be_set(each)}
    topics: dict[str, list[PartitionTaken]] = {}
    for each in found:
        topic = each.candidate.pair.target.topic
        if each.outcome in (Taken.ADOPTED, Taken.BEGINS) and topic in proved:
            topics.setdefault(topic, []).append(each)
    return topics


def _is_to_be_set(taken: PartitionTaken) -> bool:
    if taken.outcome is Taken.BEGINS:
        return taken.candidate.extent.target_end > 0
    return taken.outcome is Taken.ADOPTED


def _beginning(taken: PartitionTaken) -> NewPosition:
    candidate = taken.candidate
    return NewPosition(
        pair=candidate.pair, source_next=taken.source_next, target_end=candidate.extent.target_end
    )


def _inherited(taken: PartitionTaken, place: Place) -> Inherited:
    candidate = taken.candidate
    return Inherited(
        source_topic_id=candidate.pair.source_topic_id,
        target_topic_id=candidate.pair.target_topic_id,
        source_next=SourceOffset(taken.source_next),
        target_next=TargetOffset(candidate.extent.target_end),
        points=() if place.last is None else points_of(candidate.syncs, place.last),
    )


def _refused(candidate: Candidate, why: str) -> PartitionTaken:
    return PartitionTaken(candidate=candidate, outcome=Taken.REFUSED, why=why)
