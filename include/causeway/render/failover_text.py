"""The failover sheet and what became of it, as text for a terminal and for a task's log.

Totals stand first, then what is left alone, then the tables, the dearest rows first: what is too long is cut
from below. No line is longer than a terminal is wide, and what holds of many rows is printed once, below
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from causeway.core.failover.impact_sheet import Sheet
from causeway.core.failover.plan import Move
from causeway.core.failover.request import Mode
from causeway.core.failover.start_offset import Answer, StartOffset, shown
from causeway.core.journal.remaining_work import Astray
from causeway.core.kernel.estimate import largest, total
from causeway.core.kernel.plurals import counted
from causeway.core.kernel.timestamps import how_long_ago, rfc3339, rfc3339_ms
from causeway.render.tables import (
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
_UNTIL_THE_REST = (
    "STARTS AT: as of now. Once the rest is mirrored, each group gets the record that it would read next"
)
_UNKNOWN = "unknown: it may be any number of records; the lines NOT SURE above have the reason"


def sheet_text(sheet: Sheet) -> str:
    return "\n".join(
        [
            *wrapped([*danger(sheet), headline(sheet), *_state(sheet), totals(sheet), *_remarks(sheet)]),
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
    return "\n".join([sheet_text(sheet), "", *wrapped([*danger(sheet), totals(sheet)])])


def danger(sheet: Sheet) -> list[str]:
    """Of a source that answers somebody may think that nothing is lost."""
    wish = sheet.plan.wish
    if wish.is_planned or sheet.source_silent:
        return []
    planned = replace(wish, mode=Mode.PLANNED, at_ms=None, safety_ms=0, clamp=False).command
    first = ", once no fence stops it" if sheet.fenced else ""
    return [
        "THE SOURCE ANSWERS: what is written to it from now on is lost after the fence, and isn't in these "
        f"numbers. Stop its writers. If its data is good, `{planned}` loses nothing{first}"
    ]


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
    what = "the groups return, planned" if wish.mode is Mode.HOME else f"failover to {at}{back}"
    return f"{sheet.flow}: {what}; plan {sheet.plan.agreement}, made at {rfc3339(sheet.made_at_ms)}"


def _state(sheet: Sheet) -> list[str]:
    source = f"can't be asked: {sheet.source_silent}" if sheet.source_silent else "answers"
    lines = [f"source: {one_line(source)}"]
    if sheet.plan.wish.is_planned:
        lines.append(
            "planned: once no writer writes there any more, Causeway mirrors the rest, and nothing is lost"
        )
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
    if not rows:
        return ["no consumer group to move"]
    is_unknown = any("unknown" in row[2:] for row in rows)
    return [*_cut_table("groups", headers, rows, of_all), *([_UNKNOWN] if is_unknown else [])]


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
        *([_UNTIL_THE_REST] if rows and sheet.plan.wish.is_planned else []),
        *(["", *below] if below else []),
    ]


def _found(place: StartOffset, move: Move) -> tuple[str | None, str | None, str | None]:
    times = [each.at_ms for each in (place.index, place.source) if each.at == move.after]
    at_ms = next((time_ms for time_ms in times if time_ms is not None), None)
    return _offset(place.index), _offset(place.source), None if at_ms is None else rfc3339(at_ms)


def _offset(answer: Answer) -> str | None:
    if answer.at is None:
        return None
    return f"{answer.at:,} (end)" if answer.is_past_end else f"{answer.at:,}"


def _why(sheet: Sheet, move: Move, place: StartOffset | None) -> list[str]:
    """Also why one of the two ways leads nowhere."""
    ways = []
    if place is not None and place.index.at is None:
        ways.append(f"BY TARGET: {shown(place.index)}")
    if place is not None and place.source.at is None:
        ways.append(f"BY SOURCE: {by_source(sheet, place)}")
    return [*ways, *move.reasons]


def by_source(sheet: Sheet, place: StartOffset) -> str:
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
