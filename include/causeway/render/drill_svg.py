"""The history of drills as one picture: RTO and RPO in seconds, drill by drill."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from causeway.core.failover.drill_run import DrillRun
from causeway.core.kernel.timestamps import rfc3339

_WIDTH, _HEIGHT, _MARGIN = 720, 260, 44


def plot(runs: Sequence[DrillRun]) -> str:
    """SVG, whole by itself. A drill whose RPO wasn't known leaves a gap in its line."""
    rto: list[float | None] = [run.rto_ms / 1000 for run in runs]
    rpo: list[float | None] = [None if run.rpo_seconds is None else float(run.rpo_seconds) for run in runs]
    top = max([1.0, *(value for value in (*rto, *rpo) if value is not None)])
    title = f"Drills of {escape(runs[0].flow)}" if runs else "No drills yet"
    first_last = f"{rfc3339(runs[0].at_ms)} to {rfc3339(runs[-1].at_ms)}" if runs else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="system-ui, sans-serif" font-size="12">\n'
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>\n'
        f'<text x="{_MARGIN}" y="20" font-size="14">{title}</text>\n'
        f'<text x="{_MARGIN}" y="{_HEIGHT - 12}" fill="#555">{first_last}</text>\n'
        f'<text x="6" y="{_MARGIN + 4}" fill="#555">{top:.0f} s</text>\n'
        f"{_line(rto, top, '#1d4ed8')}{_line(rpo, top, '#c2410c')}"
        f'<text x="{_WIDTH - 150}" y="20" fill="#1d4ed8">RTO</text>\n'
        f'<text x="{_WIDTH - 100}" y="20" fill="#c2410c">RPO</text>\n</svg>\n'
    )


def _line(values: Sequence[float | None], top: float, colour: str) -> str:
    step = (_WIDTH - 2 * _MARGIN) / max(len(values) - 1, 1)
    low = _HEIGHT - _MARGIN
    marks: list[str] = []
    before: tuple[float, float] | None = None
    for number, value in enumerate(values):
        if value is None:
            before = None
            continue
        at = (_MARGIN + number * step, low - value / top * (low - _MARGIN))
        marks.append(f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="3" fill="{colour}"/>\n')
        if before is not None:
            ends = f'x1="{before[0]:.1f}" y1="{before[1]:.1f}" x2="{at[0]:.1f}" y2="{at[1]:.1f}"'
            marks.append(f'<line {ends} stroke="{colour}"/>\n')
        before = at
    return "".join(marks)
