"""What the help of each verb says besides its options: purpose, exit codes of its own, an example.

`causeway VERB --help` shows it, and docs/command-line.md is made from it. Sentences have at most 15 words.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field

from causeway.cli.exit_codes import EXIT_CODES

_WIDTH = 100

DESCRIPTION = """\
Mirrors Kafka clusters: exact, provable, native to Airflow and Spark.

A flow copies topics from a source cluster to a target cluster. include/flows.yaml says which. To try it here,
with two real brokers on this machine:

  causeway lab up                           start the clusters sf and nyc
  causeway flows                            check flows.yaml and list its flows
  causeway doctor sf_to_nyc                 check that both clusters are fit for the flow
  causeway plan sf_to_nyc                   show what a run would copy; writes nothing
  causeway run sf_to_nyc --until-caught-up  copy it
  causeway status sf_to_nyc                 show who holds the flow, and where each partition is
  causeway next sf_to_nyc                   show the stage of a failover, and the next command
  causeway verify sf_to_nyc                 compare both clusters, record by record
  causeway drift sf_to_nyc                  show settings and ACLs that differ; `sync` makes them equal
  causeway groups sf_to_nyc                 show where consumer groups would continue, or why they can't
  causeway lab down                         stop the clusters; their data stays (--forget deletes it)
"""
_ENDING = """

