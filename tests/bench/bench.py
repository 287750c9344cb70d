"""`make bench`: everybody copies everything, twice, and one table comes out.

    python -m tests.bench.bench [--scale X] [--workloads a,b] [--without-mirror-maker] [--keep FOLDER]

Only a run of full size with every workload and every contender writes docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from causeway.core.kernel.errors import CausewayError
from causeway.lab.jars import ensure_jars
from tests.bench.data import make_data
from tests.bench.gauge import Gauge
from tests.bench.idle import Idleness, measure_idleness
from tests.bench.page import PAGE, raw, write_page
from tests.bench.peers.causeway_spark import CausewayOnSpark
from tests.bench.peers.contender import Contender, Scene
from tests.bench.peers.mirror_maker import JARS, MirrorMaker
from tests.bench.peers.plain_loop import PlainLoop
from tests.bench.peers.wire_limit import WireLimit, limit_seconds
from tests.bench.slow_line import LineOutcome, line_table, measure_slow_line
from tests.bench.stage import Stage
from tests.bench.table import Outcome, plain_text
from tests.bench.turn import Measurement, StoodStill, TurnFailed, take_turn
from tests.bench.workloads import LINE, WORKLOADS, Workload, chosen, split_names

Say = Callable[[str], None]
_ROUNDS = 2
_INTERRUPTED = 130


@dataclass(slots=True)
class Bench:
    folder: Path
    contenders: Sequence[Contender]
    rounds: int = _ROUNDS
    say: Say = print
    followed_seconds: float = 5.0
    """How long the rounds with nothing to do are watched."""
    watches_idleness: bool = True
    warms_up: bool = True
    """Each contender has a turn that doesn't count: a broker that has just begun takes half of its speed."""
    _turns: int = 0

    def run(self, workload: Workload) -> Outcome:
        """Brokers of its own, data made once, everybody's turns."""
        folder = self.folder / workload.name
        folder.mkdir(parents=True)
        try:
            with Stage(folder, workload) as stage:
                return self._play(stage, folder)
        finally:
            for cluster in ("sf", "nyc"):
                shutil.rmtree(folder / cluster, ignore_errors=True)

    def _play(self, stage: Stage, folder: Path) -> Outcome:
        work = stage.workload
        began = time.monotonic()
        make_data(stage.source.endpoint(), work)
        with Gauge(stage.source.endpoint(), work.topic_names) as gauge:
            made = gauge.tally()
        if made.records != work.records:
            raise TurnFailed(f"the source has {made.records:,} of {work.records:,} records")
        self.say(
            f"{work.name}: {made.records:,} records in {made.batches:,} batches, "
            f"{made.log_bytes / 1e6:,.0f} MB, made in {time.monotonic() - began:.0f} s"
        )
        limit = WireLimit()
        for contender in (limit, *self.contenders) if self.warms_up else ():
            self._turn(stage, folder, contender, [], is_warm_up=True)
        limits: list[float] = []
        turns: list[Measurement] = []
        idleness: list[Idleness] = []
        still: list[StoodStill] = []
        for number in range(self.rounds):
            order = (limit, *self.contenders) if number % 2 == 0 else (*reversed(self.contenders), limit)
            for contender in order:
                try:
                    scene, found = self._turn(stage, folder, contender, idleness)
                except StoodStill as standstill:
                    if isinstance(contender, CausewayOnSpark):
                        raise
                    self.say(f"{work.name}: {standstill}")
                    still.append(standstill)
                    continue
                if isinstance(contender, WireLimit):
                    limits.append(limit_seconds(scene))
                else:
                    turns.append(found)
        return Outcome(
            workload=work,
            log_bytes=made.log_bytes,
            limit_seconds=tuple(limits),
            turns=tuple(turns),
            idleness=tuple(idleness),
            stood_still=tuple(still),
        )

    def _turn(
        self,
        stage: Stage,
        folder: Path,
        contender: Contender,
        idleness: list[Idleness],
        *,
        is_warm_up: bool = False,
    ) -> tuple[Scene, Measurement]:
        self._turns += 1
        alias = f"sf{self._turns}"
        scene = Scene(
            source=stage.source,
            target=stage.target,
            workload=stage.workload,
            alias=alias,
            folder=folder / f"turn-{self._turns}",
        )
        scene.folder.mkdir()
        try:
            found = take_turn(contender, scene)
        except StoodStill:
            stage.sweep()
            raise
        what = f"warm-up, {contender.name}" if is_warm_up else contender.name
        self.say(
            f"{stage.workload.name}: {what}: {found.records_per_second:,.0f} records/s, "
            f"start {found.starting_seconds:.1f} s, copy {found.copying_seconds:.1f} s, "
            f"CPU {found.cpu_seconds:.1f} s, peak {found.peak_bytes / 1e6:,.0f} MB"
        )
        is_asked = self.watches_idleness and not (idleness or is_warm_up)
        if isinstance(contender, CausewayOnSpark) and is_asked:
            idleness.append(measure_idleness(scene, followed_seconds=self.followed_seconds))
            self.say(
                f"{stage.workload.name}: nothing to do: a run {idleness[0].run_wall_seconds:.1f} s, "
                f"a round {idleness[0].round_wall_seconds * 1000:.0f} ms"
            )
        stage.sweep()
        return scene, found


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends it in order, like Ctrl-C
    folder = options.keep or Path(tempfile.mkdtemp(prefix="causeway-bench-"))
    try:
        workloads = chosen(options.workloads, options.scale, options.batch_bytes)
        contenders = _contenders(with_mirror_maker=not options.without_mirror_maker)
        bench = Bench(folder, contenders, options.rounds, _say)
        outcomes = [_told(bench.run(workload)) for workload in workloads]
        line = _line(bench, options)
    except KeyboardInterrupt:
        _say("bench: interrupted; everything that it started is stopped")
        return _INTERRUPTED
    except (TurnFailed, CausewayError, ValueError) as failure:
        _say(f"bench: {failure}")
        return 1
    finally:
        if options.keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    if options.keep is not None:
        (folder / "benchmarks.json").write_text(raw(outcomes, line), encoding="utf-8")
    if _is_whole(options):
        write_page(outcomes, line)
        _say(f"written: {PAGE.name}")
    else:
        _say("bench: not the full size, or not everybody: docs/benchmarks.md stays as it is")
    return 0


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description="Measure Causeway beside MirrorMaker 2.")
    parser.add_argument("--scale", type=float, default=1.0, help="of the full size: 0.02 for a quick look")
    parser.add_argument(
        "--workloads", default="", help=f"of {', '.join(w.name for w in (*WORKLOADS, LINE))}; all if empty"
    )
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help="how many turns everybody has")
    parser.add_argument(
        "--batch-bytes", type=int, help="of the source's batches, other than the workload says"
    )
    parser.add_argument("--without-mirror-maker", action="store_true", help="only the others")
    parser.add_argument("--keep", type=Path, help="leave logs and raw numbers in this folder")
    return parser.parse_args(arguments)


def _is_whole(options: argparse.Namespace) -> bool:
    is_changed = options.workloads or options.batch_bytes or options.without_mirror_maker
    return bool(options.scale == 1 and options.rounds >= _ROUNDS and not is_changed)


def _contenders(*, with_mirror_maker: bool) -> list[Contender]:
    others: list[Contender] = [PlainLoop(), CausewayOnSpark()]
    if not with_mirror_maker:
        return others
    ensure_jars(JARS)
    return [MirrorMaker(is_tuned=False), MirrorMaker(is_tuned=True), *others]


def _line(bench: Bench, options: argparse.Namespace) -> LineOutcome | None:
    wanted = split_names(options.workloads)
    if wanted and LINE.name not in wanted:
        return None
    mirrors = [each for each in bench.contenders if not isinstance(each, PlainLoop)]
    found = measure_slow_line(bench.folder / LINE.name, mirrors, options.scale, bench.rounds, _say)
    _say(f"\n{found.workload.title}, over a slow line\n{line_table(found)}")
    return found


def _told(outcome: Outcome) -> Outcome:
    _say(f"\n{outcome.workload.title}\n{plain_text(outcome)}")
    return outcome


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
