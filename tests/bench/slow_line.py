"""One partition over a slow line: what is left of a contender's speed with 50 ms each way to the source."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from types import TracebackType
from typing import Any, Self

from tests.bench.data import make_data
from tests.bench.peers.contender import Contender, Scene
from tests.bench.stage import Stage
from tests.bench.turn import take_turn
from tests.bench.workloads import LINE, Workload

DELAY_SECONDS = 0.05
_PROGRAM = Path(__file__).with_name("delay_line.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class LineTurn:
    contender: str
    delay_seconds: float
    records_per_second: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LineOutcome:
    workload: Workload
    turns: tuple[LineTurn, ...]

    def rows(self) -> list[tuple[str, float, float]]:
        """Contender, megabytes of values a second without and with the delay."""
        names = dict.fromkeys(turn.contender for turn in self.turns)
        return [(name, self._rate(name, delayed=False), self._rate(name, delayed=True)) for name in names]

    def _rate(self, name: str, *, delayed: bool) -> float:
        mine = [t for t in self.turns if t.contender == name and (t.delay_seconds > 0) is delayed]
        return fmean(turn.records_per_second for turn in mine) * self.workload.value_bytes / 1e6

    def as_dict(self) -> dict[str, Any]:
        return {"workload": asdict(self.workload), "turns": [asdict(turn) for turn in self.turns]}


class DelayLine:
    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.port = int(self._answer())
        return self

    def tell(self, word: str, value: float) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word} {value}\n")
        self._process.stdin.flush()
        assert self._answer() == "done"

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()


def measure_slow_line(
    folder: Path, contenders: Sequence[Contender], scale: float, rounds: int, say: Callable[[str], None]
) -> LineOutcome:
    folder.mkdir(parents=True)
    work = LINE.scaled(scale)
    with DelayLine() as line:
        stage = Stage(folder, work, advertised_source_port=line.port)
        line.tell("target", stage.source_port)
        with stage:
            turns = _take_turns(stage, line, folder, contenders, rounds, say)
    return LineOutcome(workload=work, turns=turns)


def _take_turns(
    stage: Stage,
    line: DelayLine,
    folder: Path,
    contenders: Sequence[Contender],
    rounds: int,
    say: Callable[[str], None],
) -> tuple[LineTurn, ...]:
    turns: list[LineTurn] = []
    make_data(stage.source.endpoint(), stage.workload)
    for number in range(2 * rounds):
        delay = DELAY_SECONDS if number % 2 else 0.0
        line.tell("delay", delay)
        for contender in contenders:
            turns.append(_turn(stage, folder, contender, len(turns), delay))
            say(
                f"line: {contender.name}, {delay * 1000:.0f} ms each way: "
                f"{turns[-1].records_per_second:,.0f} records/s"
            )
    return tuple(turns)


def _turn(stage: Stage, folder: Path, contender: Contender, number: int, delay: float) -> LineTurn:
    scene = Scene(
        source=stage.source,
        target=stage.target,
        workload=stage.workload,
        alias=f"sf{number}",
        folder=folder / f"turn-{number}",
    )
    scene.folder.mkdir()
    found = take_turn(contender, scene)
    stage.sweep()
    return LineTurn(
        contender=contender.name, delay_seconds=delay, records_per_second=found.records_per_second
    )


def line_table(outcome: LineOutcome) -> str:
    lines = ["| contender | MB/s, no delay | MB/s, 50 ms each way | share |\n|---|---|---|---|\n"]
    lines += [
        f"| {name} | {plain:,.1f} | {delayed:,.1f} | {delayed / plain:.0%} |\n"
        for name, plain, delayed in outcome.rows()
    ]
    return "".join(lines)
