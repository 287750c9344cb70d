"""A lab cluster that also knows clients by certificate: a listener of its own, beside the passwords'."""

from __future__ import annotations

from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.lab.certificates import CertificateFiles, ensure_certificates
from causeway.lab.cluster import LabCluster
from causeway.lab.ports import LOOPBACK, free_ports

PRINCIPAL = r"CN=mirror\, of team b"
"""As the broker spells the subject: with a comma and blanks in it."""


def listen_to_certificates(cluster: LabCluster) -> None:
    """To be set before it starts, of a cluster with SASL_SSL and one node."""
    port, files = free_ports(1)[0], _of_the_client(cluster)
    ((_, given),) = cluster._record.ports.items()
    client, certified = f"CLIENT://{LOOPBACK}:{given.client}", f"CERTIFIED://{LOOPBACK}:{port}"
    cluster.spec.broker_settings.update(
        {
            "listeners": f"{client},{certified},CONTROLLER://{LOOPBACK}:{given.controller}",
            "advertised.listeners": f"{client},{certified}",
            "listener.security.protocol.map": "CLIENT:SASL_SSL,CERTIFIED:SSL,CONTROLLER:SSL",
            "listener.name.certified.ssl.client.auth": "required",
            "listener.name.certified.ssl.truststore.type": "PEM",
            "listener.name.certified.ssl.truststore.location": str(files.authority),
        }
    )


def by_certificate(cluster: LabCluster, alias: str) -> ClusterEndpoint:
    files, settings = _of_the_client(cluster), cluster.endpoint().settings
    return ClusterEndpoint(
        alias,
        {
            "bootstrap.servers": cluster.spec.broker_settings["advertised.listeners"].rpartition("//")[2],
            "security.protocol": "SSL",
            "ssl.ca.location": settings["ssl.ca.location"],
            "ssl.certificate.location": str(files.node),
            "ssl.key.location": str(files.node),
        },
    )


def _of_the_client(cluster: LabCluster) -> CertificateFiles:
    return ensure_certificates(cluster.home / "client", "mirror, of team b")