A cluster is an Airflow connection of type kafka. Its extra holds librdkafka's keys. Causeway looks for it in
the environment (AIRFLOW_CONN_KAFKA_SF='{"conn_type": "kafka", "extra": {"bootstrap.servers": "..."}}'), then
in a running lab, then in Airflow. Secrets are never options. A lab keeps its data and Kafka's jars in
.causeway of the project, or of the folder that CAUSEWAY_HOME names. `make demo` uses the same data.
"""


@dataclass(frozen=True, slots=True)
class VerbText:
    purpose: str
    """Below the summary: what the operator has to know before the first use."""
    example: str
    exit_codes: Mapping[int, str] = field(default_factory=dict)
    """What a code means for this verb, where it means more than `EXIT_CODES` says."""
    notes: str = ""
    danger: str = ""
    """Before the purpose."""


_PARKED_OR_REFUSED = "a partition is parked, the flow refuses a topic, or the offset map is gone"
_FENCED = "a fence stops the flow"
_NEEDS_THE_MESSAGE = "Use the command that `status` or a run prints, with its values."

VERB_TEXTS: Mapping[str, VerbText] = {
    "lab": VerbText("The clusters are for trials, and `make demo` uses them.", "causeway lab up"),
    "lab up": VerbText(
        "A cluster that runs, or that has data, stays as it was made.",
        "causeway lab up --clusters sf,nyc --nodes 3",
    ),
    "lab down": VerbText(
        "Without --forget the next `lab up` finds all records again.",
        "causeway lab down",
        danger="--forget deletes all data of the lab and of the demo.",
    ),
    "lab status": VerbText("Also prints how other programs find the clusters.", "causeway lab status"),
    "flows": VerbText(
        "Reads flows.yaml and asks no cluster. A mistake ends it with file, line and fix.",
        "causeway flows --connections",
        {2: "flows.yaml has a mistake, or a connection can't be used"},
    ),
    "plan": VerbText(
        "Asks both clusters, copies nothing. Shows each partition and what a run would leave out.",
        "causeway plan sf_to_nyc",
        {5: _PARKED_OR_REFUSED},
    ),
    "run": VerbText(
        "Copies through Spark on this machine. A killed run loses nothing: the next run continues.",
        "causeway run sf_to_nyc --until-caught-up",
        {
            4: "another run holds the flow, or a fence stops it",
            5: "a partition is parked, the flow refuses a topic, or a lane is in doubt; the rest is copied",
        },
        notes="Records that are written after the run began are for the next run. "
        "If only the group sync at its end fails, the exit code is the sync's.",
    ),
    "status": VerbText(
        "Writes nothing. Works without the source. The last line says which command comes next.",
        "causeway status sf_to_nyc",
        {
            3: "the source does not answer; the table shows what the target knows",
            5: f"{_PARKED_OR_REFUSED}; or a consumer group is not protected",
        },
        notes="If the source does not answer, the first line says so, and since when. "
        "The table then shows what the target knows. "
        "These are positions, last mirrored records, holder, fences and parked partitions. "
        "END and LAG are unknown. --json prints the same table. "
        "If only some brokers of the source are silent, only their partitions wait. "
        "The exit code is then as if the silent ones were not there.",
    ),
    "verify": VerbText(
        "Reads the mirrored records of both clusters. Writes nothing. Parked partitions are listed apart.",
        "causeway verify sf_to_nyc",
        {
            1: "a record differs, is missing or is extra; or there was nothing to compare",
            5: "all that was compared is equal, but partitions are parked",
        },
    ),
    "next": VerbText(
        "Use it when you are lost in a failover or failback. It works without the source.",
        "causeway next sf_to_nyc",
    ),
    "groups": VerbText(
        "Translates what groups have committed on the source. Writes nothing without --sync.",
        "causeway groups sf_to_nyc --group billing",
        {4: f"with --sync: {_FENCED}"},
    ),
    "doctor": VerbText(
        "Prints PASSED, WARN or FAILED for each check, with a remedy. Deletes its scratch topic afterwards.",
        "causeway doctor sf_to_nyc",
        {
            2: "a check FAILED because of something that the operator wrote",
            3: "a check FAILED because of a cluster",
            5: "FAILED are only parked partitions, or groups that are not protected",
            6: "a check FAILED because something contradicts the protocol",
        },
    ),
    "translate": VerbText(
        "An offset is the next one to read. Only the target is asked.",
        "causeway translate sf_to_nyc orders:3:1234",
        {1: "an offset has no translation; its line says why"},
    ),
    "maintain": VerbText(
        "Keeps the offset map small. The DAG `maintain__<flow>` does it once a day.",
        "causeway maintain sf_to_nyc",
        {4: "a fence, a new run or another maintenance ended this one"},
    ),
    "drift": VerbText(
        "Says for each difference why `sync` would change it, or why not.",
        "causeway drift sf_to_nyc",
        {1: "`sync` would change something"},
    ),
    "sync": VerbText(
        "Changes only mirrors that this flow has begun. Removes only ACLs that Causeway added.",
        "causeway sync sf_to_nyc --dry-run",
        {4: _FENCED},
    ),
    "heartbeat": VerbText(
        "Needs `emit.heartbeats.enabled: true`.",
        "causeway heartbeat sf_to_nyc",
        danger="It writes to the source.",
    ),
    "upstreams": VerbText(
        "Reads the topics of heartbeats on that cluster. Writes nothing.", "causeway upstreams nyc"
    ),
    "fence": VerbText(
        "Ends runs that are under way. No worker can add a record, however late it wakes up. "
        "A failover or rollback never lifts a fence that an operator raised.",
        'causeway fence sf_to_nyc --because "moving to nyc, ticket 123"',
    ),
    "lift": VerbText(
        "Ask the person who raised the fence first. `causeway status` names them.",
        'causeway lift sf_to_nyc --fence 42 --because "nyc is ready again"',
    ),
    "recover": VerbText(
        "Use it only when `status` or `doctor` names it.",
        'causeway recover sf_to_nyc --because "the flows topic was deleted"',
        danger="First stop everything that runs the flow, in Airflow too.",
    ),
    "failover": VerbText(
        "It moves consumer groups, not writers. If it stops in the middle, run the same command again.",
        "causeway failover sf_to_nyc --at latest --dry-run",
        {5: "groups or partitions are left alone; the others are moved (with --dry-run: would be)"},
        danger="Stop the consumers of these groups first, on both clusters.",
    ),
    "failback": VerbText(
        "First --resume or --rebuild opens the reverse flow. Then --home moves the groups back. "
        "If it stops in the middle, run the same command again.",
        "causeway failback sf_to_nyc --resume --dry-run",
        {
            4: "with --home: groups and data are back, but a fence of an operator still stops the flow",
            5: "with --home: groups or partitions are left alone, or are not protected",
        },
        danger="--rebuild deletes records on the old primary.",
    ),
    "drill": VerbText(
        "Clones the groups on the target, moves the clones, reads from there, and deletes them.",
        "causeway drill sf_to_nyc",
        {1: "the drill did not end as planned", 4: "another drill of this flow is at work"},
    ),
    "adopt": VerbText(
        "Use --dry-run first. Use it only where no other repair command applies.",
        'causeway adopt sf_to_nyc orders 3 1234 --because "ticket 123" --dry-run',
        danger="A wrong offset leaves records out, or copies them twice.",
    ),
    "accept-gap": VerbText(
        f"{_NEEDS_THE_MESSAGE} `status` lists the gap from then on.",
        'causeway accept-gap sf_to_nyc orders 3 1000 1234 --because "retention, ticket 123"',
        danger="The mirror never gets the records of the gap.",
    ),
    "restart-topic": VerbText(
        "Records that the mirror holds stay. New ones are appended after them.",
        'causeway restart-topic sf_to_nyc orders --because "recreated, ticket 123"',
    ),
    "reconcile": VerbText(
        "Compares positions, offset map and records of both clusters. Refuses what it can't prove.",
        'causeway reconcile sf_to_nyc orders --because "position lost, ticket 123"',
    ),
    "import-mm2": VerbText(
        "Without --adopt it writes flows.yaml, and a file of connections if asked.",
        "causeway import-mm2 mm2.properties --dry-run",
        {
            4: "with --adopt: MirrorMaker 2 still works, or something else wrote to a mirror",
            5: "with --adopt: partitions were refused; the others are adopted",
        },
        danger="Stop MirrorMaker 2 before --adopt.",
    ),
}
"""By the words that follow `causeway`."""


def main_ending() -> str:
    """What `causeway --help` says last."""
    codes = "\n".join(f"  {code:<4} {each.means}" for code, each in EXIT_CODES.items())
    return f"exit codes:\n{codes}{_ENDING}"


def description_of(verb: str, summary: str) -> str:
    """Summary and purpose; what is dangerous comes between them."""
    text = VERB_TEXTS[verb]
    more = f"{text.danger} {text.purpose}".strip()
    return f"{summary[0].upper()}{summary[1:]}.\n\n{textwrap.fill(more, _WIDTH)}"


def ending_of(verb: str) -> str:
    """Notes, exit codes of its own, and an example."""
    text = VERB_TEXTS[verb]
    parts = [f"example:\n  {text.example}"]
    if text.exit_codes:
        own = "\n".join(f"  {code:<4} {means}" for code, means in text.exit_codes.items())
        parts.insert(0, f"exit codes of this verb (`causeway --help` has the others):\n{own}")
    if text.notes:
        parts.insert(0, textwrap.fill(text.notes, _WIDTH))
    return "\n\n".join(parts)
