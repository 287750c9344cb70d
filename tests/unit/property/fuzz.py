"""`make fuzz`: the properties of the batch decoder for as long as you like, each time with another seed.

A seed that fails is printed by Hypothesis, with the smallest example; nothing is run again until it passes.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
from pathlib import Path

_FOLDER = Path(__file__).parent
_FILES = ("test_batches_hold.py", "test_isolation_holds.py")
_EXAMPLES = 2_000


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description="Dig for batches that the decoder can't take.")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--examples", type=int, default=_EXAMPLES, help="of each property, in each turn")
    options = parser.parse_args(arguments)
    began, turns = time.monotonic(), 0
    while time.monotonic() - began < 60 * options.minutes:
        seed = random.SystemRandom().randrange(1 << 32)
        print(f"fuzz: turn {turns + 1}, seed {seed}", flush=True)
        if _turn(seed, options.examples):
            print(f"fuzz: failed with seed {seed}")
            return 1
        turns += 1
    minutes = (time.monotonic() - began) / 60
    print(f"fuzz: {turns} turns of {options.examples:,} for each property, {minutes:.1f} minutes: all held")
    return 0


def _turn(seed: int, examples: int) -> int:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--timeout", "0"]
    command += ["-p", "no:xdist", f"--hypothesis-seed={seed}", *(str(_FOLDER / name) for name in _FILES)]
    return subprocess.run(
        command, env={**os.environ, "PROPERTY_EXAMPLES": str(examples)}, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
