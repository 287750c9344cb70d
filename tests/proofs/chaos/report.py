"""What a campaign found, as a person reads it and as a program does."""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import confluent_kafka
import pyspark

from causeway import __version__
from causeway.lab.record import NEWEST_KAFKA
from tests.proofs.chaos.proof import Proof
from tests.proofs.chaos.schedule import Fault

FORMAT = 1


def versions() -> dict[str, str]:
    return {
        "causeway": __version__,
        "kafka": NEWEST_KAFKA,
        "spark": pyspark.__version__,
        "python": platform.python_version(),
        "librdkafka": confluent_kafka.libversion()[0],
    }


def said(versions: Mapping[str, str]) -> str:
    names = {"causeway": "Causeway", "kafka": "Kafka", "spark": "Spark", "python": "Python"}
    return ", ".join(f"{names.get(name, name)} {version}" for name, version in versions.items())


def proof_as_json(proof: Proof) -> dict[str, Any]:
    return {
        "records": proof.records,
        "read_committed": asdict(proof.committed),
        "read_uncommitted": asdict(proof.uncommitted),
        "faults": faults_as_json(proof.faults),
        "faults_in_open_transactions": proof.hits,
        "runs": proof.runs,
        "seconds": round(proof.seconds),
    }


def faults_as_json(faults: Mapping[Fault, int]) -> dict[str, int]:
    return {str(fault): count for fault, count in sorted(faults.items())}


def fault_table(faults: Mapping[str, int]) -> str:
    rows = "\n".join(f"| {fault} | {count} |" for fault, count in sorted(faults.items()))
    return f"| fault | times |\n|---|---|\n{rows}\n"


def today() -> str:
    return time.strftime("%Y-%m-%d", time.gmtime())


def soak_page(found: Mapping[str, Any]) -> str:
    """Of a soak's JSON, to be published."""
    proof = found["proof"]
    rows = [
        ("verdict", found["verdict"]),
        ("seed", found["seed"]),
        ("time", f"{found['seconds'] / 3600:.2f} hours of {found['hours_asked']:g} asked for"),
        ("began", found["began"]),
        ("target", "3 nodes, 3 replicas, min.insync.replicas 2"),
        ("records written beside each fault", f"{found['records_per_fault']:,}"),
        ("faults", sum(found["faults"].values())),
    ]
    if found["ended_by_hand"]:
        rows.insert(3, ("ended", "by hand, behind the fault at work"))
    if proof is not None:
        rows += [
            ("of these while a transaction was open", proof["faults_in_open_transactions"]),
            ("records", f"{proof['records']:,}"),
            ("runs of the flow", proof["runs"]),
            ("`read_committed`: lost", f"{proof['read_committed']['lost']:,}"),
            ("`read_committed`: repeated", f"{proof['read_committed']['repeated']:,}"),
            ("`read_committed`: out of order", f"{proof['read_committed']['out_of_order']:,}"),
            ("`read_committed`: not on the source", f"{proof['read_committed']['foreign']:,}"),
            (
                "`read_uncommitted`: seen twice, and reported by the flow",
                f"{proof['read_uncommitted']['repeated']:,}",
            ),
        ]
    table = "\n".join(f"| {name} | {value} |" for name, value in rows)
    failure = f"\n## What was wrong\n\n```\n{found['failure']}\n```\n" if found["failure"] else ""
    return f"""\
# Soak

{said(found["versions"])}. The same schedule again:
`make soak HOURS={found["hours_asked"]:g} SEED={found["seed"]}`

| | |
|---|---|
{table}

{fault_table(found["faults"])}{failure}"""
