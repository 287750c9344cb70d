"""Which groups a failover is about, what they hold on the target, and where they were last known to stand.

With a source that answers, the source says it. Without, the stamp that a group sync left beside the offset on
the target, or the group's last checkpoint; both are as old as the last sync. A source that may not be asked
of a group or a topic is as good as silent about it, and that is reported; a planned failover stops there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from causeway.brokers.transport.topic_metadata import TopicMetadata
from causeway.brokers.wire.consumer_groups import ConsumerGroups
from causeway.brokers.wire.log_reader import WireLogReader
from causeway.brokers.wire.mm2_topics import Checkpoints, last_checkpoints
from causeway.core.copy.ports import Refused, Unreachable, is_unreachable
from causeway.core.failover.plan import GroupFacts
from causeway.core.failover.request import FailoverRequest, meets
from causeway.core.failover.start_impact import LastKnown
from causeway.core.groups.stamp import stamp_beside
from causeway.core.groups.sync_rules import Committed, Held, Offsets, is_mirrors_word
from causeway.core.kernel.acl_vocabulary import Operation
from causeway.core.kernel.errors import CausewayError, UnknownName
from causeway.core.kernel.identity import SourceOffset, TargetOffset, TopicPartition
from causeway.core.kernel.timestamps import rfc3339
from causeway.core.model.flow import Flow
from causeway.core.model.group_filter import FlowGroups
from causeway.core.offsets.mm2_offset_syncs import LowerBound
from causeway.core.offsets.why_not import AheadOfMirror, OlderThanMap
from causeway.core.records.mm2_formats import Checkpoint
from causeway.core.state.flow_state import FlowState
from causeway.usecases.failover.mirror_state import MirrorPartition, MirrorState
from causeway.usecases.session.source_may_be_gone import FlowSession

Answers = Mapping[str, Offsets | Refused]
Unseen = Mapping[str, CausewayError]
"""What of the source this user may not see, by name, with the grant."""
_PLAIN_NAME = re.compile(r"[a-zA-Z0-9._-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """As both clusters tell it, before anything is translated."""

    names: tuple[str, ...]
    active: frozenset[str]
    here: Answers
    """On the target."""
    there: Answers | None
    """On the source; None: it can't be asked."""
    unseen: Unseen = field(default_factory=dict)
    unseen_topics: Unseen = field(default_factory=dict)
    checkpoints: Checkpoints = field(default_factory=dict)
    silent: tuple[str, ...] = ()
    """Nodes of the source that don't answer, while others do."""

    @property
    def notes(self) -> tuple[str, ...]:
        unseen = (*self.unseen.items(), *self.unseen_topics.items())
        return (
            *(f"{name}: what was last known of it counts: {why}" for name, why in unseen),
            *(
                f"{node} of the source doesn't answer: of groups that it coordinates what was last known "
                "counts, and one that only it knows isn't listed"
                for node in self.silent
            ),
        )


@dataclass(frozen=True, slots=True)
class _ToldBySource:
    answers: Answers | None = None
    unseen: Unseen = field(default_factory=dict)
    unseen_topics: Unseen = field(default_factory=dict)
    silent: tuple[str, ...] = ()


async def read_groups(
    flow: Flow,
    sides: FlowSession,
    wish: FailoverRequest,
    selection: FlowGroups,
    state: FlowState,
    topics: Mapping[str, TopicMetadata],
) -> Members:
    """Those of the flow's filter that the wish names; what only one side knows counts, too.

    :raises NotAuthorized: one of them may not be seen on the target; if it is planned, on the source either.
    """
    wanted = {name: sorted(topic.leaders) for name, topic in topics.items()}
    on_source = {state.pairs[name].source_topic: parts for name, parts in wanted.items()}
    target = ConsumerGroups(sides.target.wire)
    listed = await target.listed()
    partitions = frozenset(TopicPartition(name, p) for name, parts in wanted.items() for p in parts)
    checkpoints = await last_checkpoints(sides.target, flow.checkpoints_topic, partitions)

    is_wanted = partial(_is_wanted, wish=wish, selection=selection)
    candidates = {*checkpoints, *selection.named}
    asked = await sides.of_source(lambda reader: _ask_source(reader, candidates, is_wanted, on_source))
    told = asked or _ToldBySource()
    if wish.is_planned:
        _refuse_half_told(flow, told)
    seen = {*listed, *checkpoints, *(name for name, held in (told.answers or {}).items() if held)}
    names = sorted(filter(is_wanted, seen | _named(wish)))
    here = await target.committed(names, wanted)
    _raise_first(_denied(target, here))
    return Members(
        names=tuple(names),
        active=frozenset(name for name in names if name in listed and listed[name].is_active),
        here=here,
        there=told.answers,
        unseen=told.unseen,
        unseen_topics=told.unseen_topics,
        checkpoints=checkpoints,
        silent=told.silent,
    )


