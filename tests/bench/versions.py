"""Two versions of Causeway side by side, in alternation, on one machine: did a change cost speed or memory?

    git worktree add ../before REV
    python -m tests.bench.versions --other ../before [--rounds 5] [--workloads plain,lz4] [--scale 1]

Both run in this tree's environment; only their code differs. Turns go forwards and backwards, so what the
machine does meanwhile meets both alike. The answer is a ratio with the spread of the turns beside it.
"""

from __future__ import annotations

import argparse
import signal
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from causeway.core.kernel.errors import CausewayError
from tests.bench.bench import Bench
from tests.bench.peers.causeway_spark import CausewayOnSpark
from tests.bench.turn import Measurement, TurnFailed
from tests.bench.workloads import chosen

HERE, OTHER = "Causeway, this tree", "Causeway, the other"
_FIGURES: dict[str, Callable[[Measurement], float]] = {
    "records/s": lambda turn: turn.records_per_second,
    "CPU s": lambda turn: turn.cpu_seconds,
    "peak MB": lambda turn: turn.peak_bytes / 1e6,
}


def lines_of(turns: Sequence[Measurement]) -> list[str]:
    """A line for each figure: both means, both spreads, and this tree's as a share of the other's."""
    lines: list[str] = []
    for name, figure in _FIGURES.items():
        here = [figure(turn) for turn in turns if turn.contender == HERE]
        other = [figure(turn) for turn in turns if turn.contender == OTHER]
        ratio = statistics.mean(here) / statistics.mean(other)
        lines.append(f"{name:10} this tree {_spread(here)}, the other {_spread(other)}: {ratio:.2f}")
    return lines


def _spread(values: Sequence[float]) -> str:
    return f"{statistics.mean(values):,.1f} ({min(values):,.1f} to {max(values):,.1f})"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="versions", description=__doc__.splitlines()[0])
    parser.add_argument("--other", type=Path, required=True, help="a tree with the other version's code")
    parser.add_argument("--rounds", type=int, default=5, help="how many turns each has")
    parser.add_argument("--workloads", default="plain,lz4", help="as of tests.bench.bench")
    parser.add_argument("--scale", type=float, default=1.0, help="of the full size")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    both = [
        CausewayOnSpark(name=OTHER, tree=options.other.resolve()),
        CausewayOnSpark(name=HERE),
    ]
    try:
        with tempfile.TemporaryDirectory(prefix="causeway-versions-") as folder:
            bench = Bench(Path(folder), both, options.rounds, _say, watches_idleness=False)
            for workload in chosen(options.workloads, options.scale, None):
                turns = bench.run(workload).turns
                _say(f"\n{workload.title}, {options.rounds} turns each")
                _say("\n".join(lines_of(turns)) + "\n")
    except KeyboardInterrupt:
        _say("versions: interrupted; everything that it started is stopped")
        return 130
    except (TurnFailed, CausewayError, ValueError) as failure:
        _say(f"versions: {failure}")
        return 1
    return 0


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
