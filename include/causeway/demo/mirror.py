"""`make demo`: two real clusters, a story, Airflow, two runs of the mirror, and proof that nothing differs.
`make demo-failover`, while it is up: one of the clusters dies, and a consumer goes on on the other.

Invariants
  a. Each step says what it does, what it waits for, and how long it took.
  b. Ctrl-C, SIGTERM or a failure at any moment leaves no process running. After success Airflow and the
     brokers stay until `demo down`, which also cleans up after a demo that was killed with -9.
  c. It can be run again: the brokers' data stay (the next story continues after them), Airflow begins again.
"""

from __future__ import annotations

import argparse
import signal
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from causeway.core.kernel.errors import CausewayError
from causeway.demo.airflow_processes import stop_airflow
from causeway.demo.failover import show_failover
from causeway.demo.steps import airflow_directory, show_demo, step
from causeway.lab import lab

DIFFERENT = 1
DEFECT = 6
INTERRUPTED = 130
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(arguments: Sequence[str]) -> int:
    """:returns: 0 if both clusters hold the same, 1 if they differ, else the code of the error."""
    options = _options(arguments)
    if options.what == "down":
        take_down()
        return 0
    for number in _SIGNALS:
        signal.signal(number, _interrupt)
    try:
        equal = _show(options)
    except KeyboardInterrupt:
        return _ended("interrupted", INTERRUPTED)
    except CausewayError as error:
        return _ended(f"error: {error}", error.exit_code)
    except Exception:  # noqa: BLE001 - the last boundary: whatever broke, nothing is left
        traceback.print_exc()
        return _ended("error: a defect of Causeway; please report the lines above", DEFECT)
    if options.what == "up" and options.then_down:
        take_down()
    return 0 if equal else DIFFERENT


def _show(options: argparse.Namespace) -> bool:
    if options.what == "failover":
        return show_failover()
    return show_demo(records=options.records, follow_seconds=options.follow_seconds)


def take_down() -> None:
    """Stops all that the demo started, by its own records; safe to repeat, and not to be interrupted."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    with step("taking down") as say:
        stop_airflow(airflow_directory(), say)
        for stopped in lab.down(say=say):
            say(f"{stopped.name}: stopped" if stopped.pids else f"{stopped.name}: was not running")
        # A process that was being started when the first look was taken.
        stop_airflow(airflow_directory(), say)
        say("nothing of the demo runs any more; data and logs stay in .causeway until `make clean`")


def _ended(why: str, exit_code: int) -> int:
    with suppress(OSError):
        print(f"\ndemo: {why}", file=sys.stderr, flush=True)
    take_down()
    return exit_code


def _interrupt(_number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m causeway.demo.mirror", description=__doc__)
    commands = parser.add_subparsers(dest="what", required=True)
    up = commands.add_parser("up", help="show the demo")
    up.add_argument("--records", type=int, default=200_000, help="records of the story")
    up.add_argument(
        "--follow-seconds", type=int, default=20, help="how long the first run follows the source"
    )
    up.add_argument("--then-down", action="store_true", help="stop everything at the end")
    commands.add_parser("failover", help="the second act: sf dies, and its consumers go on on nyc")
    commands.add_parser("down", help="stop everything")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
