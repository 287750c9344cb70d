"""TLS keys of a connection, read as the clients will read them: cut PEM is found before anybody connects.

OpenSSL gives the verdict. No message repeats what is in the material.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping

from causeway.brokers.client_settings import ascii_pem, load_identity
from causeway.config.values.refusal import KeyRefusal
from causeway.core.kernel.tls_strength import STRONG_ENOUGH, weakness

_OF_ANOTHER = frozenset({"KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH", "NO_CERTIFICATE_ASSIGNED"})
"""OpenSSL's reasons why a key isn't the certificate's; the last one: it is even of another kind."""


def check_material(settings: Mapping[str, str]) -> None:
    """:raises KeyRefusal: a certificate or key that can't be read, or two that don't belong together."""
    for key in ("ssl.ca.location", "ssl.crl.location"):
        if key in settings:
            _load_trusted(key, settings, cafile=settings[key])
    if "ssl.ca.pem" in settings:
        _load_trusted("ssl.ca.pem", settings, cadata=settings["ssl.ca.pem"])
    certificate = _key_given("certificate", settings)
    if certificate:
        _load_identity(certificate, _key_given("key", settings), settings)


def _key_given(what: str, settings: Mapping[str, str]) -> str:
    return next((key for key in (f"ssl.{what}.pem", f"ssl.{what}.location") if key in settings), "")


def _load_trusted(
    key: str, settings: Mapping[str, str], *, cafile: str | None = None, cadata: str | None = None
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cafile=cafile, cadata=ascii_pem(cadata))
    except (ssl.SSLError, ValueError, OSError) as reason:
        raise _unreadable(key, settings, reason) from None


def _load_identity(certificate: str, key: str, settings: Mapping[str, str]) -> None:
    try:
        load_identity(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), settings)
    except (ssl.SSLError, ValueError, OSError) as reason:
        word = getattr(reason, "reason", None) or ""
        if weak := weakness(word):
            remedy = f"let it be issued again, with {STRONG_ENOUGH}"
            raise KeyRefusal(certificate, weak, remedy, value=_path(certificate, settings)) from None
        if word in _OF_ANOTHER:
            raise KeyRefusal(
                key,
                f"isn't the key of {certificate}",
                "name the two that belong together",
                value=_path(key, settings),
            ) from None
        _check_certificate(certificate, settings)
        if "ssl.key.password" in settings:
            raise KeyRefusal(
                key,
                "can't be opened: ssl.key.password is wrong, or the PEM is cut short",
                "correct ssl.key.password, or export the key again",
                value=_path(key, settings),
            ) from None
        raise _unreadable(key, settings, reason) from None


def _check_certificate(key: str, settings: Mapping[str, str]) -> None:
    """By itself: OpenSSL doesn't say which of the two it couldn't read."""
    file, text = settings.get("ssl.certificate.location"), settings.get("ssl.certificate.pem")
    _load_trusted(key, settings, cafile=file, cadata=text)


def _unreadable(key: str, settings: Mapping[str, str], reason: Exception) -> KeyRefusal:
    """With OpenSSL's name of it; never its text, which may quote the material."""
    word = getattr(reason, "reason", None)
    return KeyRefusal(
        key,
        f"is PEM that can't be read{f' ({word})' if word else ''}: it is cut short or damaged",
        "export it again, or paste it whole",
        value=_path(key, settings),
    )


def _path(key: str, settings: Mapping[str, str]) -> str | None:
    return settings[key] if key.endswith(".location") else None
