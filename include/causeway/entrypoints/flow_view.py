"""What `plan` and `status` show of a flow that was looked at: nothing here asks a cluster anything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from causeway.core.beginnings import PlaceSet, SetByHand
from causeway.core.counting import counted
from causeway.core.gap_ledger import AcceptedGap
from causeway.core.identity import TopicPartition
from causeway.core.instants import rfc3339
from causeway.core.position import Position
from causeway.core.round_plan import PartitionFacts
from causeway.entrypoints.tables import table
from causeway.entrypoints.verbs import PARKED, Outcome
from causeway.flows.look import FlowView

_SHOWN_PLACES = 3
_State = Literal["ok", "new", "parked", "waits"]
"""New: no record of it is mirrored yet."""


def planned(view: FlowView) -> Outcome:
    rows = _rows(view)
    to_copy = sum(row.lag or 0 for row in rows if row.state != "parked")
    created = [topic.name for topic in view.landscape.topics.to_create]
    payload = {
        "flow": view.flow.name,
        "fenced": _fenced(view),
        "lag": to_copy,
        "topics_to_create": created,
        "topics_to_grow": [g.name for g in view.landscape.topics.to_grow],
        "parked": _parked(view),
        "refused_topics": _refused(view),
        "notes": list(view.landscape.topics.notes),
        "partitions": [row.as_dict() for row in rows],
    }
    summary = (
        f"{view.flow.name}: {counted(to_copy, 'offset')} to copy, {counted(len(created), 'topic')} to create"
        f"{_left_standing(rows)}; nothing was written"
    )
    lines = [_table(rows, "source", "target", "state", "position", "end", "lag"), "", summary]
    if view.state.fence is not None:
        lines.append(f"{view.flow.name}: {_whose_turn(view)}: no run may begin until that is lifted")
    return Outcome(
        payload=payload, text="\n".join([*lines, *_remarks(view)]), exit_code=PARKED if _is_red(view) else 0
    )


def standing(view: FlowView) -> Outcome:
    rows = _rows(view)
    lag = sum(row.lag or 0 for row in rows)
    payload = {
        "flow": view.flow.name,
        "generation": view.state.generation,
        "held_by": _held(view),
        "fenced": _fenced(view),
        "lag": lag,
        "not_begun": sum(row.state == "new" for row in rows),
        "partitions": [row.as_dict() for row in rows],
        "parked": _parked(view),
        "accepted_gaps": [_accepted(entry) for entry in view.state.gaps.values()],
        "set_by_hand": [_set(entry) for entry in view.state.set_by_hand.values()],
        "refused_topics": _refused(view),
    }
    columns = ("source", "target", "state", "position", "end", "lag", "mirrored", "repeats")
    lines = [
        _table(rows, *columns),
        "",
        f"{view.flow.name}: {_whose_turn(view)}; {counted(len(rows), 'partition')}, lag {lag:,}"
        f"{_left_standing(rows)}",
        *_remarks(view),
        *(_accepted_line(entry) for entry in view.state.gaps.values()),
        *(line for entry in view.state.set_by_hand.values() for line in _set_lines(entry)),
    ]
    return Outcome(payload=payload, text="\n".join(lines), exit_code=PARKED if _is_red(view) else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """A partition that the flow has to do with, whatever is known of it."""

    at: TopicPartition
    target: TopicPartition
    state: _State
    position: int | None = None
    end: int | None = None
    lag: int | None = None
    mirrored: int = 0
    repeats: int = 0

    def as_dict(self) -> dict[str, object]:
        own = asdict(self) | {"source": str(self.at), "target": str(self.target)}
        del own["at"]
        return own


def _rows(view: FlowView) -> list[_Row]:
    rows = {facts.pair.source: _row(view, facts) for facts in view.plan.partitions}
    for new in view.to_begin:
        rows[new.source] = _Row(
            at=new.source, target=new.target, state="new", end=new.last_stable, lag=new.lag
        )
    for at in (*view.parked, *view.plan.later):
        if at not in rows:
            target = TopicPartition(view.flow.naming.target_topic(at.topic), at.partition)
            rows[at] = _Row(at=at, target=target, state=_state(view, at, "new"))
    return [row for _, row in sorted(rows.items())]


def _row(view: FlowView, facts: PartitionFacts) -> _Row:
    position = facts.position if isinstance(facts.position, Position) else None
    return _Row(
        at=facts.pair.source,
        target=facts.pair.target,
        state=_state(view, facts.pair.source, "ok" if position else "new"),
        position=position.source_next if position else None,
        end=facts.last_stable,
        lag=facts.lag,
        mirrored=position.records if position else 0,
        repeats=position.aborted_records if position else 0,
    )


def _state(view: FlowView, at: TopicPartition, otherwise: _State) -> _State:
    if at in view.parked:
        return "parked"
    return "waits" if at in view.plan.later else otherwise


def _left_standing(rows: Sequence[_Row]) -> str:
    """Those that a run wouldn't copy, or would begin with; nothing where there are none."""
    parked = [row for row in rows if row.state == "parked"]
    new, waits = (sum(row.state == state for row in rows) for state in ("new", "waits"))
    behind = sum(row.lag or 0 for row in parked)
    said = [f"{len(parked)} parked ({counted(behind, 'offset')} behind)"] if parked else []
    said += [f"{waits} waiting"] if waits else []
    said += [f"{new} not begun"] if new else []
    return "".join(f"; {each}" for each in said)


