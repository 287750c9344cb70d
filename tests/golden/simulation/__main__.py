"""A thousand seeds against what is recorded, in about a minute:

python -m tests.golden.simulation            compares; exit code 1 if a seed ends in another way
python -m tests.golden.simulation --write    writes digests.txt, after a change that is meant
"""

from __future__ import annotations

import argparse
import sys

from tests.golden.simulation.record import ALL, DIGESTS, differences, play_all, recorded, write

_SHOWN = 20


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="simulation", description="Compare a thousand seeds' endings.")
    parser.add_argument("--write", action="store_true", help="write them instead, and say what has changed")
    options = parser.parse_args(arguments)
    before, now = recorded() if DIGESTS.exists() else {}, play_all(ALL)
    different = differences(before, now)
    for line in different[:_SHOWN]:
        print(line)
    graver = sum("WHAT LASTS" in line for line in different)
    print(f"{len(now):,} seeds, {len(different):,} end in another way; of {graver:,} what lasts differs")
    if options.write:
        write(now)
        print(f"written: {DIGESTS}")
        return 0
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
