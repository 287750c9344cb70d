"""The failover sheet and what became of it, as text for a terminal and for a task's log.

Totals stand first, then what is left alone, then the tables, the dearest rows first: what is too long is cut
from below. No line is longer than a terminal is wide, and what holds of many rows is said once, below them.
"""

from __future__ import annotations

from collections.abc import Sequence

from causeway.core.counting import counted
from causeway.core.failover.figure import largest, total
from causeway.core.failover.place import Answer, Place, shown
from causeway.core.failover.plan import Move
from causeway.core.failover.progress import Astray
from causeway.core.failover.sheet import Sheet
from causeway.core.instants import how_long_ago, rfc3339, rfc3339_ms
from causeway.entrypoints.tables import (
    COLUMNS,
    IN_JSON,
    NotesBelow,
    cut_line,
    one_line,
    shortened,
    table,
    wrapped,
)

_MOST_ROWS = 40


def sheet_text(sheet: Sheet) -> str:
    return "\n".join(
        [
            *wrapped([headline(sheet), *_state(sheet), totals(sheet), *_remarks(sheet)]),
            "",
            *_topics(sheet),
            "",
            *_groups(sheet),
            "",
            *_moves(sheet),
        ]
    )


def question_text(sheet: Sheet) -> str:
    """The sheet, and once more below it what somebody says yes to."""
    return "\n".join([sheet_text(sheet), "", *wrapped([totals(sheet)])])


def totals(sheet: Sheet) -> str:
    """What somebody says yes to, in a line."""
    return f"{sheet.lost} records {lost_or_left(sheet)}; {what_becomes_of_groups(sheet)}"


def lost_or_left(sheet: Sheet) -> str:
    return "left to copy" if sheet.plan.wish.is_planned else "lost"


def what_becomes_of_groups(sheet: Sheet) -> str:
    groups, skipping = len(sheet.groups), [g.skips for g in sheet.groups if not g.skips.is_nothing]
    up_to = "" if all(skips.exactly for skips in skipping) else "up to "
    by = f", by {up_to}{len(skipping):,} of {counted(groups, 'group')}" if skipping else ""
    return (
        f"skipped: {sheet.skips}{by}; read again: {sheet.rereads}; "
        f"to move: {counted(groups, 'group')}; left alone: {len(sheet.plan.left_alone):,}"
    )


def moves_text(sheet: Sheet) -> str:
    """The plan without its price."""
    return "\n".join([*wrapped([headline(sheet), *_state(sheet)]), "", *_moves(sheet)])


def headline(sheet: Sheet) -> str:
    wish = sheet.plan.wish
    latest = "where each group stands, planned" if wish.is_planned else "latest"
    at = latest
    if wish.at_ms is not None:
        at = f"{rfc3339_ms(wish.at_ms)} ({how_long_ago(wish.at_ms, sheet.made_at_ms)})"
    back = f", {wish.safety_ms / 1000:g} s stepped back" if wish.safety_ms else ""
    return (
        f"{sheet.flow}: failover to {at}{back}; plan {sheet.plan.agreement}, "
        f"made at {rfc3339(sheet.made_at_ms)}"
    )


def _state(sheet: Sheet) -> list[str]:
    source = f"can't be asked: {sheet.source_silent}" if sheet.source_silent else "answers"
    lines = [f"source: {one_line(source)}"]
    if sheet.plan.wish.is_planned:
        lines.append(
            "planned: once nobody writes there any more, what is left is mirrored, and nothing is lost"
        )
    elif not sheet.source_silent:
        lines.append("source: records that are written to it from now on aren't in these numbers")
    fence = f"raised {sheet.fenced}" if sheet.fenced else "none yet; one is raised before anything moves"
    lines.append(f"fence: {one_line(fence)}")
    return [*lines, *([f"journal: {sheet.journal}"] if sheet.journal else [])]


def _topics(sheet: Sheet) -> list[str]:
    what = "LEFT" if sheet.plan.wish.is_planned else "LOST"
    headers = ("TOPIC", "PARTITIONS", f"RECORDS {what}", f"BYTES {what}", f"SECONDS {what}", "MIRRORED UNTIL")
    rows: list[tuple[object, ...]] = [
        (
            topic.topic,
            topic.partitions,
            str(topic.lost_records),
            str(topic.lost_bytes),
            str(topic.lost_seconds),
            _mirrored_until(topic.mirrored_until_ms, sheet.made_at_ms),
        )
        for topic in sheet.dearest_topics
    ]
    losses = sheet.losses
    size_bytes, seconds = total(loss.size_bytes for loss in losses), largest(loss.seconds for loss in losses)
    of_all = (len(losses), str(sheet.lost), str(size_bytes), str(seconds), None)
    return _cut_table("topics", headers, rows, of_all)


