"""Play one seed and say what happened: `python -m tests.simulation.replay SEED [--all]`."""

from __future__ import annotations

import argparse
import sys

from tests.simulation.seeds import play


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="replay", description="Play one seed again.")
    parser.add_argument("seed", type=int)
    parser.add_argument("--all", action="store_true", help="the whole trace, not its end only")
    options = parser.parse_args(arguments)
    outcome = play(options.seed, trace=True)
    lines = outcome.trace if options.all else outcome.trace[-60:]
    print("\n".join([str(outcome.scenario), *lines, str(outcome)]))
    return 0 if outcome.failure is None else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
