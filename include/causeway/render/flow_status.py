"""What `plan` and `status` show of a flow that was looked at: nothing here asks a cluster anything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from causeway.core.copy.round_plan import PartitionFacts
from causeway.core.groups.unprotected import Unprotected, unprotected_lines
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.plurals import counted
from causeway.core.kernel.timestamps import how_long_ago, rfc3339
from causeway.core.offsets.unreadable_records import map_gone_line
from causeway.core.state.fences import Fence
from causeway.core.state.gap_ledger import AcceptedGap
from causeway.core.state.position_ledger import ManualPosition, PlaceSet
from causeway.core.state.repair_commands import fence_lines
from causeway.render.outcome import PARKED, Outcome
from causeway.render.silent_source import last_record, silence_as_dict, silence_lines, with_trouble
from causeway.render.tables import table
from causeway.usecases.inspect.flow_status import FlowView

_SHOWN_PLACES = 3
_State = Literal["ok", "new", "parked", "waits", "rests"]
"""New: no record of it is mirrored yet."""


def planned(view: FlowView) -> Outcome:
    rows = _rows(view)
    to_copy = sum(row.lag or 0 for row in rows if row.state != "parked")
    created = [topic.name for topic in view.landscape.topics.to_create]
    payload = {
        "flow": view.flow.name,
        "fenced": fence_words(view.state.fence),
        "fences": [fence_as_dict(fence) for fence in view.state.standing],
        "lag": to_copy,
        "topics_to_create": created,
        "topics_to_grow": [g.name for g in view.landscape.topics.to_grow],
        "parked": _parked_rows(view),
        "refused_topics": _refused_topics(view),
        "log_troubles": _troubles(view),
        "notes": list(view.landscape.topics.notes),
        "partitions": [row.as_dict() for row in rows],
    }
    summary = (
        f"{view.flow.name}: {_at_least(rows)}{counted(to_copy, 'offset')} to copy, "
        f"{counted(len(created), 'topic')} to create"
        f"{_left_standing(rows)}; nothing was written"
    )
    lines = [*_trouble_lines(view), _table(rows, "source", "target", "state", "position", "end", "lag"), ""]
    lines.append(summary)
    if view.state.fence is not None:
        lines.append(f"{view.flow.name}: {_whose_turn(view)}: no run may begin as long as that stands")
    return Outcome(payload=payload, text="\n".join([*lines, *_remarks(view)]), exit_code=_exit_code(view))


def standing(view: FlowView) -> Outcome:
    rows = _rows(view)
    lag = sum(row.lag or 0 for row in rows)
    payload = {
        "flow": view.flow.name,
        "source_answers": view.silence is None,
        "source_silent": silence_as_dict(view),
        "generation": view.state.generation,
        "held_by": _held(view),
        "fenced": fence_words(view.state.fence),
        "fences": [fence_as_dict(fence) for fence in view.state.standing],
        "lag": lag if view.silence is None else None,
        "not_begun": sum(row.state == "new" for row in rows),
        "partitions": [row.as_dict() for row in rows],
        "parked": _parked_rows(view),
        "accepted_gaps": [_accepted(entry) for entry in view.state.gaps.values()],
        "set_by_hand": [_set(entry) for entry in view.state.set_by_hand.values()],
        "refused_topics": _refused_topics(view),
        "log_troubles": _troubles(view),
        "stepped_over": [asdict(said) for said in view.state.stepped_over],
    }
    columns = ("source", "target", "state", "position", "end", "lag", "mirrored", "repeats")
    known = f"{_at_least(rows)}{lag:,}" if view.silence is None else "unknown"
    lines = [
        *silence_lines(view),
        *_trouble_lines(view),
        _table(rows, *columns, *(("last record", "age") if view.unseen else ())),
        "",
        f"{view.flow.name}: {_whose_turn(view)}; {counted(len(rows), 'partition')}, "
        f"{'which rest' if view.rests else f'lag {known}'}{_left_standing(rows)}{last_record(view)}",
        *_remarks(view),
        *(_accepted_line(entry) for entry in view.state.gaps.values()),
        *(line for entry in view.state.set_by_hand.values() for line in _set_lines(entry)),
        *(
            f"STEPPED OVER record {said.record}: by {said.by} at {rfc3339(said.at_ms)}: {said.because}"
            for said in view.state.stepped_over
        ),
    ]
    return Outcome(payload=with_trouble(payload, view), text="\n".join(lines), exit_code=_exit_code(view))


def with_unprotected(flow: str, shown: Outcome, found: Unprotected) -> Outcome:
    """The same, and in red which groups are left out since they returned."""
    payload = {**shown.payload, "unprotected": found.as_dict()}
    text = "\n".join([shown.text, *unprotected_lines(flow, found)])
    exit_code = shown.exit_code or (0 if found.is_nothing else PARKED)
    return Outcome(payload=payload, text=text, exit_code=exit_code)


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
    last_record_at: str | None = None
    """Of those whose source couldn't be asked."""
    age: str | None = None

    def as_dict(self) -> dict[str, object]:
        own = asdict(self) | {"source": str(self.at), "target": str(self.target)}
        del own["at"], own["age"]
        return own

    def cell(self, column: str) -> object:
        match column:
            case "last record":
                return self.last_record_at
            case "age":
                return self.age
            case "end" | "lag" if self.state == "waits" and getattr(self, column) is None:
                return "unknown"
        return self.as_dict()[column]


