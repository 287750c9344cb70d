"""The command line: `causeway <verb>`. Parses, runs one verb, prints its outcome, ends with its exit code.

What machines read goes to standard output; progress, notes and errors go to standard error. Ctrl-C and
SIGTERM end a verb in the same way, with 130, after it has cleaned up.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import traceback
from argparse import SUPPRESS, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from causeway.core.errors import BadInput, CausewayError
from causeway.entrypoints import flow_verbs, verbs
from causeway.entrypoints.doctor_verb import add_doctor
from causeway.entrypoints.drill_verb import add_drill
from causeway.entrypoints.failback_verb import add_failback
from causeway.entrypoints.failover_verb import add_failover
from causeway.entrypoints.gap_verbs import add_gap_verbs
from causeway.entrypoints.groups_verb import add_groups
from causeway.entrypoints.import_verb import add_import
from causeway.entrypoints.map_verbs import add_map_verbs
from causeway.entrypoints.upkeep_verbs import add_upkeep
from causeway.entrypoints.verbs import Outcome, Request, Verb

INTERRUPTED = 130
DEFECT = 6

_DESCRIPTION = """\
Mirrors Kafka clusters: exact, provable, native to Airflow and Spark.

A flow copies topics from a source cluster to a target cluster; include/flows.yaml says which. Try it here,
with two real brokers on this machine:

  causeway lab up                           start the clusters sf and nyc
  causeway flows                            check flows.yaml and list its flows
  causeway doctor sf_to_nyc                 are both clusters fit for it? what isn't, and the way out
  causeway plan sf_to_nyc                   what a run would copy; writes nothing
  causeway run sf_to_nyc --until-caught-up  copy it
  causeway status sf_to_nyc                 who holds it, where each partition stands, what is parked
  causeway verify sf_to_nyc                 compare both clusters, record by record
  causeway drift sf_to_nyc                  settings and ACLs that differ; `sync` makes them the source's
  causeway groups sf_to_nyc                 where consumer groups would go on, or why not
  causeway lab down                         stop the clusters; their data stays (--forget: deletes them)
"""
_EPILOG = """\
exit codes:
  0    done
  1    verify or drift found a difference, verify nothing to compare, translate an offset that leads nowhere,
       drill what isn't as planned
  2    what a person wrote is wrong: an option, a name, a field of flows.yaml or of a connection
  3    a cluster can't be used as asked: unreachable, password, a missing right, too old
  4    somebody else has the flow: another run, a fence
  5    partitions are parked, or groups left alone; the others were copied, compared, or moved
  6    the clusters contradict the protocol, or Causeway has a defect: stop and look
  130  interrupted

A cluster is an Airflow connection of type kafka, whose extra holds librdkafka's keys. It is looked for in the
environment (AIRFLOW_CONN_KAFKA_SF='{"conn_type": "kafka", "extra": {"bootstrap.servers": "..."}}'), then in
a running lab, then in Airflow. Secrets are never options. A lab's data, shared with `make demo`, and Kafka's
jars are kept in .causeway of the project, or of the folder that CAUSEWAY_HOME names.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """:returns: the exit code. The only place where an error becomes a line and a number."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in given
    previous = signal.signal(signal.SIGTERM, _interrupt)
    try:
        options = parser().parse_args(given)
        outcome = _verb(options)(_request(options))
        _print(outcome, as_json=as_json)
    except CausewayError as error:
        _complain(error, as_json=as_json)
        return error.exit_code
    except KeyboardInterrupt as stop:
        _note(f"causeway: interrupted{f'; {stop}' if str(stop) else ''}")  # what couldn't be cleaned up
        return INTERRUPTED
    except Exception:  # noqa: BLE001 - the last boundary: Python's own exit code, 1, would mean "difference found"
        traceback.print_exc()
        _note("causeway: error: a defect of Causeway, not of what you wrote; please report the lines above")
        return DEFECT
    finally:
        signal.signal(signal.SIGTERM, previous)
    return outcome.exit_code


def _interrupt(_number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


def _verb(options: Namespace) -> Verb:
    verb: Verb = options.verb
    return verb


def _request(options: Namespace) -> Request:
    say = _say if options.verbose else _say_nothing
    return Request(options=options, environ=os.environ, directory=Path.cwd(), progress=_note, say=say)


def _say(line: str) -> None:
    _note(f"causeway: {line}")


def _say_nothing(_line: str) -> None:
    """Without --verbose, where things were found is nobody's interest."""


def _print(outcome: Outcome, *, as_json: bool) -> None:
    text = json.dumps(outcome.payload, indent=2, ensure_ascii=False) if as_json else outcome.text
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # `causeway flows | head -1`: the reader has what it wanted. Python would complain again at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _note(line: str) -> None:
    try:
        print(line, file=sys.stderr, flush=True)
    except BrokenPipeError:  # nobody reads progress any more; that is no reason to stop copying
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def _complain(error: CausewayError, *, as_json: bool) -> None:
    if as_json:
        payload = {**error.as_dict(), "message": str(error), "exit_code": error.exit_code}
        _print(Outcome(payload=payload, text=""), as_json=True)
    else:
        _note(f"causeway: error: {error}")


class _Parser(ArgumentParser):
    """argparse, with errors in one line like all others, and options between places, not only behind them."""

    is_intermixed = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        if not self.is_intermixed:
            return super().parse_known_args(args, namespace)
        self.is_intermixed = False  # it asks this method in turn
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self.is_intermixed = True

    def error(self, message: str) -> NoReturn:
        raise BadInput(self.prog, rule=_rephrased(message), remedy=f"see {self.prog} --help")


