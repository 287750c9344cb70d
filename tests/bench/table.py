"""From measurements to the one table. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean

from tests.bench.idle import Idleness
from tests.bench.turn import Measurement, StoodStill
from tests.bench.workloads import Workload

YARDSTICK = "MirrorMaker 2, tuned"
_MEGABYTE, _GIGABYTE = 1e6, 1e9
_KINDS = ("Python workers", "Python driver", "JVM")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """All turns of all contenders with one workload."""

    workload: Workload
    log_bytes: int
    """Of the source's batches, as they lie there."""
    limit_seconds: tuple[float, ...]
    turns: tuple[Measurement, ...]
    idleness: tuple[Idleness, ...] = ()
    stood_still: tuple[StoodStill, ...] = ()

    def contenders(self) -> list[str]:
        return list(dict.fromkeys(turn.contender for turn in self.turns))

    def of(self, contender: str) -> list[Measurement]:
        return [turn for turn in self.turns if turn.contender == contender]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    contender: str
    records_per_second: float
    spread: float
    """Between the turns: largest less smallest, as a share of the mean."""
    log_megabytes_per_second: float
    value_megabytes_per_second: float
    ratio: float | None
    """To tuned MirrorMaker 2."""
    share_of_limit: float | None
    copying_cpu_per_gigabyte: float
    copying_cpu_by_kind: dict[str, float]
    starting_seconds: float
    starting_cpu_seconds: float
    """Everything that isn't copying: start-up, and the end."""
    wall_seconds: float
    peak_megabytes: float
    peak_by_kind: dict[str, float]
    repeated: int


def limit_cells(outcome: Outcome) -> tuple[str, ...]:
    """The limit's own line: it isn't a mirror, so nothing is reported of what it costs."""
    work, rates = outcome.workload, [outcome.workload.records / each for each in outcome.limit_seconds]
    rate = fmean(rates)
    told = (
        "the limit: fetch, then append",
        f"{rate:,.0f}",
        f"{(max(rates) - min(rates)) / rate:.0%}",
        f"{rate / work.records * outcome.log_bytes / _MEGABYTE:,.0f}",
        f"{rate * work.value_bytes / _MEGABYTE:,.0f}",
    )
    return (*told, *("",) * (len(HEAD) - len(told)))


def _lines(outcome: Outcome) -> list[tuple[str, ...]]:
    limit = [limit_cells(outcome)] if outcome.limit_seconds else []
    return [*limit, *map(cells, rows(outcome))]


def rows(outcome: Outcome) -> list[Row]:
    yardstick = _mean(outcome.of(YARDSTICK), lambda turn: turn.records_per_second)
    return [_row(outcome, name, yardstick) for name in outcome.contenders()]


def _row(outcome: Outcome, contender: str, yardstick: float) -> Row:
    turns, work = outcome.of(contender), outcome.workload
    rates = [turn.records_per_second for turn in turns]
    rate = fmean(rates)
    gigabytes = work.value_bytes_in_all / _GIGABYTE
    kinds = list(dict.fromkeys(kind for turn in turns for kind in turn.copying_cpu_seconds))
    limit = fmean(outcome.limit_seconds) if outcome.limit_seconds else None
    return Row(
        contender=contender,
        records_per_second=rate,
        spread=(max(rates) - min(rates)) / rate,
        log_megabytes_per_second=rate / work.records * outcome.log_bytes / _MEGABYTE,
        value_megabytes_per_second=rate * work.value_bytes / _MEGABYTE,
        ratio=rate / yardstick if yardstick else None,
        share_of_limit=rate * limit / work.records if limit else None,
        copying_cpu_per_gigabyte=_mean(turns, _copying_cpu) / gigabytes,
        copying_cpu_by_kind={
            kind: _mean(turns, partial(_copying_cpu_of, kind)) / gigabytes for kind in kinds
        },
        starting_seconds=_mean(turns, lambda turn: turn.starting_seconds),
        starting_cpu_seconds=_mean(turns, lambda turn: max(turn.cpu_seconds - _copying_cpu(turn), 0.0)),
        wall_seconds=_mean(turns, lambda turn: turn.wall_seconds),
        peak_megabytes=max(turn.peak_bytes for turn in turns) / _MEGABYTE,
        peak_by_kind={
            kind: max(turn.peak_bytes_by_kind.get(kind, 0) for turn in turns) / _MEGABYTE for kind in kinds
        },
        repeated=max(turn.repeated for turn in turns),
    )


def _copying_cpu(turn: Measurement) -> float:
    return sum(turn.copying_cpu_seconds.values())


def _copying_cpu_of(kind: str, turn: Measurement) -> float:
    return turn.copying_cpu_seconds.get(kind, 0.0)


def _mean(turns: Sequence[Measurement], what: Callable[[Measurement], float]) -> float:
    return fmean(map(what, turns)) if turns else 0.0


HEAD = (
    "contender",
    "records/s",
    "±",
    "MB/s log",
    "MB/s values",
    "x tuned MM2",
    "of the limit",
    "CPU-s/GB",
    "of it in",
    "peak MB",
    "of it in",
    "start s",
    "start CPU-s",
    "all s",
    "repeated",
)


def cells(row: Row) -> tuple[str, ...]:
    return (
        row.contender,
        f"{row.records_per_second:,.0f}",
        f"{row.spread:.0%}",
        f"{row.log_megabytes_per_second:,.0f}",
        f"{row.value_megabytes_per_second:,.0f}",
        "" if row.ratio is None else f"{row.ratio:.2f}",
        "" if row.share_of_limit is None else f"{row.share_of_limit:.0%}",
        f"{row.copying_cpu_per_gigabyte:.1f}",
        _by_kind(row.copying_cpu_by_kind, "{:.1f}"),
        f"{row.peak_megabytes:,.0f}",
        _by_kind(row.peak_by_kind, "{:,.0f}"),
        f"{row.starting_seconds:.1f}",
        f"{row.starting_cpu_seconds:.1f}",
        f"{row.wall_seconds:.1f}",
        f"{row.repeated:,}",
    )


def _by_kind(found: dict[str, float], how: str) -> str:
    """Only where there are several kinds."""
    told = [f"{how.format(found[kind])} {kind}" for kind in _KINDS if kind in found]
    return ", ".join(told) if len(told) > 1 else ""


def markdown(outcome: Outcome) -> str:
    lines = [HEAD, ("---",) * len(HEAD), *_lines(outcome)]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    return table + "".join(f"\n{line}\n" for line in standstills(outcome))


def standstills(outcome: Outcome) -> list[str]:
    """Turns that have no numbers: a contender that stopped was killed after two minutes without a record."""
    return [
        f"{each.contender} stopped in one turn, at {each.records:,} of {outcome.workload.records:,} "
        f"records ({each.why}, tried again without end), and was killed. Its other turns are in the table."
        for each in outcome.stood_still
    ]


def plain_text(outcome: Outcome) -> str:
    """The same for a terminal: columns under each other."""
    lines = [HEAD, *_lines(outcome)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    return "".join(
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        + "\n"
        for line in lines
    ) + "".join(f"{line}\n" for line in standstills(outcome))
