"""What `plan` and `status` show of a flow that was looked at: nothing here asks a cluster anything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from causeway.core.beginnings import PlaceSet, SetByHand
from causeway.core.gap_ledger import AcceptedGap
from causeway.core.instants import rfc3339
from causeway.core.position import Position
from causeway.entrypoints.tables import table
from causeway.entrypoints.verbs import PARKED, Outcome
from causeway.flows.look import FlowView

_SHOWN_PLACES = 3


def planned(view: FlowView) -> Outcome:
    rows = [*_begin_rows(view), *_partition_rows(view)]
    waiting = sum(int(str(row["lag"])) for row in rows)
    created = [topic.name for topic in view.landscape.topics.to_create]
    payload = {
        "flow": view.flow.name,
        "lag": waiting,
        "topics_to_create": created,
        "topics_to_grow": [g.name for g in view.landscape.topics.to_grow],
        "refused_topics": _refused(view),
        "notes": list(view.landscape.topics.notes),
        "partitions": rows,
    }
    lines = [
        _table(rows, ("source", "target", "position", "end", "lag")),
        "",
        f"{view.flow.name}: {waiting:,} offsets to copy, {len(created)} topics to create; "
        "nothing was written",
        *_remarks(view),
    ]
    return Outcome(payload=payload, text="\n".join(lines))


def standing(view: FlowView) -> Outcome:
    rows = _partition_rows(view)
    run, fence = view.state.running, view.state.fence
    payload = {
        "flow": view.flow.name,
        "generation": view.state.generation,
        "held_by": None
        if run is None
        else {
            "holder": run.holder,
            "since": rfc3339(run.since_ms),
            "alive_at": rfc3339(view.state.last_sign_ms),
        },
        "fenced": None
        if fence is None
        else {"by": fence.by, "because": fence.because, "since": rfc3339(fence.since_ms)},
        "lag": view.plan.lag,
        "not_begun": len(view.to_begin),
        "partitions": rows,
        "parked": [
            {"source": str(tp), "why": str(why), **why.as_dict()} for tp, why in view.plan.parked.items()
        ],
        "accepted_gaps": [_accepted(entry) for entry in view.state.gaps.values()],
        "set_by_hand": [_set(entry) for entry in view.state.set_by_hand.values()],
        "refused_topics": _refused(view),
    }
    begun = f"{len(rows)} partitions, lag {view.plan.lag:,}"
    lines = [
        _table(rows, ("source", "target", "position", "end", "lag", "mirrored", "repeats")),
        "",
        f"{view.flow.name}: {_whose_turn(view)}; {begun}; {len(view.to_begin)} partitions not begun",
        *_remarks(view),
        *(_accepted_line(entry) for entry in view.state.gaps.values()),
        *(line for entry in view.state.set_by_hand.values() for line in _set_lines(entry)),
    ]
    is_red = view.plan.parked or view.landscape.topics.refused
    return Outcome(payload=payload, text="\n".join(lines), exit_code=PARKED if is_red else 0)


def _whose_turn(view: FlowView) -> str:
    run, fence = view.state.running, view.state.fence
    if fence is not None:
        return f"fenced by {fence.by} since {rfc3339(fence.since_ms)}: {fence.because}"
    if run is None:
        return "nobody holds it"
    alive = rfc3339(view.state.last_sign_ms)
    return f"held by {run.holder} since {rfc3339(run.since_ms)}, last sign of life {alive}"


def _partition_rows(view: FlowView) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for facts in view.plan.partitions:
        position = facts.position if isinstance(facts.position, Position) else None
        rows.append(
            {
                "source": str(facts.pair.source),
                "target": str(facts.pair.target),
                "position": position.source_next if position else None,
                "end": facts.last_stable,
                "lag": facts.lag,
                "mirrored": position.records if position else 0,
                "repeats": position.aborted_records if position else 0,
            }
        )
    return rows


def _begin_rows(view: FlowView) -> list[dict[str, object]]:
    return [
        {
            "source": str(new.source),
            "target": str(new.target),
            "position": None,
            "end": new.last_stable,
            "lag": new.lag,
        }
        for new in view.to_begin
    ]


def _table(rows: Iterable[dict[str, object]], columns: tuple[str, ...]) -> str:
    return table(tuple(c.upper() for c in columns), [tuple(row[c] for c in columns) for row in rows])


def _refused(view: FlowView) -> list[dict[str, str]]:
    return [{"topic": r.topic, "reason": r.reason, "remedy": r.remedy} for r in view.landscape.topics.refused]


def _remarks(view: FlowView) -> list[str]:
    return [
        *view.landscape.topics.notes,
        *(f"LEFT ALONE {r['topic']}: {r['reason']}; {r['remedy']}" for r in _refused(view)),
        *(f"PARKED {tp}: {why}" for tp, why in view.plan.parked.items()),
        *(f"WAITS {tp}: {why}" for tp, why in view.plan.later.items()),
    ]


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
