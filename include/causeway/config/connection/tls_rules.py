"""TLS keys of a connection: the files are there, are PEM, belong together, and the peer is verified."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from causeway.config.values.refusal import KeyRefusal

_CERTIFICATE, _PRIVATE_KEY, _REVOKED = "CERTIFICATE", "PRIVATE KEY", "X509 CRL"
FILES = {
    "ssl.ca.location": _CERTIFICATE,
    "ssl.certificate.location": _CERTIFICATE,
    "ssl.key.location": _PRIVATE_KEY,
    "ssl.crl.location": _REVOKED,
}
TEXTS = {"ssl.ca.pem": _CERTIFICATE, "ssl.certificate.pem": _CERTIFICATE, "ssl.key.pem": _PRIVATE_KEY}
CHECKS = {
    "ssl.endpoint.identification.algorithm": ("https", "none"),
    "enable.ssl.certificate.verification": ("true", "false"),
}
"""The word that checks the peer (the default of both clients), and the one that doesn't."""
_LARGEST_PEM_BYTES = 4 << 20


def check_tls(settings: Mapping[str, str]) -> None:
    for what in ("ca", "certificate", "key"):
        if f"ssl.{what}.pem" in settings and f"ssl.{what}.location" in settings:
            raise KeyRefusal(f"ssl.{what}.pem", f"is also in ssl.{what}.location", "keep one of the two")
    for key, words in CHECKS.items():
        if settings.get(key, words[0]) not in words:
            raise KeyRefusal(key, f"must be {' or '.join(words)}", f"write {words[0]}", value=settings[key])
    for key, kind in FILES.items():
        if key in settings:
            _check_pem(key, _read_file(key, Path(settings[key])), kind, settings)
    for key, kind in TEXTS.items():
        if key in settings:
            _check_pem(key, settings[key], kind, settings)
    _check_identity(settings)


def _read_file(key: str, path: Path) -> str:
    shown = str(path)
    if not path.is_absolute():
        raise KeyRefusal(
            key, "must be an absolute path: workers run in other folders", "begin it with /", value=shown
        )
    if not path.is_file():
        rule = "isn't a file" if path.exists() else "there is no such file"
        raise KeyRefusal(key, rule, "name a PEM file that is on every worker", value=shown)
    try:
        with path.open("rb") as file:
            return file.read(_LARGEST_PEM_BYTES).decode("ascii", errors="replace")
    except OSError as reason:
        raise KeyRefusal(
            key, f"can't be read: {reason.strerror}", "let this user read it", value=shown
        ) from None


def _check_pem(key: str, text: str, kind: str, settings: Mapping[str, str]) -> None:
    shown = settings[key] if key in FILES else None
    if not re.search(rf"-----BEGIN [A-Z0-9 ]*{kind}-----", text):
        looks = "PEM of another kind" if "-----BEGIN" in text else "not PEM (perhaps DER or PKCS#12)"
        raise KeyRefusal(
            key, f"must hold -----BEGIN {kind}-----; this is {looks}", "convert it with openssl", value=shown
        )
    if kind == _PRIVATE_KEY and "ENCRYPTED" in text and "ssl.key.password" not in settings:
        raise KeyRefusal(key, "is encrypted", "add ssl.key.password to extra", value=shown)


def _check_identity(settings: Mapping[str, str]) -> None:
    has = {
        what: bool({f"ssl.{what}.pem", f"ssl.{what}.location"} & settings.keys())
        for what in ("certificate", "key")
    }
    for what, other in (("certificate", "key"), ("key", "certificate")):
        if has[what] and not has[other]:
            raise KeyRefusal(
                f"ssl.{other}.location",
                f"is required with ssl.{what}.*",
                f"add it or ssl.{other}.pem, or remove the other",
            )
