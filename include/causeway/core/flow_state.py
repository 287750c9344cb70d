"""Who may run a flow: the records of `causeway-flows.internal` and what they add up to.

The topic has one partition, so its records have one order. A *turn* is a record after which older
work must stop: a run that begins, a fence, a lift. The offset of a flow's newest turn is the flow's
generation. Records are plain (no transaction): being appended is what counts, not who appended.

Invariants
    A. A fence stands until a lift that names it. A run's own record never lifts it; nor does a lift that
       was sent for an older fence and arrives late, on a connection that its sender has long given up.
    B. `most_lanes` never shrinks: a fence has to claim every lane that the flow ever had.
    C. Signs of life and ends of runs name the generation they belong to; they open nothing.
    D. Whoever appends a record and reads up to it has read every turn in front of it, whichever node
       answered: a leader that was deposed and doesn't know it can't show a record that it never got.
       `claimed` is appended for nothing but that.
    E. Keys make the topic compactable without losing any of this: one per flow and kind (and lane);
       one for each lift and adoption, or a late one would take the place of the one that counts.
    F. What a person decided about a pair of topics (`adopted`, `forgotten`) stands above what runs say of
       it (`pairs`): a run's record may arrive late, behind it, with the ids and the past of before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from causeway.core.acl_ledger import as_value, entered, key_of, parse_acl, taken_out
from causeway.core.acls import Acl
from causeway.core.beginnings import SetByHand, parse_set_by_hand
from causeway.core.errors import ProtocolFault
from causeway.core.flow_log import LogRecord, as_record, parse_key, parse_value_of, unreadable
from causeway.core.gap_ledger import AcceptedGap, parse_accepted
from causeway.core.identity import Generation
from causeway.core.last_parked import LastParked, parse_last_parked
from causeway.core.settle_notes import SettleNote, with_note, without_note

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
class Fence:
    generation: int
    by: str
    because: str
    since_ms: int
    token: str = field(default="", compare=False)
    """Known to who raised it and to nobody else: by it a command finds its own fence again."""
    over: Fence | None = field(default=None, compare=False)
    """The one that stood when it was raised: for whoever just raised this one; compaction takes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownPair:
    """A target topic that this flow has written, with the topics' ids at that time."""

    source_topic: str
    source_topic_id: UUID
    target_topic_id: UUID
    partitions: int
    adopted_at: int = -1
    """Generation of the last adoption of one of its partitions; -1: none. What the offset map tells of
    earlier times says nothing about where to go on."""
    source_emptied: bool = False
    """The source was emptied, to be filled again from the target: what this flow wrote there may go back.
    Until the next adoption."""

    @property
    def ids(self) -> tuple[UUID, UUID]:
        return self.source_topic_id, self.target_topic_id


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowState:
    generation: Generation = _NEVER
    """Offset of the newest turn; -1: the flow never ran."""
    run: Run | None = None
    alive: Alive | None = None
    ended: int = -1
    """Generation of the run that last said that it ended. A sign of life that comes late changes nothing."""
    parked: LastParked | None = None
    """What a run last said of partitions that stand still."""
    fence: Fence | None = None
    most_lanes: int = 0
    lanes_varied: bool = False
    """Runs had different numbers of lanes: an old worker may hold an id that no lane of today claims."""
    pairs: dict[str, KnownPair] = field(default_factory=dict)
    """By target topic."""
    forgotten: Mapping[tuple[UUID, UUID], str] = field(default_factory=dict)
    """Source topics of pairs that a person has ended, by ids (source, target): nothing that is said of them
    counts any more."""
    gaps: dict[str, AcceptedGap] = field(default_factory=dict)
    """By their names, in the order in which they were accepted."""
    set_by_hand: dict[str, SetByHand] = field(default_factory=dict)
    """Likewise."""
    source_cluster_id: str | None = None
    target_cluster_id: str | None = None
    settling: frozenset[SettleNote] = frozenset()
    """Where transactions of dead owners may have been settled."""
    acls: Mapping[Acl, int] = field(default_factory=dict)
    """Created by this flow on the target, with the place of the newest entry (`core/acl_ledger.py`)."""

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
    """The states after one more record of the log; records of other makers are refused, not skipped."""
    kind, flow = parse_key(record)
    if record.value is None:
        return _without(states, kind, flow, record)
    value = parse_value_of(record)
    if kind == "claimed":
        return states  # says nothing: it was appended to be read up to
    before = states.get(flow, FlowState())
    try:
        return {**states, flow: _apply(before, kind, value, record)}
    except (KeyError, ValueError) as cause:
        raise unreadable(record, "value") from cause


def _without(states: dict[str, FlowState], kind: str, flow: str, record: LogRecord) -> dict[str, FlowState]:
    """What is over; nothing else than notes of settling is ever taken away."""
    if kind != "settling":
        return states
    state = states.get(flow, FlowState())
    place = record.key.decode().split("/", 3)[-1]
    return {**states, flow: replace(state, settling=without_note(state.settling, place))}


