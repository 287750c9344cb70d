"""The failover sheet and what became of it, as text for a terminal and for a task's log."""

from __future__ import annotations

from collections.abc import Sequence

from causeway.core.failover.place import shown
from causeway.core.failover.progress import Astray
from causeway.core.failover.sheet import Sheet
from causeway.core.instants import rfc3339, rfc3339_ms
from causeway.entrypoints.tables import one_line, table

_MOST_MOVES, _MOST_LINES = 40, 40


def sheet_text(sheet: Sheet) -> str:
    return "\n".join(
        [
            headline(sheet),
            *_state(sheet),
            "",
            _topics(sheet),
            "",
            _groups(sheet),
            "",
            _moves(sheet),
            *_remarks(sheet),
        ]
    )


def moves_text(sheet: Sheet) -> str:
    """The plan without its price."""
    return "\n".join([headline(sheet), *_state(sheet), "", _moves(sheet)])


def headline(sheet: Sheet) -> str:
    wish = sheet.plan.wish
    latest = "where each group stands, planned" if wish.is_planned else "latest"
    at = latest if wish.at_ms is None else rfc3339_ms(wish.at_ms)
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
        lines.append(
            "source: if writers still write there, what they write from now on isn't in these numbers"
        )
    fence = f"raised {sheet.fenced}" if sheet.fenced else "none yet; one is raised before anything moves"
    lines.append(f"fence: {one_line(fence)}")
    return lines


def _topics(sheet: Sheet) -> str:
    what = "LEFT TO COPY" if sheet.plan.wish.is_planned else "LOST"
    headers = ("TOPIC", "PARTITIONS", f"RECORDS {what}", f"BYTES {what}", f"SECONDS {what}", "MIRRORED UNTIL")
    rows = [
        (
            topic.topic,
            topic.partitions,
            str(topic.lost_records),
            str(topic.lost_bytes),
            str(topic.lost_seconds),
            None if topic.mirrored_until_ms is None else rfc3339(topic.mirrored_until_ms),
        )
        for topic in sheet.topics
    ]
    return table(headers, rows)


def _groups(sheet: Sheet) -> str:
    headers = ("GROUP", "PARTITIONS", "READ AGAIN", "SKIPPED")
    rows = [(g.group, g.partitions, str(g.rereads), str(g.skips)) for g in sheet.groups]
    return table(headers, rows) if rows else "no consumer group to move"


def _moves(sheet: Sheet) -> str:
    headers = ("GROUP", "PARTITION", "NOW", "THEN", "BY TARGET", "BY SOURCE", "WHY")
    rows = []
    for move in sheet.plan.moves[:_MOST_MOVES]:
        place = sheet.places.get(move.target)
        rows.append(
            (
                move.group,
                str(move.target),
                None if move.before is None else move.before.offset,
                int(move.after),
                None if place is None else shown(place.index),
                None if place is None else shown(place.source),
                "; ".join(move.reasons) or None,
            )
        )
    more = len(sheet.plan.moves) - len(rows)
    return table(headers, rows) + (f"\n... and {more:,} more: --json has them all" if more else "")


def _remarks(sheet: Sheet) -> list[str]:
    left = [f"LEFT ALONE {each}" for each in sheet.plan.left_alone]
    notes = [f"NOTE {note}" for note in sheet.notes]
    unknown = [f"NOT SURE because {why}" for why in sheet.unknown]
    found = [*shortened(left), *shortened(notes), *map(one_line, unknown)]
    return ["", *found] if found else []


def shortened(lines: Sequence[str]) -> list[str]:
    """So many that somebody still reads what stands above them; a name from a broker stays on its line."""
    more = len(lines) - _MOST_LINES
    return [
        *map(one_line, lines[:_MOST_LINES]),
        *([f"... and {more:,} more: --json has them all"] if more > 0 else []),
    ]


def astray_text(astray: Astray) -> str:
    where = "has nothing there now" if astray.at is None else f"is at {astray.at:,} now"
    return f"{astray.group} on {astray.target} {where}: it has moved since the failover"
