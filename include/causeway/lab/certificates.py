"""A throw-away certificate authority and one certificate that all of a cluster's nodes share.

The authority's key is never written: nobody can sign another certificate with it later.
"""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from causeway.lab.places import write_whole

# A lab may stay for long; what is thrown away with its directory needs no expiry to protect anybody.
_LIFETIME = datetime.timedelta(days=3650)


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """PEM files: what clients trust, and what nodes show (key, then certificate)."""

    authority: Path
    node: Path


def ensure_certificates(directory: Path, node_name: str) -> CertificateFiles:
    """The cluster's certificate files, made at the first call."""
    files = CertificateFiles(directory / "ca.pem", directory / "node.pem")
    if not (files.authority.exists() and files.node.exists()):
        _make(files, node_name)
    return files


def _make(files: CertificateFiles, node_name: str) -> None:
    authority_key, node_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority_name = _name(f"{node_name} throw-away authority")
    authority = (
        _draft(authority_name, authority_name, authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    addresses = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")]
    usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    node = (
        _draft(_name(node_name), authority_name, node_key.public_key())
        .add_extension(x509.SubjectAlternativeName(addresses), critical=False)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    key_text = node_key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    write_whole(files.node, key_text + _pem(node), mode=0o600)
    write_whole(files.authority, _pem(authority))


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _draft(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + _LIFETIME)
    )


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
