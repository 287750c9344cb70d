"""The command line: `causeway <verb>`. Parses, runs one verb, prints its outcome, ends with its exit code.

What machines read goes to standard output; progress, notes and errors go to standard error. Ctrl-C and
SIGTERM end a verb in the same way, with 130, after it has cleaned up.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from argparse import SUPPRESS, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from causeway import __version__, interruption
from causeway.core.errors import BadInput, CausewayError
from causeway.entrypoints import completion, flow_verbs, screen, verbs
from causeway.entrypoints.doctor_verb import add_doctor
from causeway.entrypoints.drill_verb import add_drill
from causeway.entrypoints.extras import extras_named
from causeway.entrypoints.failback_verb import add_failback
from causeway.entrypoints.failover_verb import add_failover
from causeway.entrypoints.gap_verbs import add_gap_verbs
from causeway.entrypoints.groups_verb import add_groups
from causeway.entrypoints.import_verb import add_import
from causeway.entrypoints.interrupted import last_line
from causeway.entrypoints.map_verbs import add_map_verbs
from causeway.entrypoints.next_verb import add_next
from causeway.entrypoints.recover_verb import add_recover
from causeway.entrypoints.upkeep_verbs import add_upkeep
from causeway.entrypoints.verb_texts import DESCRIPTION, description_of, ending_of, main_ending
from causeway.entrypoints.verbs import Outcome, Request, Verb

DEFECT = 6


def main(arguments: Sequence[str] | None = None) -> int:
    """:returns: the exit code. The only place where an error becomes a line and a number."""
    completion.answer_the_shell(parser)
    screen.hold_closed_streams()
    with interruption.listening(), interruption.whole():
        return _heard(list(sys.argv[1:] if arguments is None else arguments))


def _heard(given: list[str]) -> int:
    """Only the verb can be ended: what is said of it afterwards nobody could say again."""
    as_json, options = "--json" in given, None
    try:
        with interruption.endable():
            _refuse_lone_dashes(given)
            options = parser().parse_args(given)
            with extras_named():
                outcome = _verb(options)(_request(options))
        _print(outcome, as_json=as_json)
        if interruption.was_not_heard():
            screen.note("causeway: interrupted when all was done: what is printed holds")
            return interruption.EXIT_CODE
    except CausewayError as error:
        if interruption.was_asked():
            screen.note(f"causeway: interrupted; meanwhile: {error}")
            return interruption.EXIT_CODE
        _complain(error, as_json=as_json)
        return error.exit_code
    except KeyboardInterrupt as stop:
        screen.note(last_line(stop, options))
        return interruption.EXIT_CODE
    except Exception:  # noqa: BLE001 - the last boundary: Python's own exit code, 1, would mean "difference found"
        screen.note(traceback.format_exc())
        screen.note(
            "causeway: error: a defect of Causeway, not of what you wrote; please report the lines above"
        )
        return DEFECT
    return outcome.exit_code


def _refuse_lone_dashes(given: Sequence[str]) -> None:
    """argparse takes only the first one for what it is, and hands on lists where there should be words.

    :raises BadInput: one that means nothing.
    """
    if given.count("--") > 1 or any(word.startswith("--") and word.endswith("=--") for word in given):
        remedy = "write it once, before what begins with a dash"
        raise BadInput("--", rule="means that no option follows, and is no value", remedy=remedy)


def _verb(options: Namespace) -> Verb:
    verb: Verb = options.verb
    return verb


def _request(options: Namespace) -> Request:
    say = _say if options.verbose else _say_nothing
    return Request(
        options=options, environ=os.environ, directory=_current_folder(), progress=screen.note, say=say
    )


def _current_folder() -> Path:
    """:raises BadInput: somebody has deleted it."""
    try:
        return Path.cwd()
    except OSError as reason:
        raise BadInput(
            "the current folder",
            rule=f"can't be used: {reason.strerror}",
            remedy="go to the project's folder (cd), and run it again",
        ) from None


def _say(line: str) -> None:
    screen.note(f"causeway: {line}")


def _say_nothing(_line: str) -> None:
    """Without --verbose, where things were found is nobody's interest."""


