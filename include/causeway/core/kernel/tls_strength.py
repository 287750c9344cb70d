"""What OpenSSL finds too weak: the key of a certificate or of its CA, or a CA's signature."""

from __future__ import annotations

import re

_OF_MATERIAL = {
    "EE_KEY_TOO_SMALL": "has a key that is too short for OpenSSL",
    "CA_KEY_TOO_SMALL": "has a CA whose key is too short for OpenSSL",
    "CA_MD_TOO_WEAK": "is signed by a CA with a hash that is too weak for OpenSSL",
}
_SAID = re.compile(r"\b(?:key|algorithm|md) too (?:weak|small)\b", re.IGNORECASE)
STRONG_ENOUGH = (
    "RSA of 2048 bits or more (or an elliptic curve) and SHA-256, in the certificate and in each of its CAs"
)


def weakness(reason: str) -> str:
    """Of a certificate that was to be loaded. Empty: that isn't what is wrong with it."""
    found = _OF_MATERIAL.get(reason, "")
    return f"{found} ({reason})" if found else ""


def says_too_weak(text: str) -> bool:
    """Whether an error's text, or OpenSSL's verdict on a peer's certificate, means that."""
    return _SAID.search(text) is not None
