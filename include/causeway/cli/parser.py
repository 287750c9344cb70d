"""The verbs of `causeway` and their options, as argparse takes them."""

from __future__ import annotations

import re
from argparse import SUPPRESS, ArgumentParser, RawDescriptionHelpFormatter
from typing import Any, NoReturn

from causeway import __version__
from causeway.cli import completion, screen
from causeway.cli.commands import fence, flows, lab, run, status, verify
from causeway.cli.commands.doctor import add_doctor
from causeway.cli.commands.drill import add_drill
from causeway.cli.commands.failback import add_failback
from causeway.cli.commands.failover import add_failover
from causeway.cli.commands.groups import add_groups
from causeway.cli.commands.import_mm2 import add_import
from causeway.cli.commands.next import add_next
from causeway.cli.commands.offsets import add_map_verbs
from causeway.cli.commands.recover import add_recover
from causeway.cli.commands.repair import add_gap_verbs
from causeway.cli.commands.upkeep import add_upkeep
from causeway.cli.request import Verb
from causeway.cli.verb_texts import DESCRIPTION, description_of, ending_of, main_ending
from causeway.core.kernel.errors import BadInput


class _Parser(ArgumentParser):
    """argparse, with errors in one line like all others, and options between places, not only after them."""

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
            raise screen.unwritten(why, "nothing was done")

    def error(self, message: str) -> NoReturn:
        raise BadInput(self.prog, rule=_rephrased(message), remedy=f"see {self.prog} --help")


def _rephrased(message: str) -> str:
    """argparse lists the choices; the nearest one is what helps."""
    from causeway.config.values.refusal import suggestion

    found = re.search(
        r"argument (?P<of>.*?): invalid choice: '(?P<given>.*)' \(choose from (?P<known>.*)\)", message
    )
    if found is None:
        return message
    known = [name.strip("' ") for name in found["known"].split(",")]
    return f"there is no {_noun(found['of'])} {found['given']!r}; {suggestion(found['given'], known)}"


def _noun(argument: str) -> str:
    return "verb" if argument == "VERB" else f"{argument} of"


class _Verbs:
    """The verbs as they are added, each with the options that all of them have."""

    def __init__(self, root: ArgumentParser) -> None:
        self.commands: Any = root.add_subparsers(title="verbs", metavar="VERB", required=True, dest="VERB")
        self._common = _common_options()

    def add(
        self, name: str, verb: Verb, summary: str, *, of: Any = None, has_flow: bool = True
    ) -> ArgumentParser:
        """`of`: the group of verbs that this one belongs to, as `up` to `lab`."""
        made: _Parser = (of or self.commands).add_parser(
            name,
            help=summary,
            parents=[self._common],
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


def parser() -> ArgumentParser:
    root = _new_parser("causeway", DESCRIPTION, main_ending())
    root.add_argument("--version", action="version", version=f"causeway {__version__}")
    root.set_defaults(file=None, verbose=False, json=False)
    verbs = _Verbs(root)
    add = verbs.add
    _add_lab(verbs.commands, add)
    _add_flows(add)
    add("plan", run.plan, "show what a run would copy; writes nothing")
    _add_run(add("run", run.run, "copy records, until caught up or for a time"))
    add("status", status.status, "show who holds the flow, and position, end and lag of each partition")
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
    listing = add("flows", flows.flows, "check flows.yaml and list its flows", has_flow=False)
    listing.add_argument(
        "--connections", action="store_true", help="check the clusters' connections too; asks no cluster"
    )


def _add_verify(add: Any) -> None:
    parser = add("verify", verify.verify, "compare source and target, record by record, in order")
    parser.add_argument(
        "--all",
        action="store_true",
        help="after a failback: also compare what was mirrored before it, and what it brought back",
    )


def _add_fences(add: Any) -> None:
    for name, verb, summary in (
        ("fence", fence.fence, "stop a flow: nothing is added until an operator lifts the fence"),
        ("lift", fence.lift, "lift a fence, so that runs may add records again"),
    ):
        parser = add(name, verb, summary)
        parser.add_argument(
            "--because", metavar="TEXT", required=True, help="the reason; Causeway keeps it and shows it"
        )
        if verb is fence.fence:
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
    """Before and after each verb; SUPPRESS keeps a verb's silence from undoing what was given before it."""
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
    of_lab = commands.add_parser(
        "lab", help=summary, allow_abbrev=False, formatter_class=RawDescriptionHelpFormatter
    )
    _explain(of_lab, summary)
    verbs_of_lab = of_lab.add_subparsers(title="verbs", metavar="VERB", required=True, dest="LAB_VERB")
    up = add("up", lab.lab_up, "start the clusters", of=verbs_of_lab, has_flow=False)
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
    down = add("down", lab.lab_down, "stop the clusters; their data stays", of=verbs_of_lab, has_flow=False)
    down.add_argument(
        "--forget", action="store_true", help="DELETE the data of this lab, of earlier labs and of the demo"
    )
    add(
        "status",
        lab.lab_status,
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