async def _ask_source(
    reader: WireLogReader,
    candidates: Collection[str],
    is_wanted: Callable[[str], bool],
    partitions: Mapping[str, Sequence[int]],
) -> _ToldBySource:
    groups = ConsumerGroups(reader.wire, spares_the_silent=True)
    names = [name for name in {*await groups.listed(), *candidates} if is_wanted(name)]
    answers = await groups.committed(names, partitions)
    hidden = await _denied_topics(reader, sorted(partitions))
    silent = tuple(reader.wire.place_of(node) for node in sorted(groups.silent))
    return _ToldBySource(answers, _denied(groups, answers), hidden, silent)


def _refuse_half_told(flow: Flow, told: _ToldBySource) -> None:
    _raise_first({**told.unseen, **told.unseen_topics})
    if told.silent:
        raise Unreachable(f"{told.silent[0]} of {flow.source} doesn't answer: its groups aren't known")


def _raise_first(denied: Unseen) -> None:
    for error in denied.values():
        raise error


def _denied(groups: ConsumerGroups, answers: Answers) -> Unseen:
    asked = ((name, groups.denied(name, answer, Operation.DESCRIBE)) for name, answer in answers.items())
    return {name: denied for name, denied in asked if denied}


async def _denied_topics(reader: WireLogReader, topics: list[str]) -> Unseen:
    described = await reader.wire.topics(topics)
    denied = (name for name, topic in described.items() if topic.lacks(Operation.READ))
    return {name: reader.wire.lacks_right(name, Operation.READ) for name in denied}


def _is_wanted(group: str, wish: FailoverRequest, selection: FlowGroups) -> bool:
    return selection.selects(group) and wish.selects_group(group)


def _named(wish: FailoverRequest) -> set[str]:
    """A group that nobody has seen can be moved if both it and its topics are named."""
    return {name for name in wish.groups if wish.topics and _PLAIN_NAME.fullmatch(name)}


def group_facts(members: Members, ground: MirrorState, wish: FailoverRequest, over: Held) -> list[GroupFacts]:
    """Only groups that have to do with the flow's topics. `over`: what they had committed on the target until
    they returned."""
    found: list[GroupFacts] = []
    for name in members.names:
        here = members.here.get(name, {})
        if isinstance(here, Refused):
            found.append(_refused(name, f"its offsets on the target: {here}"))
            continue
        there = _told_by_source(members, name)
        if isinstance(there, Refused):
            found.append(_refused(name, f"its offsets on the source: {there}"))
            continue
        checkpoints = members.checkpoints.get(name, {})
        left = over.get(name, {})
        known, own = _standing(ground, here, there, checkpoints, members.unseen_topics)
        as_it_left = {tp for tp in own if left.get(tp) == here[tp]}
        known = {**known, **{tp: _since_home(here[tp], known.get(tp)) for tp in as_it_left}}
        facts = GroupFacts(
            name=name,
            is_active=name in members.active,
            here={tp: committed for tp, committed in here.items() if tp in ground.partitions},
            known=known,
            own=own - as_it_left,
            topics=frozenset(ground.topic_ids) if name in _named(wish) else frozenset(),
        )
        if facts.here or facts.known or facts.topics:
            found.append(facts)
    return found


