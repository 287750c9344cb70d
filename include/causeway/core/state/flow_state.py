"""Who may run a flow: the records of `causeway-flows.internal` and what they add up to.

The topic has one partition, so its records have one order. A *turn* is a record after which older
work must stop: a run that begins, a fence, a lift. The offset of a flow's newest turn, plus `floor`, is its
generation. Records are plain (no transaction): being appended is what counts, not who appended.

Invariants
    A. A fence stands until a lift that names it. A run's own record never lifts it, nor does the lift of
       another fence, also not one that arrives late, on a connection that its sender has long given up.
    B. `most_lanes` never shrinks: a fence has to claim every lane that the flow ever had.
    C. Signs of life and ends of runs name the generation they belong to; they open nothing.
    D. Whoever appends a record and reads up to it has read every turn before it, whichever node
       answered: a leader that was deposed and doesn't know it can't show a record that it never got.
       `claimed` is appended for nothing but that.
    E. Keys make the topic compactable without losing any of this: one per flow and kind (and lane); one for
       each fence and adoption, or a late one would take the place of the one that counts. So has each answer
       of a start rule: of two for one partition the first one counts.
    F. A record that can't be read changes nothing but `odd` (`core/state/unreadable_records.py`).
    G. Turns are numbered from `floor` on: 0, or above all that was known when the topic had to be made again.
    H. What a person decided about a pair of topics (`adopted`, `forgotten`) stands above what runs say of
       it (`pairs`): a run's record may arrive late, after it, with the ids and the past of before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from causeway.core.kernel.errors import ProtocolFault
from causeway.core.kernel.identity import Generation, Pair
from causeway.core.kernel.json_fields import whole_number
from causeway.core.state import unreadable_records
from causeway.core.state.acl import Acl
from causeway.core.state.acl_ledger import entered, parse_acl, taken_out
from causeway.core.state.fences import (
    Fence,
    Fences,
    Lifts,
    fence_over,
    parse_fence,
    with_fence,
    without_legacy,
)
from causeway.core.state.flow_log import (
    Key,
    LogRecord,
    is_newer,
    is_readable,
    parse_key,
    parse_value_of,
)
from causeway.core.state.gap_ledger import AcceptedGap, parse_accepted
from causeway.core.state.known_pairs import KnownPair, after, parse_pair
from causeway.core.state.parked import LastParked, parse_last_parked
from causeway.core.state.position_ledger import ManualPosition, parse_manual_position
from causeway.core.state.settle_notes import SettleNote, with_note, without_note
from causeway.core.state.start_ledger import PairKey, StartAt, parse_starts
from causeway.core.state.start_ledger import key_of as start_key_of
from causeway.core.state.unreadable_records import Odd, OddRecord, SteppedOver, broken, newer, with_odd

NOBODY = ""
"""Whose foreign records are: no flow has that name."""
_NEVER = Generation(-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run that began: it owns the flow until a newer turn."""

    generation: Generation
    holder: str
    run_id: str
    lanes: int
    since_ms: int