def _apply(state: FlowState, kind: str, value: dict[str, object], record: LogRecord) -> FlowState:
    match kind:
        case "run":
            return _with_run(state, value, Generation(record.offset))
        case "alive" | "ended" | "clusters":
            return _with_clusters(state, value) if kind == "clusters" else _with_sign(state, kind, value)
        case "fence" | "lift":
            turned = _with_fence if kind == "fence" else _with_lift
            return turned(state, value, Generation(record.offset))
        case "pairs" | "adopted" | "forgotten":
            return _with_pair(state, str(value["target_topic"]), _pair(value), kind)
        case "gap" | "set" | "parked" | "settling":
            return _with_ledger(state, kind, value)
        case "acl" | "acl_gone":
            return _with_acl(state, kind, value, record.offset)
        case _:
            raise ProtocolFault(
                f"record {record.offset} of the flows topic",
                value=kind,
                rule="is of a kind that this version doesn't know",
                remedy="run the newest version of Causeway that works on this cluster",
            )


def _with_sign(state: FlowState, kind: str, value: dict[str, object]) -> FlowState:
    generation = _int(value["generation"])
    if kind == "ended":
        return replace(state, ended=generation)
    return replace(state, alive=Alive(generation, _int(value["at_ms"])))


def _with_run(state: FlowState, value: dict[str, object], generation: Generation) -> FlowState:
    run = Run(
        generation=generation,
        holder=str(value["holder"]),
        run_id=str(value["run"]),
        lanes=_int(value["lanes"]),
        since_ms=_int(value["at_ms"]),
    )
    return replace(
        state,
        generation=generation,
        run=run,
        most_lanes=max(state.most_lanes, run.lanes, _int(value["most_lanes"])),
        lanes_varied=bool(value["varied"]) or _varies(state, run.lanes),
    )


def _with_fence(state: FlowState, value: dict[str, object], generation: Generation) -> FlowState:
    fence = Fence(
        generation=generation,
        by=str(value["by"]),
        because=str(value["because"]),
        since_ms=_int(value["at_ms"]),
        token=str(value.get("token", "")),
        over=replace(state.fence, over=None) if state.fence else None,
    )
    lanes = max(state.most_lanes, _int(value["most_lanes"]))
    return replace(state, generation=generation, fence=fence, most_lanes=lanes)


def _with_lift(state: FlowState, value: dict[str, object], generation: Generation) -> FlowState:
    if state.fence is None or state.fence.generation != _int(value["lifts"]):
        return state  # the fence that it names doesn't stand any more
    return replace(state, generation=generation, fence=None)


def _with_acl(state: FlowState, kind: str, value: dict[str, object], offset: int) -> FlowState:
    acl = parse_acl(value)
    if kind == "acl":
        return replace(state, acls=entered(state.acls, acl, offset))
    return replace(state, acls=taken_out(state.acls, acl, _int(value["entry"])))


def _with_clusters(state: FlowState, value: dict[str, object]) -> FlowState:
    return replace(state, source_cluster_id=str(value["source"]), target_cluster_id=str(value["target"]))


def _with_pair(state: FlowState, target_topic: str, pair: KnownPair, kind: str) -> FlowState:
    """Invariant F. An adoption that comes late changes nothing either."""
    before, by_hand = state.pairs.get(target_topic), kind == "adopted"
    if kind == "forgotten":
        kept = {topic: known for topic, known in state.pairs.items() if known.ids != pair.ids}
        return replace(state, pairs=kept, forgotten={**state.forgotten, pair.ids: pair.source_topic})
    if not by_hand and pair.ids in state.forgotten:
        return state
    if before is not None and before.adopted_at >= 0:
        if pair.adopted_at < before.adopted_at if by_hand else pair.ids != before.ids:
            return state
        pair = replace(
            pair,
            adopted_at=max(pair.adopted_at, before.adopted_at),
            source_emptied=pair.source_emptied if by_hand else before.source_emptied,
        )
    return replace(state, pairs={**state.pairs, target_topic: pair})


def _with_ledger(state: FlowState, kind: str, value: dict[str, object]) -> FlowState:
    if kind == "gap":
        accepted = parse_accepted(value)
        return replace(state, gaps={**state.gaps, accepted.name: accepted})
    if kind == "settling":
        return replace(state, settling=with_note(state.settling, value))
    if kind == "parked":
        return replace(state, parked=parse_last_parked(value))
    entry = parse_set_by_hand(value)
    return replace(state, set_by_hand={**state.set_by_hand, entry.name: entry})


def _pair(value: dict[str, object]) -> KnownPair:
    return KnownPair(
        source_topic=str(value["source_topic"]),
        source_topic_id=UUID(str(value["source_id"])),
        target_topic_id=UUID(str(value["target_id"])),
        partitions=_int(value["partitions"]),
        adopted_at=_int(value.get("adopted_at", -1)),
        source_emptied=bool(value.get("source_emptied", False)),
    )


