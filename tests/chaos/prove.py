"""The full proof: `make prove`. Plays the campaign on both kinds of target and writes docs/proof.md.

    python -m tests.chaos.prove [--seed N] [--keep FOLDER]

A campaign that fails writes nothing, and ends with its seed and everything that happened.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import confluent_kafka
import pyspark

from causeway import __version__
from causeway.lab.cluster import LabCluster
from causeway.lab.record import NEWEST_KAFKA, ClusterSpec
from tests.chaos.campaign import BROKER_SETTINGS, Campaign, CampaignFailed
from tests.chaos.proof import Proof
from tests.chaos.schedule import FULL, OLD_BROKER_FULL, Size
from tests.follow.measure import follow_fresh

_ROOT = Path(__file__).parents[2]
_PAGE = _ROOT / "docs/proof.md"
_MUTATIONS = Path(__file__).with_name("mutations.md")
_OLD_KAFKA = "3.9.2"
_FOLLOWED_SECONDS, _FOLLOWED_PER_SECOND = 60, 5_000


@dataclass(frozen=True, slots=True)
class Part:
    title: str
    kafka_version: str
    seed: int
    size: Size


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="prove", description="Prove exactly once by faults.")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--keep", type=Path, help="leave logs, events and what readers saw in this folder")
    options = parser.parse_args(arguments)
    folder = options.keep or Path(tempfile.mkdtemp(prefix="causeway-proof-"))
    parts = (
        Part(f"Kafka {NEWEST_KAFKA} (transactions v2)", NEWEST_KAFKA, options.seed, FULL),
        Part(f"Kafka {_OLD_KAFKA} (transactions v1)", _OLD_KAFKA, options.seed + 1, OLD_BROKER_FULL),
    )
    try:
        following = _follow(folder / "follow")
        proofs = [_play(part, folder / part.kafka_version) for part in parts]
    except CampaignFailed as failure:
        print(failure)
        return 1
    finally:
        if options.keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    _PAGE.write_text(_page(list(zip(parts, proofs, strict=True)), options.seed, following), encoding="utf-8")
    print(f"proved: {_PAGE.relative_to(_ROOT)}")
    return 0


def _play(part: Part, folder: Path) -> Proof:
    folder.mkdir(parents=True)
    print(f"{part.title}, seed {part.seed}, {part.size.fault_count} faults", flush=True)
    source = LabCluster(ClusterSpec(name="sf"), folder / "sf")
    target = LabCluster(
        ClusterSpec(name="nyc", kafka_version=part.kafka_version, broker_settings=BROKER_SETTINGS),
        folder / "nyc",
    )
    try:
        for cluster in (source, target):
            cluster.start()
        return Campaign(source, target, folder, part.seed, part.size, _say).play()
    finally:
        source.stop()
        target.stop()


def _follow(folder: Path) -> str:
    print(f"following a source of {_FOLLOWED_PER_SECOND:,} records/s for {_FOLLOWED_SECONDS} s", flush=True)
    folder.mkdir(parents=True)
    found = follow_fresh(folder, seconds=_FOLLOWED_SECONDS, records_per_second=_FOLLOWED_PER_SECOND)
    print(f"followed: {found}", flush=True)
    return str(found)


def _say(line: str) -> None:
    print(line, flush=True)


def _page(parts: list[tuple[Part, Proof]], seed: int, following: str) -> str:
    versions = (
        f"Causeway {__version__}, Spark {pyspark.__version__}, Python {platform.python_version()}, "
        f"librdkafka {confluent_kafka.libversion()[0]}"
    )
    sections = "\n".join(_section(part, proof) for part, proof in parts)
    return f"""\
# Exactly once, proved by faults

Written by `make prove` on {time.strftime("%Y-%m-%d", time.gmtime())} with {versions}. \
`python -m tests.chaos.prove --seed {seed}` plays the same schedule again.

Two real brokers, one of them the target; real Spark, started anew by `spark-submit` after each run that was
killed; a source that is written all the while (plain, in transactions with aborts, live); and two consumers
that follow the mirror from the first record to the last, over every broker restart. At the end, by digests of
timestamp, key, value and headers, partition by partition and in order:

- what the target shows to a `read_committed` reader is what the source shows (`causeway verify`);
- what the live `read_committed` reader saw over the whole campaign is the same sequence;
- the live `read_uncommitted` reader saw every record, and as many twice as the last run's report says.

{sections}
## Following a live source

With `--run-for`, beside a producer of {_FOLLOWED_PER_SECOND:,} records/s for {_FOLLOWED_SECONDS} s: from
the clock in front of `produce` on the source to the clock behind the poll of a `read_committed` consumer on
the target. Brokers, producer, reader and Spark share this one machine's {os.cpu_count()} cores. {following}.

{_MUTATIONS.read_text(encoding="utf-8")}"""


def _section(part: Part, proof: Proof) -> str:
    rows = "\n".join(f"| {fault} | {count} |" for fault, count in sorted(proof.faults.items()))
    return f"""\
## {part.title}

| | |
|---|---|
| seed | {part.seed} |
| records | {proof.records:,} |
| faults | {sum(proof.faults.values())}, {proof.hits} of them while a transaction was open |
| runs of the flow | {proof.runs} |
| lost, repeated or out of order for `read_committed` readers | 0 |
| seen twice by the `read_uncommitted` reader, and reported | {proof.repeats:,} |
| time | {proof.seconds / 60:.0f} minutes |

| fault | times |
|---|---|
{rows}
"""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