def _rows(view: FlowView) -> list[_Row]:
    rows = {facts.pair.source: _partition_row(view, facts) for facts in view.plan.partitions}
    for new in view.to_begin:
        rows[new.source] = _Row(
            at=new.source, target=new.target, state="new", end=new.last_stable, lag=new.lag
        )
    for at in (*view.parked, *view.plan.later):
        if at not in rows:
            rows[at] = _row_of_target(view, at)
    return [row for _, row in sorted(rows.items())]


def _row_of_target(view: FlowView, at: TopicPartition) -> _Row:
    """Of a partition whose source did not answer."""
    known = view.unseen.get(at)
    position = None if known is None else known.position
    last_ms = None if known is None else known.last_record_ms
    return _Row(
        at=at,
        target=TopicPartition(view.flow.naming.target_topic(at.topic), at.partition),
        state=_state_of(view, at, "new"),
        position=position.source_next if position else None,
        mirrored=position.records if position else 0,
        repeats=position.aborted_records if position else 0,
        last_record_at=None if last_ms is None else rfc3339(last_ms),
        age=None if last_ms is None else how_long_ago(last_ms, view.looked_at_ms),
    )


def _partition_row(view: FlowView, facts: PartitionFacts) -> _Row:
    position = facts.standing
    return _Row(
        at=facts.pair.source,
        target=facts.pair.target,
        state=_state_of(view, facts.pair.source, "ok" if position else "new"),
        position=position.source_next if position else None,
        end=facts.last_stable,
        lag=None if view.rests else facts.lag,
        mirrored=position.records if position else 0,
        repeats=position.aborted_records if position else 0,
    )


def _state_of(view: FlowView, at: TopicPartition, otherwise: _State) -> _State:
    if view.rests:
        return "rests"
    if at in view.parked:
        return "parked"
    return "waits" if at in view.plan.later else otherwise


def _left_standing(rows: Sequence[_Row]) -> str:
    """Those that a run wouldn't copy, or would begin with; nothing where there are none."""
    parked = [row for row in rows if row.state == "parked"]
    new, waits = (sum(row.state == state for row in rows) for state in ("new", "waits"))
    lag = sum(row.lag or 0 for row in parked)
    said = [f"{len(parked)} parked (lag {counted(lag, 'offset')})"] if parked else []
    said += [f"{waits} waiting"] if waits else []
    said += [f"{new} not begun"] if new else []
    return "".join(f"; {each}" for each in said)


def _at_least(rows: Sequence[_Row]) -> str:
    return "at least " if any(row.state == "waits" and row.lag is None for row in rows) else ""


def _is_red(view: FlowView) -> bool:
    return bool(view.parked or view.landscape.topics.refused or view.map_is_gone)


