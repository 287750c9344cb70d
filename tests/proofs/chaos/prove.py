"""The campaigns of faults in full size, as parts of docs/proof.md: both kinds of target, and three nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from causeway.lab.cluster import LabCluster
from causeway.lab.record import NEWEST_KAFKA, ClusterSpec
from tests.proofs.chaos.campaign import BROKER_SETTINGS, Campaign, CampaignFailed
from tests.proofs.chaos.proof import Proof
from tests.proofs.chaos.report import fault_table, faults_as_json
from tests.proofs.chaos.schedule import FULL, OLD_BROKER_FULL, SETTLING, Size, chaos_of

_OLD_KAFKA = "3.9.2"
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Part:
    title: str
    kafka_version: str
    seed: int
    size: Size


def prove(folder: Path, seed: int, say: Say) -> str:
    """:raises CampaignFailed: with its seed and everything that happened."""
    parts = (
        Part(f"Kafka {NEWEST_KAFKA} (transactions v2)", NEWEST_KAFKA, seed, FULL),
        Part(f"Kafka {_OLD_KAFKA} (transactions v1)", _OLD_KAFKA, seed + 1, OLD_BROKER_FULL),
    )
    sections = "\n".join(_section(part, _play(part, folder / part.kafka_version, say)) for part in parts)
    return f"""\
## Exactly once, by faults

`python -m tests.proofs.prove --only campaign --seed {seed}` plays the same schedule again.

There are two real brokers; one of them is the target. Spark is real, and `spark-submit` starts it again after
each run that was killed. Writers write to the source all the time: plain, live, and in transactions with
aborts. Two consumers follow the mirror from the first record to the last, over every broker restart.

The proof at the end compares digests of timestamp, key, value and headers, in order and partition by
partition:

- A `read_committed` reader sees on the target what it sees on the source (`causeway verify`).
- The live `read_committed` reader saw the same sequence over the whole campaign.
- The live `read_uncommitted` reader saw every record. It saw as many twice as the last run's report says.

{sections}"""


def prove_settling(folder: Path, seed: int, say: Say) -> str:
    """The same deaths with and without settling; nothing but that differs.

    :raises CampaignFailed: with its seed and everything that happened.
    """
    version = f"Kafka {NEWEST_KAFKA}"
    played = {
        how: _play(Part(f"{version}, {how}", NEWEST_KAFKA, seed, size), folder / how, say)
        for how, size in (("settled", SETTLING), ("aborted", replace(SETTLING, settles=False)))
    }
    settled, aborted = played["settled"], played["aborted"]
    if settled.repeats:
        raise CampaignFailed(f"seed {seed}: {settled.repeats} records were seen twice")
    return f"""\
## Nothing twice for default readers either: `settle: true`

`python -m tests.proofs.prove --only settling --seed {seed}` plays the same schedule again.

Workers and drivers are killed; workers are frozen past their successor and woken. Each time one run
continues, in time. Two consumers follow the mirror all the time. Everything else is as in the campaign.
{version}.

| | `settle: true` | without |
|---|---|---|
| records | {settled.records:,} | {aborted.records:,} |
| crashes and freezes | {sum(settled.faults.values())} | {sum(aborted.faults.values())} |
| of them while a transaction was open | {settled.hits} | {aborted.hits} |
| lost, repeated or out of order for `read_committed` readers | 0 | 0 |
| seen twice by the `read_uncommitted` reader | {settled.repeats:,} | {aborted.repeats:,} |
| time | {settled.seconds / 60:.0f} minutes | {aborted.seconds / 60:.0f} minutes |
"""


def prove_chaos(folder: Path, seed: int, say: Say, *, faults: int, records: int) -> str:
    """The campaign on a target of three nodes, with the network in between.

    :raises CampaignFailed: with its seed and everything that happened.
    """
    size = chaos_of(faults=faults, records=records)
    say(f"Three nodes, seed {seed}, {size.fault_count} faults")
    with three_nodes(folder) as (source, target):
        proof = Campaign(source, target, folder, seed, size, say).play()
    return f"""\
## Chaos on three nodes

`python -m tests.proofs.prove --only chaos --seed {seed} --faults {faults} --records {records}` plays the same
schedule.

This is the campaign above on a target of three nodes, with three replicas and `min.insync.replicas` 2. A
network link lies between the flow and each broker. Nodes are killed, frozen past their session and restarted.
Leaders and coordinators are moved, links silenced and cut. After each fault the target's replicas get in sync
again. The proof is the same.

{_facts(proof, seed)}"""


@contextmanager
def three_nodes(folder: Path) -> Iterator[tuple[LabCluster, LabCluster]]:
    """A source of one node, a target of three; stopped at the end."""
    source = LabCluster(ClusterSpec(name="sf"), folder / "sf")
    target = LabCluster(ClusterSpec(name="nyc", nodes=3, broker_settings=BROKER_SETTINGS), folder / "nyc")
    try:
        for cluster in (source, target):
            cluster.launch()
        for cluster in (source, target):
            cluster.wait_until_ready()
        yield source, target
    finally:
        source.stop()
        target.stop()


def _play(part: Part, folder: Path, say: Say) -> Proof:
    folder.mkdir(parents=True)
    say(f"{part.title}, seed {part.seed}, {part.size.fault_count} faults")
    source = LabCluster(ClusterSpec(name="sf"), folder / "sf")
    target = LabCluster(
        ClusterSpec(name="nyc", kafka_version=part.kafka_version, broker_settings=BROKER_SETTINGS),
        folder / "nyc",
    )
    try:
        for cluster in (source, target):
            cluster.start()
        return Campaign(source, target, folder, part.seed, part.size, say).play()
    finally:
        source.stop()
        target.stop()


def _section(part: Part, proof: Proof) -> str:
    return f"### {part.title}\n\n{_facts(proof, part.seed)}"


def _facts(proof: Proof, seed: int) -> str:
    return f"""\
| | |
|---|---|
| seed | {seed} |
| records | {proof.records:,} |
| faults | {sum(proof.faults.values())}, {proof.hits} of them while a transaction was open |
| runs of the flow | {proof.runs} |
| lost, repeated or out of order for `read_committed` readers | 0 |
| seen twice by the `read_uncommitted` reader, and reported | {proof.repeats:,} |
| time | {proof.seconds / 60:.0f} minutes |

{fault_table(faults_as_json(proof.faults))}"""