@dataclass(frozen=True, slots=True)
class Alive:
    generation: int
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowState:
    generation: Generation = _NEVER
    """Offset of the newest turn; -1: the flow never ran."""
    run: Run | None = None
    alive: Alive | None = None
    ended: int = -1
    """Generation of the run that last recorded its end. A sign of life that comes late changes nothing."""
    parked: LastParked | None = None
    """What a run last recorded of partitions that are parked."""
    fences: Fences = field(default_factory=dict)
    """Those that stand, by token (`core/state/fences.py`)."""
    lifted: Lifts = field(default_factory=dict)
    """Those that don't any more, likewise."""
    most_lanes: int = 0
    lanes_varied: bool = False
    """Runs had different numbers of lanes: an old worker may hold an id that no lane of today claims."""
    pairs: dict[str, KnownPair] = field(default_factory=dict)
    """By target topic."""
    forgotten: Mapping[tuple[UUID, UUID], str] = field(default_factory=dict)
    """Source topics of pairs that a person has ended, by ids (source, target): no record of them counts any
    more."""
    starts: Mapping[PairKey, Mapping[int, StartAt]] = field(default_factory=dict)
    """Where partitions begin by the start rule, by pair of topics and partition."""
    gaps: dict[str, AcceptedGap] = field(default_factory=dict)
    """By their names, in the order in which they were accepted."""
    set_by_hand: dict[str, ManualPosition] = field(default_factory=dict)
    """Likewise."""
    source_cluster_id: str | None = None
    target_cluster_id: str | None = None
    settling: frozenset[SettleNote] = frozenset()
    """Where transactions of dead owners may have been settled."""
    acls: Mapping[Acl, int] = field(default_factory=dict)
    """Created by this flow on the target, with the place of the newest entry (`core/state/acl_ledger.py`)."""
    odd: Odd = field(default_factory=dict)
    """Records under its keys that can't be read."""
    stepped_over: tuple[SteppedOver, ...] = ()
    floor: int = 0
    """What is added to the offset of a turn (`core/offsets/lost_log.py`)."""

    def generation_at(self, offset: int) -> Generation:
        """Of a turn that was appended there."""
        return Generation(offset + self.floor)

    def start_of(self, pair: Pair) -> StartAt | None:
        return self.starts.get(start_key_of(pair), {}).get(pair.target.partition)

    @property
    def standing(self) -> tuple[Fence, ...]:
        """All fences that stand, as they were raised."""
        return tuple(sorted(self.fences.values(), key=lambda fence: fence.generation))

    @property
    def fence(self) -> Fence | None:
        """The newest one that stops the flow; None: it may run."""
        return next((fence for fence in reversed(self.standing) if fence.stops_the_flow), None)

    @property
    def resting(self) -> Fence | None:
        """The newest fence that a failover or a failback has raised; as long as one stands the flow rests,
        and nothing that a lane would find in it means anything."""
        return next((f for f in reversed(self.standing) if f.stops_the_flow and f.is_of_a_run), None)

    def fences_of(self, owner: str) -> tuple[Fence, ...]:
        return tuple(fence for fence in self.standing if fence.owner == owner)

    def fence_over(self, target_topic: str) -> Fence | None:
        """As `fences.fence_over`."""
        return fence_over(self.standing, target_topic)

    @property
    def running(self) -> Run | None:
        """The run that holds the flow, if it didn't say that it ended and nothing came after it."""
        if self.run is None or self.run.generation != self.generation:
            return None
        return None if self.ended == self.run.generation else self.run

    @property
    def last_sign_ms(self) -> int:
        """When the newest run was last known to live, by its own clock."""
        if self.run is None:
            return 0
        if self.alive is not None and self.alive.generation == self.run.generation:
            return self.alive.at_ms
        return self.run.since_ms


def fold(states: dict[str, FlowState], record: LogRecord) -> dict[str, FlowState]:
    """The states after one more record. What can't be read is odd: its flow's, or `NOBODY`'s."""
    key = parse_key(record)
    if key is None:
        return _with_foreign(states, record)
    before = states.get(key.flow, FlowState())
    state = (
        replace(before, odd=unreadable_records.without_key(before.odd, record.key)) if before.odd else before
    )
    if record.value is None:
        state = _without(state, key)
        return states if state is before else {**states, key.flow: state}
    found = _read_record(state, key, record)
    if isinstance(found, OddRecord):
        return {**states, key.flow: replace(before, odd=with_odd(before.odd, found))}
    if key.kind == "recovered" and NOBODY in states:  # it may have named a foreign one
        nobodys = states[NOBODY]
        states = {
            **states,
            NOBODY: replace(nobodys, odd=unreadable_records.without_named(nobodys.odd, key.rest)),
        }
    return states if found is before else {**states, key.flow: found}


def _read_record(state: FlowState, key: Key, record: LogRecord) -> FlowState | OddRecord:
    if not is_readable(key):
        return newer(record, key) if is_newer(key) else broken(record)
    try:
        value = parse_value_of(record, key.version)
        return state if key.kind == "claimed" else _apply(state, key, value, record)
    except (ProtocolFault, KeyError, ValueError):
        return broken(record)


def _with_foreign(states: dict[str, FlowState], record: LogRecord) -> dict[str, FlowState]:
    before = states.get(NOBODY, FlowState())
    return {**states, NOBODY: replace(before, odd=unreadable_records.after_foreign(before.odd, record))}


def _without(state: FlowState, key: Key) -> FlowState:
    """What is over; nothing else than notes of settling is ever taken away."""
    if key.kind != "settling":
        return state
    return replace(state, settling=without_note(state.settling, key.rest))


def _apply(state: FlowState, key: Key, value: dict[str, object], record: LogRecord) -> FlowState:
    match kind := key.kind:
        case "run" | "fence" | "lift":
            turned = {"run": _with_run, "fence": _with_fence, "lift": _with_legacy_lift}[kind]
            return turned(state, key, value, state.generation_at(record.offset))
        case "alive" | "ended":
            return _with_sign(state, kind, value)
        case "pairs" | "adopted" | "forgotten":
            return _with_pair(state, str(value["target_topic"]), value, kind)
        case "gap" | "set" | "parked" | "settling" | "starts":
            return _with_ledger(state, kind, value)
        case "clusters" | "floor" | "recovered":
            return (_with_clusters if kind == "clusters" else _with_recovery)(state, key, value)
        case _:
            return _with_acl(state, kind, value, record.offset)