def _varies(before: FlowState, lanes: int) -> bool:
    return before.lanes_varied or before.most_lanes not in (0, lanes)


def run_record(
    flow: str, before: FlowState, *, holder: str, run_id: str, lanes: int, at_ms: int
) -> tuple[bytes, bytes]:
    """`before` is the state that the run found: what compaction may take with older records is carried on."""
    value: dict[str, object] = {
        "holder": holder,
        "run": run_id,
        "lanes": lanes,
        "most_lanes": max(before.most_lanes, lanes),
        "varied": _varies(before, lanes),
        "at_ms": at_ms,
    }
    return as_record("run", flow, value)


def alive_record(flow: str, *, generation: int, ended: bool, at_ms: int) -> tuple[bytes, bytes]:
    """A sign of life, or the run's own word that it ended."""
    return as_record("ended" if ended else "alive", flow, {"generation": generation, "at_ms": at_ms})


def parked_record(flow: str, parked: LastParked) -> tuple[bytes, bytes]:
    return as_record("parked", flow, parked.as_dict())


def fence_record(
    flow: str, *, by: str, because: str, most_lanes: int, at_ms: int, token: str = ""
) -> tuple[bytes, bytes]:
    value: dict[str, object] = {"by": by, "because": because, "most_lanes": most_lanes, "at_ms": at_ms}
    return as_record("fence", flow, {**value, "token": token} if token else value)


def lift_record(flow: str, *, lifts: int, by: str, because: str, at_ms: int) -> tuple[bytes, bytes]:
    """`lifts` is the generation of the only fence that it lifts."""
    key, body = as_record("lift", flow, {"lifts": lifts, "by": by, "because": because, "at_ms": at_ms})
    return key + f"/{lifts}".encode(), body


def pair_record(flow: str, target_topic: str, pair: KnownPair) -> tuple[bytes, bytes]:
    """A run's word, in front of the first record."""
    key, body = as_record("pairs", flow, _pair_value(target_topic, pair))
    return key + b"/" + target_topic.encode(), body


def adopted_record(flow: str, target_topic: str, pair: KnownPair) -> tuple[bytes, bytes]:
    """A person's word: this pair, and where it goes on, since `pair.adopted_at`."""
    key, body = as_record("adopted", flow, _pair_value(target_topic, pair))
    return key + f"/{target_topic}/{pair.adopted_at}".encode(), body


def forgotten_record(flow: str, target_topic: str, pair: KnownPair) -> tuple[bytes, bytes]:
    """A person's word: this pair is over; what comes under its names begins anew."""
    key, body = as_record("forgotten", flow, _pair_value(target_topic, pair))
    return key + f"/{target_topic}/{pair.source_topic_id.hex}/{pair.target_topic_id.hex}".encode(), body


def gap_record(flow: str, accepted: AcceptedGap) -> tuple[bytes, bytes]:
    key, body = as_record("gap", flow, accepted.as_dict())
    return key + f"/{accepted.name}".encode(), body


def set_record(flow: str, entry: SetByHand) -> tuple[bytes, bytes]:
    key, body = as_record("set", flow, entry.as_dict())
    return key + f"/{entry.name}".encode(), body


def _pair_value(target_topic: str, pair: KnownPair) -> dict[str, object]:
    said: dict[str, object] = {
        "target_topic": target_topic,
        "source_topic": pair.source_topic,
        "source_id": str(pair.source_topic_id),
        "target_id": str(pair.target_topic_id),
        "partitions": pair.partitions,
        "adopted_at": pair.adopted_at,
    }
    return {**said, "source_emptied": True} if pair.source_emptied else said


def clusters_record(flow: str, *, source: str, target: str) -> tuple[bytes, bytes]:
    return as_record("clusters", flow, {"source": source, "target": target})


def acl_record(flow: str, acl: Acl) -> tuple[bytes, bytes]:
    """The flow is about to create it."""
    key, body = as_record("acl", flow, as_value(acl))
    return key + f"/{key_of(acl)}".encode(), body


def acl_gone_record(flow: str, acl: Acl, *, entry: int) -> tuple[bytes, bytes]:
    """That entry of it is over; a newer one isn't, and keeps its key."""
    key, body = as_record("acl_gone", flow, {**as_value(acl), "entry": entry})
    return key + f"/{entry}".encode(), body


def claimed_record(flow: str, *, lane: int | str, generation: int) -> tuple[bytes, bytes]:
    """A lane was claimed by a worker of that generation."""
    key, body = as_record("claimed", flow, {"generation": generation})
    return key + f"/{lane}".encode(), body


def _int(value: object) -> int:
    if type(value) is not int:  # a bool is an int to Python, not to us
        raise ProtocolFault("a number in the flows topic", value=value, rule="must be an integer")
    return value
