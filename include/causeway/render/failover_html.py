"""The failover sheet as a page: one file without anything from elsewhere, readable on a telephone at night.

Totals first, then what is left alone, then the tables, the dearest rows first. On a narrow screen each row of
a table becomes a card, whose labels are the columns' names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from causeway.core.failover.impact_sheet import Sheet
from causeway.core.failover.start_offset import shown
from causeway.core.kernel.estimate import Estimate
from causeway.core.kernel.timestamps import rfc3339
from causeway.render.failover_text import by_source, danger, headline, lost_or_left, what_becomes_of_groups
from causeway.render.tables import NUMBER, cut_line, one_line
from causeway.usecases.report_files import write_file

_MOST_MOVES, _MOST_OPEN = 2_000, 25
_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 70rem; padding: 1rem; }
body { overflow-wrap: anywhere; }
h1 { font-size: 1.25rem; } h2 { font-size: 1.05rem; margin: 1.6rem 0 .4rem; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid #8886; padding: .35rem .6rem .35rem 0; }
th, td { text-align: left; vertical-align: top; }
th { overflow-wrap: normal; } td .loud, .number { white-space: nowrap; }
.big { font-size: 1.6rem; font-weight: 600; } .loud { color: #c2410c; font-weight: 600; }
.quiet { opacity: .75; } li { margin: .3rem 0; } summary { cursor: pointer; padding: .5rem 0; }
@media (max-width: 640px) {
  thead { display: none; } table, tbody { display: block; }
  tr { border: 1px solid #8886; border-radius: .5rem; display: block; margin: .6rem 0; padding: .4rem .7rem; }
  td { border: 0; display: flex; gap: .8rem; justify-content: space-between; padding: .15rem 0; }
  td::before { content: attr(data-label); flex: none; max-width: 45%; opacity: .75; }
}
"""


def write_page(sheet: Sheet, path: Path) -> None:
    """:raises BadInput: it can't be written."""
    write_file(page(sheet), path, "--html")


def page(sheet: Sheet) -> str:
    title = _text(f"Failover of {sheet.flow}")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style></head><body>\n"
        f"<h1>{title}</h1>\n{_danger(sheet)}<p>{_text(headline(sheet))}</p>\n"
        f"{_summary(sheet)}{_remarks(sheet)}"
        f"<h2>{_price_title(sheet)}</h2>\n{_topics(sheet)}"
        f"<h2>What each group reads again, or skips</h2>\n{_groups(sheet)}{_moves(sheet)}"
        f"{_listed('Not sure, because', sheet.unknown)}</body></html>\n"
    )


def _danger(sheet: Sheet) -> str:
    return "".join(f'<p class="loud">{_text(line)}</p>\n' for line in danger(sheet))


def _summary(sheet: Sheet) -> str:
    source = sheet.source_silent and f"The source can't be asked: {sheet.source_silent}"
    fence = f"Fenced {sheet.fenced}" if sheet.fenced else "Not fenced yet: that comes before anything moves."
    return (
        f'<p class="big">{_figure(sheet.lost)} records {lost_or_left(sheet)}</p>\n'
        f"<p>{_text(what_becomes_of_groups(sheet))}</p>\n"
        f'<p class="{"loud" if source else "quiet"}">{_text(source or "The source answers.")}</p>\n'
        f'<p class="quiet">{_text(fence)}</p>\n'
    )


def _price_title(sheet: Sheet) -> str:
    if sheet.plan.wish.is_planned:
        return "What is mirrored before anything moves"
    return "What is lost if the source doesn't come back"


def _topics(sheet: Sheet) -> str:
    rows = [
        (
            _text(topic.topic),
            str(topic.partitions),
            _figure(topic.lost_records),
            _figure(topic.lost_bytes),
            _figure(topic.lost_seconds),
            "-" if topic.mirrored_until_ms is None else _words(rfc3339(topic.mirrored_until_ms)),
        )
        for topic in sheet.dearest_topics
    ]
    return _table(("Topic", "Partitions", "Records", "Bytes", "Seconds", "Mirrored until"), rows)


def _groups(sheet: Sheet) -> str:
    rows = [
        (
            _text(g.group),
            str(g.partitions),
            _figure(g.rereads),
            _figure(g.skips),
            _words("; ".join(g.reasons) or "-"),
        )
        for g in sheet.dearest_groups
    ]
    return _table(("Group", "Partitions", "Reads again", "Skips", "Why"), rows)


def _moves(sheet: Sheet) -> str:
    rows = []
    for move in sheet.dearest_moves[:_MOST_MOVES]:
        place = sheet.places.get(move.target)
        rows.append(
            (
                _text(move.group),
                _text(str(move.target)),
                "-" if move.before is None else _words(f"{move.before.offset:,}"),
                _words(f"{move.after:,}"),
                "-" if place is None else _words(shown(place.index)),
                "-" if place is None else _words(by_source(sheet, place)),
                _words("; ".join(move.reasons) or "-"),
            )
        )
    if not rows:
        return ""
    cut = cut_line(len(rows), len(sheet.plan.moves), ", all in the JSON")
    note = "".join(f'<p class="quiet">{line}</p>' for line in cut)
    headers = (
        "Group",
        "Partition",
        "Stands at",
        "Starts at",
        "By the target's index",
        "By the source and the map",
        "Why",
    )
    summary = f"<summary>Every offset ({len(sheet.plan.moves):,})</summary>"
    return f"<details>{summary}{_table(headers, rows)}{note}</details>\n"


def _remarks(sheet: Sheet) -> str:
    left = list(map(str, sheet.plan.left_alone))
    return _listed("Left alone", left) + _listed("Notes", sheet.notes)


def _listed(title: str, items: Sequence[str]) -> str:
    """All of them: after so many, folded away."""
    if not items:
        return ""
    listed = [f"<li>{_text(item)}</li>" for item in items]
    first, rest = "".join(listed[:_MOST_OPEN]), "".join(listed[_MOST_OPEN:])
    cut = "".join(cut_line(min(_MOST_OPEN, len(listed)), len(listed)))
    folded = f"<details><summary>{cut}</summary><ul>{rest}</ul></details>\n" if rest else ""
    return f"<h2>{title} ({len(items):,})</h2>\n<ul>{first}</ul>\n{folded}"


def _table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """`rows` are HTML already."""
    head = "".join(f"<th>{name}</th>" for name in headers)
    body = "".join(
        "<tr>"
        + "".join(
            f'<td data-label="{name}"><span>{cell}</span></td>'
            for name, cell in zip(headers, row, strict=True)
        )
        + "</tr>\n"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table>\n"


def _figure(figure: Estimate) -> str:
    """What isn't certainly nothing is loud."""
    return _text(str(figure)) if figure.is_nothing else f'<span class="loud">{_text(str(figure))}</span>'


def _words(text: str) -> str:
    """Of a narrow cell names are broken, numbers and moments never."""
    return " ".join(
        f'<span class="number">{_text(word)}</span>' if NUMBER.fullmatch(word) else _text(word)
        for word in text.split(" ")
    )


def _text(text: str) -> str:
    """A name from a broker may hold anything."""
    return escape(one_line(text))