def _is_red(view: FlowView) -> bool:
    return bool(view.parked or view.landscape.topics.refused)


def _held(view: FlowView) -> dict[str, str] | None:
    run = view.state.running
    if run is None:
        return None
    alive_at = rfc3339(view.state.last_sign_ms)
    return {"holder": run.holder, "since": rfc3339(run.since_ms), "alive_at": alive_at}


def _fenced(view: FlowView) -> dict[str, str] | None:
    fence = view.state.fence
    if fence is None:
        return None
    return {"by": fence.by, "because": fence.because, "since": rfc3339(fence.since_ms)}


def _parked(view: FlowView) -> list[dict[str, str]]:
    return [{"source": str(tp), "why": str(why), **why.as_dict()} for tp, why in sorted(view.parked.items())]


def _whose_turn(view: FlowView) -> str:
    run, fence = view.state.running, view.state.fence
    if fence is not None:
        return f"fenced by {fence.by} since {rfc3339(fence.since_ms)}: {fence.because}"
    if run is None:
        return "nobody holds it"
    alive = rfc3339(view.state.last_sign_ms)
    return f"held by {run.holder} since {rfc3339(run.since_ms)}, last sign of life {alive}"


def _table(rows: Iterable[_Row], *columns: str) -> str:
    cells = [tuple(row.as_dict()[column] for column in columns) for row in rows]
    return table(tuple(column.upper() for column in columns), cells, for_pasting=("POSITION", "END"))


def _refused(view: FlowView) -> list[dict[str, str]]:
    return [{"topic": r.topic, "reason": r.reason, "remedy": r.remedy} for r in view.landscape.topics.refused]


def _remarks(view: FlowView) -> list[str]:
    return [
        *view.landscape.topics.notes,
        *(f"LEFT ALONE {r['topic']}: {r['reason']}; {r['remedy']}" for r in _refused(view)),
        *(f"PARKED {tp}: {why}{_seen(view, tp)}" for tp, why in sorted(view.parked.items())),
        *(f"WAITS {tp}: {why}" for tp, why in view.plan.later.items()),
    ]


def _seen(view: FlowView, at: TopicPartition) -> str:
    """What can't be seen from here was seen by a run, at that time."""
    if at in view.plan.parked or view.state.parked is None:
        return ""
    return f" (found by a run at {rfc3339(view.state.parked.at_ms)})"


def _accepted(entry: AcceptedGap) -> dict[str, object]:
    return {**entry.as_dict(), "offsets": entry.gap.end - entry.gap.first, "at": rfc3339(entry.at_ms)}


def _accepted_line(entry: AcceptedGap) -> str:
    gap = entry.gap
    return (
        f"ACCEPTED {gap.source}: offsets {gap.first} to {gap.end - 1}, {gap.kind}; by {entry.by} at "
        f"{rfc3339(entry.at_ms)}: {entry.because}"
    )


def _set(entry: SetByHand) -> dict[str, object]:
    return {**entry.as_dict(), "at": rfc3339(entry.at_ms)}


def _set_lines(entry: SetByHand) -> Iterator[str]:
    """An accepted gap has its own line already."""
    if entry.how == "accept-gap":
        return
    said = f"by {entry.by} at {rfc3339(entry.at_ms)}: {entry.because}"
    for place in entry.places[:_SHOWN_PLACES]:
        yield f"SET {entry.source(place)}: {entry.how}: {_place(entry, place)}; {said}"
    more = len(entry.places) - _SHOWN_PLACES
    if more > 0:
        yield f"SET {entry.source_topic}: {entry.how}: and {more} partitions more, all in --json; {said}"


def _place(entry: SetByHand, place: PlaceSet) -> str:
    stood = f", it stood at {place.stood_at}" if place.stood_at not in (-1, place.source_next) else ""
    return (
        f"on from source offset {place.source_next}, behind {entry.target_topic}-{place.partition} offset "
        f"{place.target_next}{stood}"
    )