def _exit_code(view: FlowView) -> int:
    """Causeway's own topics first, then the source: where it doesn't answer, what the target knows isn't the
    whole truth."""
    if troubles := view.log.troubles:
        return troubles[0].exit_code
    if view.silence is not None:
        return view.silence.trouble.exit_code
    return PARKED if _is_red(view) else 0


def _troubles(view: FlowView) -> list[str]:
    return [*view.log.lines, *([map_gone_line(view.flow)] if view.map_is_gone else [])]


def _trouble_lines(view: FlowView) -> list[str]:
    """Of the flow's own topics. Danger first."""
    found = [f"FAILED {line}" for line in _troubles(view)]
    return [*found, ""] if found else []


def _held(view: FlowView) -> dict[str, str] | None:
    run = view.state.running
    if run is None:
        return None
    alive_at = rfc3339(view.state.last_sign_ms)
    return {"holder": run.holder, "since": rfc3339(run.since_ms), "alive_at": alive_at}


def fence_words(fence: Fence | None) -> dict[str, str] | None:
    if fence is None:
        return None
    return {"by": fence.by, "because": fence.because, "since": rfc3339(fence.since_ms)}


def fence_as_dict(fence: Fence) -> dict[str, object]:
    topics = None if fence.topics is None else sorted(fence.topics)
    return {"generation": fence.generation, **(fence_words(fence) or {}), "topics": topics}


def _fence_lines(view: FlowView) -> list[str]:
    """Nothing where the one that the summary names is all there is."""
    standing = view.state.standing
    if [fence.stops_the_flow for fence in standing] in ([], [True]):
        return []
    return [f"FENCED {line}" for line in fence_lines(view.flow.name, standing)]


def _parked_rows(view: FlowView) -> list[dict[str, str]]:
    return [{"source": str(tp), "why": str(why), **why.as_dict()} for tp, why in sorted(view.parked.items())]


def _whose_turn(view: FlowView) -> str:
    run, fence = view.state.running, view.state.fence
    if fence is not None:
        return f"fenced {fence}"
    if run is None:
        return "nobody holds it"
    alive = rfc3339(view.state.last_sign_ms)
    return f"held by {run.holder} since {rfc3339(run.since_ms)}, last sign of life {alive}"


def _table(rows: Iterable[_Row], *columns: str) -> str:
    cells = [tuple(row.cell(column) for column in columns) for row in rows]
    return table(tuple(column.upper() for column in columns), cells, for_pasting=("POSITION", "END"))


def _refused_topics(view: FlowView) -> list[dict[str, str]]:
    return [{"topic": r.topic, "reason": r.reason, "remedy": r.remedy} for r in view.landscape.topics.refused]


def _remarks(view: FlowView) -> list[str]:
    return [
        *_fence_lines(view),
        *view.landscape.topics.notes,
        *(f"LEFT ALONE {r['topic']}: {r['reason']}; {r['remedy']}" for r in _refused_topics(view)),
        *(f"PARKED {tp}: {why}{_seen(view, tp)}" for tp, why in sorted(view.parked.items())),
        *(f"WAITS {tp}: {why}" for tp, why in view.plan.later.items() if view.silence is None),
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


def _set(entry: ManualPosition) -> dict[str, object]:
    return {**entry.as_dict(), "at": rfc3339(entry.at_ms)}


def _set_lines(entry: ManualPosition) -> Iterator[str]:
    """An accepted gap has its own line already."""
    if entry.how == "accept-gap":
        return
    said = f"by {entry.by} at {rfc3339(entry.at_ms)}: {entry.because}"
    shown = entry.places if len(entry.places) == _SHOWN_PLACES + 1 else entry.places[:_SHOWN_PLACES]
    for place in shown:
        yield f"SET {entry.source(place)}: {entry.how}: {_place_text(entry, place)}; {said}"
    more = len(entry.places) - len(shown)
    if more:
        yield f"SET {entry.source_topic}: {entry.how}: and {more} partitions more, all in --json; {said}"


def _place_text(entry: ManualPosition, place: PlaceSet) -> str:
    stood = f", it stood at {place.stood_at}" if place.stood_at not in (-1, place.source_next) else ""
    return (
        f"on from source offset {place.source_next}, appended from {entry.target_topic}-{place.partition} "
        f"offset {place.target_next} on{stood}"
    )
