"""server.properties of a lab node: combined broker and controller (KRaft), on loopback, quick and small.

Pure: from a cluster's record to settings. Whatever a test asks for in `broker_settings` wins.
"""

from __future__ import annotations

from pathlib import Path

from causeway.lab.certificates import CertificateFiles
from causeway.lab.credentials import ADMIN, MECHANISM, jaas_line
from causeway.lab.ports import LOOPBACK
from causeway.lab.record import ClusterRecord


def node_settings(
    record: ClusterRecord, node: int, data: Path, certificates: CertificateFiles | None
) -> dict[str, str]:
    settings = _identity(record, node, data) | _small_and_quick(record.spec.nodes)
    if certificates is not None:
        settings |= _locked_down(record, certificates)
    return settings | record.spec.broker_settings


def node_name(cluster: str) -> str:
    """The common name in the nodes' certificate: who they are to each other's controllers."""
    return f"causeway-lab-{cluster}"


def render_properties(settings: dict[str, str]) -> str:
    def escape(value: str) -> str:
        return value.replace("\\", "\\\\").replace("\n", "\\n")

    return "".join(f"{key}={escape(value)}\n" for key, value in settings.items())


def _identity(record: ClusterRecord, node: int, data: Path) -> dict[str, str]:
    own = record.ports[node]
    voters = ",".join(f"{each}@{LOOPBACK}:{ports.controller}" for each, ports in record.ports.items())
    return {
        "process.roles": "broker,controller",
        "node.id": str(node),
        "controller.quorum.voters": voters,
        "listeners": f"CLIENT://{LOOPBACK}:{own.client},CONTROLLER://{LOOPBACK}:{own.controller}",
        "advertised.listeners": f"CLIENT://{LOOPBACK}:{own.client}",
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "CLIENT",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(data),
    }


def _small_and_quick(nodes: int) -> dict[str, str]:
    replicas = min(nodes, 3)
    in_sync = max(1, replicas - 1)
    settings = {
        "auto.create.topics.enable": "false",
        "num.partitions": "1",
        "default.replication.factor": str(replicas),
        "min.insync.replicas": str(in_sync),
        "group.initial.rebalance.delay.ms": "0",
        # How long a killed broker's registration bars its successor (9 s), and leaders stay with a dead one.
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        "num.network.threads": "2",
        "num.io.threads": "4",
        # 128 MiB by default: a third of this JVM's heap.
        "log.cleaner.dedupe.buffer.size": str(16 << 20),
    }
    for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic"):
        settings |= {f"{topic}.num.partitions": "5", f"{topic}.replication.factor": str(replicas)}
    for topic in ("transaction.state.log", "share.coordinator.state.topic"):
        settings[f"{topic}.min.isr"] = str(in_sync)
    return settings


def _locked_down(record: ClusterRecord, certificates: CertificateFiles) -> dict[str, str]:
    """Clients: SCRAM over TLS. Controllers: mutual TLS, as SCRAM's users live in the log that they keep."""
    return {
        "listener.security.protocol.map": "CLIENT:SASL_SSL,CONTROLLER:SSL",
        "sasl.enabled.mechanisms": MECHANISM,
        "sasl.mechanism.inter.broker.protocol": MECHANISM,
        "listener.name.client.scram-sha-512.sasl.jaas.config": jaas_line(ADMIN, record.passwords[ADMIN]),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.node),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.authority),
        "listener.name.controller.ssl.client.auth": "required",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{ADMIN};User:CN={node_name(record.spec.name)}",
        "allow.everyone.if.no.acl.found": "false",
    }