def _print(outcome: Outcome, *, as_json: bool) -> None:
    """:raises BadInput: standard output takes no more."""
    why = screen.answer_in_json(outcome.payload) if as_json else screen.answer(outcome.text)
    if why:
        raise _unwritten(why, f"the command itself is over, with exit code {outcome.exit_code}")


class _Unwritten(BadInput):
    """Nobody can read the answer, nor, in JSON, that it is missing."""


def _unwritten(why: str, what_stands: str) -> _Unwritten:
    return _Unwritten(
        "standard output",
        rule=f"the answer can't be written there: {why}",
        remedy=f"{what_stands}; make room, or let it write elsewhere, and ask again",
    )


def _complain(error: CausewayError, *, as_json: bool) -> None:
    payload = {**error.as_dict(), "message": str(error), "exit_code": error.exit_code}
    if not as_json or isinstance(error, _Unwritten) or screen.answer_in_json(payload):
        screen.note(f"causeway: error: {error}")


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

    def _print_message(self, message: str, file: Any = None) -> None:
        """Help and version, which nobody may be able to read."""
        why = screen.answer(message.rstrip("\n"))
        if why:
            raise _unwritten(why, "nothing was done")

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
    common = _common_options()
    root = _new_parser("causeway", DESCRIPTION, main_ending())
    root.add_argument("--version", action="version", version=f"causeway {__version__}")
    root.set_defaults(file=None, verbose=False, json=False)
    commands = root.add_subparsers(title="verbs", metavar="VERB", required=True, dest="VERB")

    def add(
        name: str, verb: Verb, summary: str, *, of: Any = commands, has_flow: bool = True
    ) -> ArgumentParser:
        made: _Parser = of.add_parser(
            name,
            help=summary,
            parents=[common],
            allow_abbrev=False,
            formatter_class=RawDescriptionHelpFormatter,
        )
        _explain(made, summary)
        made.set_defaults(verb=verb)
        made.is_intermixed = not completion.is_asked()  # it hides what excludes what
        if has_flow:
            flow: Any = made.add_argument("flow", metavar="FLOW", help="a flow of flows.yaml")
            flow.completer = completion.flow_names
        return made

    _add_lab(commands, add)
    _add_flows(add)
    add("plan", flow_verbs.plan, "show what a run would copy; writes nothing")
    _add_run(add("run", flow_verbs.run, "copy records, until caught up or for a time"))
    add("status", flow_verbs.status, "show who holds the flow, and position, end and lag of each partition")
    _add_verify(add)
    add_next(add)
    add_groups(add)
    add_doctor(add)
    add_map_verbs(add)
    add_upkeep(add)
    _add_fences(add)
    add_recover(add)
    add_failover(add)
    add_failback(add)
    add_drill(add)
    add_gap_verbs(add)
    add_import(add)
    return root


def _explain(made: ArgumentParser, summary: str) -> None:
    verb = made.prog.removeprefix("causeway ")
    made.description, made.epilog = description_of(verb, summary), ending_of(verb)


def _add_flows(add: Any) -> None:
    listing = add("flows", verbs.flows, "check flows.yaml and list its flows", has_flow=False)
    listing.add_argument(
        "--connections", action="store_true", help="check the clusters' connections too; asks no cluster"
    )


def _add_verify(add: Any) -> None:
    verify = add("verify", flow_verbs.verify, "compare source and target, record by record, in order")
    verify.add_argument(
        "--all",
        action="store_true",
        help="after a failback: also compare what was mirrored before it, and what it brought back",
    )


