"""The failover sheet for whoever approves it on Airflow's page: short, in Markdown, readable on a telephone.

Totals first, then what stays as it is, then the price, the dearest rows first. What is cut says how much it
leaves out: all of it is on the sheet's page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from causeway.core.failover.impact_sheet import Sheet
from causeway.core.journal.journal import FailoverRun
from causeway.core.kernel.timestamps import rfc3339
from causeway.render.failover_text import danger, headline, totals
from causeway.render.tables import cut_line, one_line

_MOST_ROWS = 25
_MOST_CHARACTERS = 250


def sheet_markdown(sheet: Sheet, page: str) -> str:
    """What is lost, per topic; what each group reads again or never reads."""
    source = f"**can't be asked**: {_text(sheet.source_silent)}" if sheet.source_silent else "answers"
    is_planned = sheet.plan.wish.is_planned
    title = "Mirrored before anything moves" if is_planned else "Lost if the source doesn't come back"
    fence = _text(sheet.fenced) or "none yet; one is raised before anything moves"
    return "\n".join(
        [
            *(part for line in danger(sheet) for part in (f"**{_text(line)}**", "")),
            f"**{totals(sheet)}**",
            "",
            _text(headline(sheet)),
            "",
            f"- source: {source}",
            f"- fence: {fence}",
            f"- all of it, and every offset: `{page}`",
            *_list("Left alone", _left_rows(sheet)),
            *_list("Notes", map(_text, sheet.notes)),
            *_section(title, _LOST, _lost_rows(sheet)),
            *_section("What each group reads again, or skips", _GROUPS, _group_rows(sheet)),
            *_list("Not sure, because", map(_text, sheet.unknown)),
        ]
    )


def resumed_markdown(run: FailoverRun) -> str:
    """Of a run that has begun: its sheet was agreed to, and can't be made again once groups have moved."""
    return (
        f"**Goes on with failover `{run.run}`**, begun by {_text(run.by)} at {rfc3339(run.begun_ms)} "
        f"and not finished: {len(run.shifts)} groups, left alone: {run.left_count:,}, plan "
        f"`{run.plan_hash}`.\n\n"
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
        for topic in sheet.dearest_topics
    ]


def _group_rows(sheet: Sheet) -> list[tuple[str, ...]]:
    return [(_name(group.group), str(group.rereads), str(group.skips)) for group in sheet.dearest_groups]


def _left_rows(sheet: Sheet) -> list[str]:
    return [
        f"{_name(left.group)}{f' on {_name(str(left.target))}' if left.target else ''}: "
        f"{_text('; '.join(map(str, filter(None, (left.whole_why, left.price)))))}"
        for left in sheet.plan.left_alone
    ]


def _section(title: str, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    if not rows:
        return []
    return [
        "",
        f"### {title}",
        "",
        _row(headers),
        _row(["---"] * len(headers)),
        *(_row(row) for row in rows[:_MOST_ROWS]),
        *_cut(len(rows)),
    ]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _list(title: str, items: Iterable[str]) -> list[str]:
    found = list(items)
    if not found:
        return []
    return ["", f"### {title}", "", *(f"- {item}" for item in found[:_MOST_ROWS]), *_cut(len(found))]


def _cut(of: int) -> list[str]:
    cut = cut_line(min(_MOST_ROWS, of), of)
    return ["", *cut] if cut else []


def _name(text: str) -> str:
    """As code; a name from a broker may hold anything."""
    plain = one_line(text).replace("`", chr(39)).replace("|", "/")
    return f"`{plain}`" if len(plain) <= _MOST_CHARACTERS else f"`{plain[: _MOST_CHARACTERS - 1]}…`"


def _text(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>|#!~])", r"\\\1", one_line(text))
