"""Play one seed and say what happened: `python -m tests.simulation.replay SEED [--all]`."""

from __future__ import annotations

import argparse
import sys

from tests.simulation.scenario import (
    scenario_of,
    settling_anyway_scenario_of,
    settling_scenario_of,
    starting_scenario_of,
)
from tests.simulation.seeds import play

WORLDS = {
    "any": scenario_of,
    "settling": settling_scenario_of,
    "settling-anyway": settling_anyway_scenario_of,
    "starting": starting_scenario_of,
}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="replay", description="Play one seed again.")
    parser.add_argument("seed", type=int)
    parser.add_argument("--world", choices=WORLDS, default="any")
    parser.add_argument("--all", action="store_true", help="the whole trace, not its end only")
    options = parser.parse_args(arguments)
    outcome = play(options.seed, trace=True, scenario_of=WORLDS[options.world])
    lines = outcome.trace if options.all else outcome.trace[-60:]
    print("\n".join([str(outcome.scenario), *lines, str(outcome)]))
    return 0 if outcome.failure is None else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