def _add_fences(add: Any) -> None:
    for name, verb, summary in (
        ("fence", flow_verbs.fence, "stop a flow: nothing is added until an operator lifts the fence"),
        ("lift", flow_verbs.lift, "lift a fence, so that runs may add records again"),
    ):
        parser = add(name, verb, summary)
        parser.add_argument(
            "--because", metavar="TEXT", required=True, help="the reason; Causeway keeps it and shows it"
        )
        if verb is flow_verbs.fence:
            parser.add_argument(
                "--topics", metavar="NAMES", help="fence only these source topics: a,b; the others continue"
            )
        else:
            parser.add_argument(
                "--fence", metavar="N", help="lift fence N of `causeway status`, if the flow has several"
            )


def _new_parser(name: str, description: str, epilog: str) -> _Parser:
    return _Parser(
        prog=name,
        parents=[_common_options()],  # its own: root's defaults would become those of the verbs
        description=description,
        epilog=epilog,
        allow_abbrev=False,
        formatter_class=RawDescriptionHelpFormatter,
    )


def _common_options() -> ArgumentParser:
    """Before and after each verb; SUPPRESS keeps a verb's silence from undoing what was said before it."""
    common = ArgumentParser(add_help=False)
    common.add_argument(
        "--file",
        metavar="PATH",
        default=SUPPRESS,
        help="flows.yaml (default: CAUSEWAY_FLOWS, else include/flows.yaml here or in a folder above)",
    )
    common.add_argument(
        "--json", action="store_true", default=SUPPRESS, help="print JSON; an error, too, is one object"
    )
    common.add_argument(
        "--verbose", action="store_true", default=SUPPRESS, help="report what is read, and where it was found"
    )
    return common


def _add_lab(commands: Any, add: Any) -> None:
    summary = "run real Kafka clusters on this machine, for trials"
    lab = commands.add_parser(
        "lab", help=summary, allow_abbrev=False, formatter_class=RawDescriptionHelpFormatter
    )
    _explain(lab, summary)
    verbs_of_lab = lab.add_subparsers(title="verbs", metavar="VERB", required=True, dest="LAB_VERB")
    up = add("up", verbs.lab_up, "start the clusters", of=verbs_of_lab, has_flow=False)
    up.add_argument(
        "--clusters", metavar="NAMES", default="sf,nyc", help="their names, with commas (default: sf,nyc)"
    )
    up.add_argument(
        "--kafka", metavar="VERSION", choices=("4.3.1", "3.9.2"), help="Kafka 4.3.1 (default) or 3.9.2"
    )
    up.add_argument(
        "--security", choices=("PLAINTEXT", "SASL_SSL"), help="PLAINTEXT (default); SASL_SSL: TLS and SCRAM"
    )
    up.add_argument("--nodes", type=int, choices=(1, 2, 3, 5), help="nodes of each cluster (default: 1)")
    down = add("down", verbs.lab_down, "stop the clusters; their data stays", of=verbs_of_lab, has_flow=False)
    down.add_argument(
        "--forget", action="store_true", help="DELETE the data of this lab, of earlier labs and of the demo"
    )
    add(
        "status",
        verbs.lab_status,
        "show what runs, where it listens and where it logs",
        of=verbs_of_lab,
        has_flow=False,
    )


def _add_run(run: ArgumentParser) -> None:
    length = run.add_mutually_exclusive_group()
    length.add_argument(
        "--until-caught-up",
        action="store_true",
        help="end once all is copied that the source held when the run began",
    )
    length.add_argument(
        "--run-for",
        metavar="TIME",
        help="follow the source for this time: 30s, 10m (default: the flow's run_for)",
    )
    run.add_argument(
        "--topics", metavar="NAMES", help="copy only these source topics: a,b; leave the others alone"
    )
    run.add_argument(
        "--take-over", action="store_true", help="take the flow from a run that holds it; that run ends"
    )
    run.add_argument("--report", metavar="PATH", help="write the run's report to this file, as JSON")
    run.add_argument(
        "--no-groups",
        action="store_true",
        help="leave consumer groups alone (default: sync them at the end, with sync.group.offsets.enabled)",
    )
    run.add_argument("--dry-run", action="store_true", help="show the plan only; write nothing")


if __name__ == "__main__":
    raise SystemExit(main())
