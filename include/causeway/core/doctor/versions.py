"""Versions: the requests that the protocol is made of, and the kind of transactions that the target has.

Reason: clients decide by the *finalized* feature; after an upgrade from 3.x nobody has raised it yet. On
transactions v1 without verification a zombie's late batch got in.
"""

from __future__ import annotations

from causeway.core.doctor.finding import Finding, failed, passed, warn
from causeway.core.kernel.cluster_facts import ClusterView
from causeway.core.kernel.errors import IncompatibleBroker

CHECK_VERSIONS, CHECK_TRANSACTIONS = "versions", "transactions"
VERIFICATION = "transaction.partition.verification.enable"

_READING = {"Fetch": (1, 13), "ListOffsets": (2, 5), "Metadata": (3, 10), "OffsetForLeaderEpoch": (23, 3)}
_WRITING = {
    "OffsetFetch": (9, 7),
    "InitProducerId": (22, 3),
    "AddPartitionsToTxn": (24, 4),  # what brokers ask the coordinator with, when they verify a transaction
    "TxnOffsetCommit": (28, 3),
    "DescribeProducers": (61, 0),
}
_FEATURE, _V2 = "transaction.version", 2


def judge_versions(view: ClusterView, *, is_target: bool) -> Finding:
    needed = {**_READING, **(_WRITING if is_target else {})}
    since = "3.6" if is_target else "3.1"
    old = [
        f"broker {broker.node_id} takes {name} {broker.api_versions.get(key, -1)}, {version} is needed"
        for broker in view.brokers
        for name, (key, version) in needed.items()
        if broker.api_versions.get(key, -1) < version
    ]
    if old:
        return failed(
            CHECK_VERSIONS,
            view.alias,
            "; ".join(old[:3]),
            f"upgrade {view.alias} to Kafka {since} or newer, every broker of it",
            IncompatibleBroker,
        )
    level = view.finalized.get("metadata.version")
    said = f", metadata.version {level}" if level else ""
    return passed(
        CHECK_VERSIONS,
        view.alias,
        f"{view.number_of_brokers}, each new enough (Kafka {since} or newer){said}",
    )


def judge_transactions(view: ClusterView) -> Finding:
    """Only of a target."""
    level = view.finalized.get(_FEATURE, 0)
    if level >= _V2:
        return passed(CHECK_TRANSACTIONS, view.alias, f"v2 ({_FEATURE} {level} is finalized)")
    if view.any_says(VERIFICATION, "false"):
        return failed(
            CHECK_TRANSACTIONS,
            view.alias,
            f"v1, and {VERIFICATION} is false: a late batch of a dead owner can get in",
            f"set {VERIFICATION}=true on every broker of {view.alias}",
            IncompatibleBroker,
        )
    if view.supported.get(_FEATURE, 0) >= _V2:
        return warn(
            CHECK_TRANSACTIONS,
            view.alias,
            f"v1: the brokers know v2, but {_FEATURE} {level} is finalized: a lane claims again each time",
            f"kafka-features.sh upgrade --feature {_FEATURE}={_V2}",
        )
    if view.settings is not None and len(view.values(VERIFICATION)) < len(view.brokers):
        return failed(
            CHECK_TRANSACTIONS,
            view.alias,
            f"v1, and a broker doesn't know {VERIFICATION}: it is older than Kafka 3.6",
            f"upgrade {view.alias} to Kafka 3.6 or newer, every broker of it",
            IncompatibleBroker,
        )
    if view.settings is None:
        return warn(
            CHECK_TRANSACTIONS,
            view.alias,
            f"v1, and whether {VERIFICATION} is true can't be seen",
            "grant the right to read broker settings (see `settings`), or look at server.properties",
        )
    return passed(CHECK_TRANSACTIONS, view.alias, f"v1, and {VERIFICATION} is true")