def _since_home(held: Committed, known: LastKnown | None) -> LastKnown:
    """It returned to the source from where it stands here, and no sync has been there since. A source that
    answers knows better; a checkpoint may be older than that."""
    if known is not None and (known.is_live or (known.at is not None and known.at >= held.offset)):
        return known
    return LastKnown(at=TargetOffset(held.offset), told_by="its place at the homecoming")


def refuse_unknown(
    flow: Flow, wish: FailoverRequest, selection: FlowGroups, found: Iterable[GroupFacts]
) -> None:
    """Whoever names several means each of them.

    :raises UnknownName: one of them is no group that could be moved.
    """
    names = [group.name for group in found]
    for wanted in wish.groups:
        if any(meets(wanted, name) for name in names):
            continue
        excluded = selection.why_excluded(wanted) if _PLAIN_NAME.fullmatch(wanted) else ""
        if excluded:
            rule = f"isn't one of those that {flow.name} moves: {excluded}"
            remedy = "leave it out, or change groups and groups.exclude of the flow"
            raise UnknownName("groups", value=wanted, rule=rule, remedy=remedy)
        raise UnknownName(
            "groups",
            value=wanted,
            rule="none that has to do with these topics is known on either cluster",
            remedy="write the full name of the group, and with --topics those of its topics",
        )


def _told_by_source(members: Members, name: str) -> Offsets | Refused | None:
    if members.there is None or name in members.unseen:
        return None
    told = members.there.get(name, {})
    return None if is_unreachable(told) else told


def _standing(
    ground: MirrorState,
    here: Offsets,
    there: Offsets | None,
    checkpoints: Mapping[TopicPartition, Checkpoint],
    unseen_topics: Unseen,
) -> tuple[dict[TopicPartition, LastKnown], frozenset[TopicPartition]]:
    """Where one group was last known to stand, and where it has gone on by itself."""
    known: dict[TopicPartition, LastKnown] = {}
    own: set[TopicPartition] = set()
    for tp, partition in ground.partitions.items():
        held, last = here.get(tp), checkpoints.get(tp)
        if held is not None and not is_mirrors_word(
            ground.flow.name, held, last.target_next if last else None
        ):
            own.add(tp)
        if there is not None and partition.source.topic not in unseen_topics:
            if partition.source in there:
                known[tp] = _known(partition, there[partition.source].offset, "")
        elif (told := _told(ground.flow.name, held, last.source_next if last else None)) is not None:
            known[tp] = _known(partition, *told)
    return known, frozenset(own)


def _refused(name: str, why: str) -> GroupFacts:
    return GroupFacts(name=name, is_active=False, here={}, known={}, refused=why)


def _told(flow: str, held: Committed | None, checkpoint: SourceOffset | None) -> tuple[int, str] | None:
    """The source offset that the last sync knew, and who says so."""
    stamp = stamp_beside(held.offset, held.metadata) if held is not None else None
    if stamp is not None and stamp.flow == flow:
        return stamp.source_next, f"the group sync of {rfc3339(stamp.time_ms)}"
    return None if checkpoint is None else (checkpoint, "its last checkpoint")


def _known(partition: MirrorPartition, offset: int, told_by: str) -> LastKnown:
    """`told_by` is empty where the source itself has just answered."""
    is_live = not told_by

    def at(
        place: int, *, is_ahead: bool = False, is_older: bool = False, is_bound: bool = False
    ) -> LastKnown:
        return LastKnown(
            at=TargetOffset(place),
            is_live=is_live,
            told_by=told_by,
            is_ahead=is_ahead,
            is_older=is_older,
            is_bound=is_bound,
        )

    reach = partition.source_next
    if reach is not None and offset >= reach:
        return at(partition.end, is_ahead=offset > reach)
    match partition.map.to_target(SourceOffset(offset)):
        case int(place):
            return at(place)
        case LowerBound(at=place):
            return at(place, is_bound=True)
        case AheadOfMirror():
            return at(partition.end, is_ahead=True)
        case OlderThanMap() as older if partition.log_start >= older.target_begins:
            return at(partition.log_start, is_older=True)  # nothing that lay in front is there
        case why:
            return LastKnown(
                at=None, why_not=f"source offset {offset}: {why}", is_live=is_live, told_by=told_by
            )
