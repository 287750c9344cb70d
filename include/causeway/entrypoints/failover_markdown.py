"""The failover sheet for whoever approves it on Airflow's page: short, in Markdown, readable on a telephone.

The price first, then what stays as it is, then what can't be known. Every offset is on the sheet's page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from causeway.core.failover.journal import FailoverRun
from causeway.core.failover.sheet import Sheet
from causeway.core.instants import rfc3339
from causeway.entrypoints.failover_text import headline
from causeway.entrypoints.tables import one_line

_MOST_ROWS = 25
_MOST_CHARACTERS = 200


def sheet_markdown(sheet: Sheet, page: str) -> str:
    """What is lost, per topic; what each group reads again or never reads."""
    source = f"**can't be asked**: {_text(sheet.source_silent)}" if sheet.source_silent else "answers"
    is_planned = sheet.plan.wish.is_planned
    what = "Left to copy" if is_planned else "Lost"
    title = "Mirrored before anything moves" if is_planned else "Lost if the source doesn't come back"
    fence = _text(sheet.fenced) or "none yet; one is raised before anything moves"
    return "\n".join(
        [
            f"**{sheet.lost} records {what.lower()}, {len(sheet.plan.groups)} groups moved**",
            "",
            _text(headline(sheet)),
            "",
            f"- source: {source}",
            f"- fence: {fence}",
            f"- every offset: `{page}`, and the log of the task `plan`",
            *_section(title, _LOST, _lost_rows(sheet)),
            *_section("What each group reads again, or skips", _GROUPS, _group_rows(sheet)),
            *_list("Left alone", _left_rows(sheet)),
            *_list("Notes", map(_text, sheet.notes)),
            *_list("Not sure, because", map(_text, sheet.unknown)),
        ]
    )


def resumed_markdown(run: FailoverRun) -> str:
    """Of a run that has begun: its sheet was agreed to, and can't be made again once groups have moved."""
    return (
        f"**Goes on with failover `{run.run}`**, begun by {_text(run.by)} at {rfc3339(run.begun_ms)} "
        f"and not finished: {len(run.shifts)} groups, plan `{run.plan_hash}`.\n\n"
        "Its sheet is in the log of that run. What is moved already stays; the rest follows as planned."
    )


_LOST = ("Topic", "Records", "Seconds", "Mirrored until")
_GROUPS = ("Group", "Reads again", "Skips")


def _lost_rows(sheet: Sheet) -> list[tuple[str, ...]]:
    return [
        (
            _name(topic.topic),
            str(topic.lost_records),
            str(topic.lost_seconds),
            "-" if topic.mirrored_until_ms is None else rfc3339(topic.mirrored_until_ms),
        )
        for topic in sorted(sheet.topics, key=lambda each: -(each.lost_records.number or 0))
    ]


def _group_rows(sheet: Sheet) -> list[tuple[str, ...]]:
    """Dearest first: who skips most, then who reads most again."""
    dearest = sorted(sheet.groups, key=lambda g: (-(g.skips.number or 0), -(g.rereads.number or 0)))
    return [(_name(group.group), str(group.rereads), str(group.skips)) for group in dearest]


def _left_rows(sheet: Sheet) -> list[str]:
    return [
        f"{_name(left.group)}{f' on {_name(str(left.target))}' if left.target else ''}: {_text(left.why)}"
        for left in sheet.plan.left_alone
    ]


def _section(title: str, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    if not rows:
        return []
    more = len(rows) - _MOST_ROWS
    return [
        "",
        f"### {title}",
        "",
        _row(headers),
        _row(["---"] * len(headers)),
        *(_row(row) for row in rows[:_MOST_ROWS]),
        *(["", f"and {more:,} more, which cost no more than these"] if more > 0 else []),
    ]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _list(title: str, items: Iterable[str]) -> list[str]:
    found = list(items)
    return ["", f"### {title}", "", *(f"- {item}" for item in found[:_MOST_ROWS])] if found else []


def _name(text: str) -> str:
    """As code; a name from a broker may hold anything."""
    return f"`{one_line(text).replace('`', chr(39)).replace('|', '/')[:_MOST_CHARACTERS]}`"


def _text(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>|#!~])", r"\\\1", one_line(text))