def _rephrased(message: str) -> str:
    """argparse lists the choices; the nearest one is what helps."""
    from causeway.config.refusal import suggestion

    found = re.search(
        r"argument (?P<of>.*?): invalid choice: '(?P<given>.*)' \(choose from (?P<known>.*)\)", message
    )
    if found is None:
        return message
    known = [name.strip("' ") for name in found["known"].split(",")]
    return f"there is no {_noun(found['of'])} {found['given']!r}; {suggestion(found['given'], known)}"


def _noun(argument: str) -> str:
    return "verb" if argument == "VERB" else f"{argument} of"


def parser() -> ArgumentParser:
    root = _new_parser("causeway", _DESCRIPTION, _EPILOG)
    root.add_argument("--version", action="version", version=f"causeway {_version()}")
    common = _common_options()
    root.set_defaults(file=None, verbose=False, json=False)
    commands = root.add_subparsers(title="verbs", metavar="VERB", required=True, dest="VERB")

    def add(
        name: str, verb: Verb, summary: str, *, of: Any = commands, has_flow: bool = True
    ) -> ArgumentParser:
        made: _Parser = of.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            parents=[common],
            allow_abbrev=False,
            formatter_class=RawDescriptionHelpFormatter,
        )
        made.set_defaults(verb=verb)
        made.is_intermixed = True
        if has_flow:
            made.add_argument("flow", metavar="FLOW", help="a flow of flows.yaml")
        return made

    _add_lab(commands, add)
    listing = add("flows", verbs.flows, "check flows.yaml and list its flows", has_flow=False)
    listing.add_argument(
        "--connections", action="store_true", help="check the clusters' connections too (no network)"
    )
    add("plan", flow_verbs.plan, "what a run would copy; writes nothing")
    _add_run(add("run", flow_verbs.run, "copy, until caught up or for a time"))
    add("status", flow_verbs.status, "who holds the flow; position, end and lag of each partition")
    add("verify", flow_verbs.verify, "compare source and target record by record, in order")
    add_groups(add)
    add_doctor(add)
    add_map_verbs(add)
    add_upkeep(add)
    _add_fences(add)
    add_failover(add)
    add_failback(add)
    add_drill(add)
    add_gap_verbs(add)
    add_import(add)
    return root


def _add_fences(add: Any) -> None:
    for name, verb, summary in (
        (
            "fence",
            flow_verbs.fence,
            "end the flow's runs for good: nothing is added until the fence is lifted",
        ),
        ("lift", flow_verbs.lift, "lift the fence: runs may add records again"),
    ):
        because = add(name, verb, summary)
        because.add_argument(
            "--because", metavar="TEXT", required=True, help="why; kept, and shown to who asks"
        )


def _new_parser(name: str, description: str, epilog: str) -> _Parser:
    return _Parser(
        prog=name,
        description=description,
        epilog=epilog,
        allow_abbrev=False,
        formatter_class=RawDescriptionHelpFormatter,
    )


def _common_options() -> ArgumentParser:
    """After each verb; SUPPRESS keeps a verb's silence from undoing what was said before."""
    common = ArgumentParser(add_help=False)
    common.add_argument(
        "--file",
        metavar="PATH",
        default=SUPPRESS,
        help="flows.yaml (default: CAUSEWAY_FLOWS, else include/flows.yaml, found upward)",
    )
    common.add_argument(
        "--json", action="store_true", default=SUPPRESS, help="print for machines; errors too, as one object"
    )
    common.add_argument(
        "--verbose", action="store_true", default=SUPPRESS, help="say what is read and where it was found"
    )
    return common


def _add_lab(commands: Any, add: Any) -> None:
    summary = "real Kafka clusters on this machine, to try things out"
    lab = commands.add_parser("lab", help=summary, description=f"{summary}.", allow_abbrev=False)
    verbs_of_lab = lab.add_subparsers(title="verbs", metavar="VERB", required=True, dest="LAB_VERB")
    up = add(
        "up",
        verbs.lab_up,
        "start the clusters; those that are up stay as they are",
        of=verbs_of_lab,
        has_flow=False,
    )
    up.add_argument("--clusters", metavar="NAMES", default="sf,nyc", help="with commas (default: sf,nyc)")
    up.add_argument(
        "--kafka", metavar="VERSION", default="4.3.1", choices=("4.3.1", "3.9.2"), help="4.3.1 or 3.9.2"
    )
    up.add_argument(
        "--security", default="PLAINTEXT", choices=("PLAINTEXT", "SASL_SSL"), help="SASL_SSL: TLS and SCRAM"
    )
    up.add_argument("--nodes", type=int, default=1, choices=(1, 2, 3, 5), help="of each cluster (default: 1)")
    down = add("down", verbs.lab_down, "stop the clusters; their data stays", of=verbs_of_lab, has_flow=False)
    down.add_argument(
        "--forget", action="store_true", help="delete their data too, those of earlier labs and of the demo"
    )
    add("status", verbs.lab_status, "what runs, where it listens and logs", of=verbs_of_lab, has_flow=False)


def _add_run(run: ArgumentParser) -> None:
    length = run.add_mutually_exclusive_group()
    length.add_argument(
        "--until-caught-up", action="store_true", help="end as soon as nothing is left to copy"
    )
    length.add_argument(
        "--run-for",
        metavar="TIME",
        help="follow the source this long: 30s, 10m (default: the flow's run_for)",
    )
    run.add_argument("--take-over", action="store_true", help="take the flow from a run that still holds it")
    run.add_argument("--report", metavar="PATH", help="write the run's report there, as JSON")
    run.add_argument("--dry-run", action="store_true", help="plan only; writes nothing")


def _version() -> str:
    from importlib.metadata import version

    return version("causeway")


if __name__ == "__main__":
    raise SystemExit(main())