def _with_recovery(state: FlowState, key: Key, value: dict[str, object]) -> FlowState:
    if key.kind == "floor":
        return replace(state, floor=max(state.floor, whole_number(value["floor"])))
    said = unreadable_records.parse_stepped_over(key.rest, value)
    return replace(
        state,
        odd=unreadable_records.without_named(state.odd, said.record),
        stepped_over=(*state.stepped_over, said),
    )


def _with_sign(state: FlowState, kind: str, value: dict[str, object]) -> FlowState:
    generation = whole_number(value["generation"])
    if kind == "ended":
        return replace(state, ended=generation)
    return replace(state, alive=Alive(generation, whole_number(value["at_ms"])))


def _with_run(state: FlowState, _: Key, value: dict[str, object], generation: Generation) -> FlowState:
    run = Run(
        generation=generation,
        holder=str(value["holder"]),
        run_id=str(value["run"]),
        lanes=whole_number(value["lanes"]),
        since_ms=whole_number(value["at_ms"]),
    )
    return replace(
        state,
        generation=generation,
        run=run,
        most_lanes=max(state.most_lanes, run.lanes, whole_number(value["most_lanes"])),
        lanes_varied=bool(value["varied"]) or lanes_vary(state, run.lanes),
    )


def _with_fence(state: FlowState, key: Key, value: dict[str, object], generation: Generation) -> FlowState:
    said, token = parse_fence(key.version, key.rest, value, generation), key.rest
    fences, lifted = dict(state.fences), dict(state.lifted)
    if isinstance(said, Fence):
        fences = with_fence(fences, said)
        lifted.pop(token, None)
    else:
        fences.pop(token, None)
        lifted[token] = said
    lanes = max(state.most_lanes, whole_number(value["most_lanes"]))
    return replace(state, generation=generation, fences=fences, lifted=lifted, most_lanes=lanes)


def _with_legacy_lift(
    state: FlowState, _: Key, value: dict[str, object], generation: Generation
) -> FlowState:
    kept = without_legacy(state.fences, whole_number(value["lifts"]))
    if kept is None:
        return state  # the fence that it names doesn't stand any more
    return replace(state, generation=generation, fences=kept)


def _with_acl(state: FlowState, kind: str, value: dict[str, object], offset: int) -> FlowState:
    acl = parse_acl(value)
    if kind == "acl":
        return replace(state, acls=entered(state.acls, acl, offset))
    return replace(state, acls=taken_out(state.acls, acl, whole_number(value["entry"])))


def _with_clusters(state: FlowState, _: Key, value: dict[str, object]) -> FlowState:
    return replace(state, source_cluster_id=str(value["source"]), target_cluster_id=str(value["target"]))


def _with_starts(state: FlowState, value: dict[str, object]) -> FlowState:
    key, starts = parse_starts(value)
    if key[1:] in state.forgotten:
        return state
    return replace(state, starts={**state.starts, key: {**starts, **state.starts.get(key, {})}})


def _with_pair(state: FlowState, target_topic: str, value: dict[str, object], kind: str) -> FlowState:
    """Invariant H. An adoption that comes late changes nothing either."""
    before, by_hand = state.pairs.get(target_topic), kind == "adopted"
    pair = parse_pair(value, is_adoption=by_hand)
    if kind == "forgotten":
        kept = {topic: known for topic, known in state.pairs.items() if known.ids != pair.ids}
        starts = {key: places for key, places in state.starts.items() if key[1:] != pair.ids}
        forgotten = {**state.forgotten, pair.ids: pair.source_topic}
        return replace(state, pairs=kept, starts=starts, forgotten=forgotten)
    if not by_hand and pair.ids in state.forgotten:
        return state
    pair = pair if before is None else after(before, pair, is_adoption=by_hand)
    return replace(state, pairs={**state.pairs, target_topic: pair})


def _with_ledger(state: FlowState, kind: str, value: dict[str, object]) -> FlowState:
    if kind == "gap":
        accepted = parse_accepted(value)
        return replace(state, gaps={**state.gaps, accepted.name: accepted})
    if kind == "settling":
        return replace(state, settling=with_note(state.settling, value))
    if kind == "starts":
        return _with_starts(state, value)
    if kind == "parked":
        return replace(state, parked=parse_last_parked(value))
    entry = parse_manual_position(value)
    return replace(state, set_by_hand={**state.set_by_hand, entry.name: entry})


def lanes_vary(before: FlowState, lanes: int) -> bool:
    return before.lanes_varied or before.most_lanes not in (0, lanes)