def _mirrored_until(time_ms: int | None, now_ms: int) -> str | None:
    return None if time_ms is None else f"{rfc3339(time_ms)} ({how_long_ago(time_ms, now_ms)})"


def _groups(sheet: Sheet) -> list[str]:
    headers = ("GROUP", "PARTITIONS", "READ AGAIN", "SKIPPED")
    rows = [(g.group, g.partitions, str(g.rereads), str(g.skips)) for g in sheet.dearest_groups]
    of_all = (len(sheet.plan.moves), str(sheet.rereads), str(sheet.skips))
    return _cut_table("groups", headers, rows, of_all) if rows else ["no consumer group to move"]


def _cut_table(
    of_what: str, headers: Sequence[str], rows: Sequence[Sequence[object]], of_all: Sequence[object]
) -> list[str]:
    """Its last row is the sum of all, also of those that aren't shown; of seconds it is the largest."""
    shown = [*rows[:_MOST_ROWS], *([(f"ALL {len(rows):,}", *of_all)] if len(rows) > 1 else [])]
    cut = cut_line(min(len(rows), _MOST_ROWS), len(rows), f" {of_what}{IN_JSON}")
    return [table(headers, shown, widest=COLUMNS), *cut]


_PLAIN_MOVES = ("GROUP", "PARTITION", "STANDS AT", "STARTS AT")
_MOVES_TO_A_MOMENT = (*_PLAIN_MOVES, "BY TARGET", "BY SOURCE", "FIRST RECORD")


def _moves(sheet: Sheet) -> list[str]:
    """Offsets on the target. For a moment also the two ways to find it, and the time of the record there."""
    notes, rows = NotesBelow(), []
    for move in sheet.dearest_moves[:_MOST_ROWS]:
        place = sheet.places.get(move.target)
        row: tuple[object, ...] = (
            move.group,
            str(move.target),
            None if move.before is None else move.before.offset,
            int(move.after),
        )
        if sheet.places:
            row += (None, None, None) if place is None else _found(place, move)
        rows.append((*row, notes.marks(_why(sheet, move, place))))
    headers = (*(_MOVES_TO_A_MOMENT if sheet.places else _PLAIN_MOVES), "NOTES")
    below = notes.lines()
    return [
        table(headers, rows, widest=COLUMNS),
        *cut_line(len(rows), len(sheet.plan.moves), f" offsets{IN_JSON}"),
        *(["", *below] if below else []),
    ]


def _found(place: Place, move: Move) -> tuple[str | None, str | None, str | None]:
    times = [each.at_ms for each in (place.index, place.source) if each.at == move.after]
    at_ms = next((time_ms for time_ms in times if time_ms is not None), None)
    return _offset(place.index), _offset(place.source), None if at_ms is None else rfc3339(at_ms)


def _offset(answer: Answer) -> str | None:
    if answer.at is None:
        return None
    return f"{answer.at:,} (end)" if answer.is_past_end else f"{answer.at:,}"


def _why(sheet: Sheet, move: Move, place: Place | None) -> list[str]:
    """Also why one of the two ways leads nowhere."""
    ways = []
    if place is not None and place.index.at is None:
        ways.append(f"BY TARGET: {shown(place.index)}")
    if place is not None and place.source.at is None:
        ways.append(f"BY SOURCE: {by_source(sheet, place)}")
    return [*ways, *move.reasons]


def by_source(sheet: Sheet, place: Place) -> str:
    return _said_once(sheet, shown(place.source))


def _said_once(sheet: Sheet, text: str) -> str:
    """Why a source is silent stands above, once: again it would push what follows off the screen."""
    return text.replace(f": {sheet.source_silent}", "") if sheet.source_silent else text


def _remarks(sheet: Sheet) -> list[str]:
    left = [
        f"LEFT ALONE {_said_once(sheet, '; '.join(map(str, filter(None, (each, each.price)))))}"
        for each in sheet.plan.left_alone
    ]
    notes = [f"NOTE {_said_once(sheet, note)}" for note in sheet.notes]
    unknown = [f"NOT SURE because {_said_once(sheet, why)}" for why in sheet.unknown]
    found = [
        *shortened(left, where=f" left alone{IN_JSON}"),
        *shortened(notes, where=f" notes{IN_JSON}"),
        *shortened(unknown, where=f" reasons{IN_JSON}"),
    ]
    return ["", *found] if found else []


def astray_text(astray: Astray) -> str:
    where = "has nothing there now" if astray.at is None else f"is at {astray.at:,} now"
    return f"{astray.group} on {astray.target} {where}: it has moved since the failover"
