"""A curve or two on paper with logarithmic rules, as SVG and nothing else. Zero has a line at the bottom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log10
from xml.sax.saxutils import escape

_WIDTH, _HEIGHT = 720, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 90, 150, 50, 60
_ZERO = -0.6
"""Where zero is drawn, in decades: below 1."""


@dataclass(frozen=True, slots=True)
class Curve:
    name: str
    colour: str
    points: Sequence[tuple[float, float]]


def log_log(title: str, across: str, curves: Sequence[Curve]) -> str:
    points = [point for curve in curves for point in curve.points]
    x_most = ceil(log10(max(x for x, _ in points)))
    y_most = ceil(log10(max(1.0, *(y for _, y in points))))

    def place(x: float, y: float) -> tuple[float, float]:
        rise = log10(y) if y >= 1 else _ZERO
        return (
            _LEFT + (log10(x) - 1) / (x_most - 1) * (_WIDTH - _LEFT - _RIGHT),
            _HEIGHT - _BOTTOM - (rise - _ZERO) / (y_most - _ZERO) * (_HEIGHT - _TOP - _BOTTOM),
        )

    marks = [_line(place(10, 10**n), place(10**x_most, 10**n)) for n in range(y_most + 1)]
    marks += [_text(place(10, 10**n), f"{10**n:,}", dx=-8, anchor="end") for n in range(y_most + 1)]
    marks += [_text(place(10, 0), "0", dx=-8, anchor="end"), _line(place(10, 0), place(10**x_most, 0))]
    marks += [_text(place(10**n, 0), f"{10**n:,}", dy=22, anchor="middle") for n in range(1, x_most + 1)]
    for curve in curves:
        told = [place(x, y) for x, y in curve.points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in told)
        marks.append(f'<polyline points="{path}" fill="none" stroke="{curve.colour}" stroke-width="2.5"/>')
        marks += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{curve.colour}"/>' for x, y in told]
        marks.append(_text(told[-1], curve.name, dx=12, dy=4, colour=curve.colour))
    marks.append(_text((_LEFT, 28), title, size=16))
    marks.append(_text(((_WIDTH - _RIGHT + _LEFT) / 2, _HEIGHT - 14), across, anchor="middle"))
    body = "\n".join(marks)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'font-family="sans-serif" font-size="12">\n'
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>\n{body}\n</svg>\n'
    )


def _line(start: tuple[float, float], end: tuple[float, float]) -> str:
    (x1, y1), (x2, y2) = start, end
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#dddddd"/>'


def _text(
    at: tuple[float, float],
    text: str,
    *,
    dx: float = 0,
    dy: float = 4,
    anchor: str = "start",
    colour: str = "#333333",
    size: int = 12,
) -> str:
    return (
        f'<text x="{at[0] + dx:.1f}" y="{at[1] + dy:.1f}" text-anchor="{anchor}" fill="{colour}" '
        f'font-size="{size}">{escape(text)}</text>'
    )
