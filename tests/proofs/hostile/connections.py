"""Connections as people break them: JSON, servers, keys, TLS, SASL, numbers, secrets in the wrong place."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.proofs.hostile.case import HERE, Case
from tests.proofs.hostile.player import FLOW

_CANARY = "CANARYs3cr3t"
_SERVERS = "127.0.0.1:9"
_TLS = {"bootstrap.servers": _SERVERS, "security.protocol": "SSL"}
_SASL = {
    "bootstrap.servers": _SERVERS,
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "causeway",
    "sasl.password": _CANARY,
}
_VARIABLE = "AIRFLOW_CONN_KAFKA_SF"

_BOOTSTRAP: dict[str, str] = {
    "": "must not be empty",
    " ": "must not be empty",
    ",": "empty entry",
    "h:9092,": "empty entry",
    ",h:9092": "empty entry",
    "h:9092,,i:9092": "empty entry",
    "h": "without a port; write h:9092",
    "h:": "port",
    ":9092": "illegal host",
    "h:0": "1 to 65535",
    "h:65536": "1 to 65535",
    "h:-1": "1 to 65535",
    "h:9092x": "1 to 65535",
    "h:09092": "1 to 65535",
    "h:9e3": "1 to 65535",
    "h:" + "9" * 5000: "1 to 65535",
    "h:\uff19092": "1 to 65535",
    "h:9092 i:9092": r"no comma parts; write h:9092,i:9092",
    "h:9092;i:9092": r"no comma parts; write h:9092,i:9092",
    "h:9092; i:9092": r"no comma parts; write h:9092,i:9092",
    "h:9092;i:9092;j:9092;k:9092": "no comma parts; write h:9092,i:9092,j:9092,...",
    "h:9092;i": "semicolon",
    "h:9092:9092": "more than one colon; write h:9092",
    "h:9092:9093": "more than one colon",
    "::1:9092": "in brackets",
    "fe80::1": "in brackets",
    "1:2:3:4:5:6:7:8:9092": "in brackets",
    "[::1]": "without a port",
    "[::1:9092": "illegal host|brackets",
    "[h]:9092": "illegal host",
    "[]:9092": "illegal host",
    "http://h:9092": "must not have a scheme",
    "PLAINTEXT://h:9092": "must not have a scheme",
    "SASL_SSL://h": "must not have a scheme",
    "kafka://h:9092/": "must not have a scheme",
    "kafka://h:9092/topic?x=1": "must not have a scheme",
    "h:9092,h:9092": "twice",
    "h:9092, h:9092": "twice",
    "-h:9092": "illegal host",
    "h-:9092": "illegal host",
    "h_/x:9092": "illegal host",
    "h/9092:1": "illegal host",
    "é:9092": "illegal host",
    "h\t:9092": "control character",
    "h\n:9092": "control character",
    "h\x00:9092": "control character",
    "\u202eh:9092": "control character",
    "h" * 300 + ":9092": "illegal host",
    "x" * 100_000: "without a port",
    ",".join(f"host-{n}.example" for n in range(300)): "without a port",
    ",".join(["h:9092"] * 5_000): "twice",
    "\ud800:9092": "half a character",
    "*:9092": "illegal host",
    "$(id):9092": "illegal host",
    "{{x}}:9092": "illegal host",
    "'h:9092'": "illegal host|1 to 65535",
    "h:9092]": "without a port|illegal|1 to 65535",
}

_SECRET_SERVERS = (
    f"SASL_SSL://u:{_CANARY}@h:9092",
    f"kafka://u:{_CANARY}@h:9092",
    f"u:{_CANARY}@h:9092",
    f"{_CANARY}@h:9092",
    f"h:9092,u:{_CANARY}@i:9092",
    f"http://u:{_CANARY}@h",
    f"SASL_SSL://u:{_CANARY}",
    f"SASL_SSL://u:{_CANARY}:9092",
    f"u:{_CANARY}:9092",
    f"h:9092:{_CANARY}",
    f"h:9092;password={_CANARY}",
    f"h:9092 u:{_CANARY}",
    f"http://h:9092/?password={_CANARY}",
    f"h:9092,http://h:9092/{_CANARY}",
)

_KEYS: dict[str, tuple[Mapping[str, object], str]] = {
    "no-servers": ({}, "is required"),
    "unknown": ({"boostrap.servers": "h:1"}, "did you mean bootstrap.servers"),
    "unknown-word": ({"x": "1"}, "is no key"),
    "upper": ({"BOOTSTRAP.SERVERS": "h:1"}, "did you mean bootstrap.servers"),
    "blank": ({"bootstrap.servers ": "h:1"}, "is no key"),
    "empty-key": ({"": "1"}, "is no key"),
    "none": ({"bootstrap.servers": None}, "must be text"),
    "list": ({"bootstrap.servers": ["h:1"]}, "must be text"),
    "map": ({"bootstrap.servers": {"a": 1}}, "must be text"),
    "float": ({"bootstrap.servers": _SERVERS, "socket.timeout.ms": 1.5}, "must be text"),
    "digits": ({"bootstrap.servers": 10**30}, "without a port"),
    "protected": ({"bootstrap.servers": _SERVERS, "transactional.id": "x"}, "is set by Causeway"),
    "protected-acks": ({"bootstrap.servers": _SERVERS, "acks": "1"}, "is set by Causeway"),
    "protected-group": ({"bootstrap.servers": _SERVERS, "group.id": "x"}, "is set by Causeway"),
    "java": ({"bootstrap.servers": _SERVERS, "sasl.jaas.config": _CANARY}, "Java's word"),
    "java-store": ({"bootstrap.servers": _SERVERS, "ssl.truststore.location": "/x"}, "Java's word"),
    "plugin": ({"bootstrap.servers": _SERVERS, "plugin.library.paths": "/tmp/x.so"}, "is no key"),
    "protocol": ({"bootstrap.servers": _SERVERS, "security.protocol": "TLS"}, "must be PLAINTEXT"),
    "protocol-number": ({"bootstrap.servers": _SERVERS, "security.protocol": 1}, "must be PLAINTEXT"),
    "idle-sasl": ({"bootstrap.servers": _SERVERS, "sasl.username": "u"}, "does nothing"),
    "idle-tls": ({"bootstrap.servers": _SERVERS, "ssl.ca.location": "/x"}, "does nothing"),
    "insecure": ({**_SASL, "security.protocol": "SASL_PLAINTEXT"}, "lets anybody"),
    "unverified": ({**_TLS, "enable.ssl.certificate.verification": False}, "lets anybody"),
    "unnamed": ({**_TLS, "ssl.endpoint.identification.algorithm": "none"}, "lets anybody"),
    "unnamed-word": ({**_TLS, "ssl.endpoint.identification.algorithm": "htps"}, "https or none"),
    "verify-word": ({**_TLS, "enable.ssl.certificate.verification": "no"}, "true or false"),
    "no-user": ({k: v for k, v in _SASL.items() if k != "sasl.username"}, "is required"),
    "no-password": ({k: v for k, v in _SASL.items() if k != "sasl.password"}, "is required"),
    "no-mechanism": ({k: v for k, v in _SASL.items() if k != "sasl.mechanism"}, "is required"),
    "empty-password": ({**_SASL, "sasl.password": ""}, "must not be empty"),
    "line-password": ({**_SASL, "sasl.password": f"{_CANARY}\n"}, "line end"),
    "surrogate-password": ({**_SASL, "sasl.password": f"{_CANARY}\ud800"}, "half a character"),
    "list-password": ({**_SASL, "sasl.password": [_CANARY]}, "must be text"),
    "gssapi": ({**_SASL, "sasl.mechanism": "GSSAPI"}, "both Kafka clients"),
    "mechanism-lower": ({**_SASL, "sasl.mechanism": "plain"}, "both Kafka clients"),
    "two-mechanisms": ({**_SASL, "sasl.mechanisms": "PLAIN"}, "says the same"),
    "backoffs": (
        {"bootstrap.servers": _SERVERS, "reconnect.backoff.ms": 500, "reconnect.backoff.max.ms": 100},
        "must not be more than",
    ),
    "backoff-max": ({"bootstrap.servers": _SERVERS, "reconnect.backoff.max.ms": 50}, "must not be more than"),
    "backoff-alone": ({"bootstrap.servers": _SERVERS, "reconnect.backoff.ms": 20_000}, "must not be more"),
}

_MILLISECONDS: dict[str, tuple[int, int]] = {
    "connections.max.idle.ms": (0, 2_147_483_648),
    "metadata.max.age.ms": (0, 86_400_001),
    "reconnect.backoff.max.ms": (0, 3_600_001),
    "reconnect.backoff.ms": (0, 3_600_001),
    "socket.connection.setup.timeout.ms": (999, 2_147_483_648),
    "socket.timeout.ms": (9, 300_001),
}
"""By key, what is just below and above what librdkafka takes."""

_JSON: dict[str, tuple[str, str]] = {
    "text": ("hello", "neither a JSON object nor a URI"),
    "number": ("5", "neither a JSON object nor a URI"),
    "list": ("[1]", "neither a JSON object nor a URI"),
    "null": ("null", "neither a JSON object nor a URI"),
    "cut": ('{"conn_type": "kafka"', "isn't JSON"),
    "comma": ('{"conn_type": "kafka",}', "isn't JSON"),
    "single-quotes": ("{'conn_type': 'kafka'}", "isn't JSON"),
    "comment": ('{"conn_type": "kafka"} // x', "isn't JSON"),
    "two": ('{"conn_type": "kafka"}{"a": 1}', "isn't JSON"),
    "control": ('{"conn_type": "kaf\x01ka"}', "isn't JSON"),
    "escape": ('{"conn_type": "\\x"}', "isn't JSON"),
    "depth": ('{"extra": ' + "[" * 100_000 + "}", "isn't JSON|nested"),
    "digits": ('{"conn_type": "kafka", "extra": {"bootstrap.servers": ' + "1" * 5000 + "}}", "digits"),
    "digits-port": ('{"conn_type": "kafka", "port": ' + "9" * 5000 + "}", "digits"),
    "digits-negative": ('{"conn_type": "kafka", "port": -' + "9" * 5000 + "}", "digits"),
    "digits-extra": ('{"conn_type": "kafka", "extra": "{\\"x\\": ' + "9" * 5000 + '}"}', "digits"),
    "port-large": ('{"conn_type": "kafka", "port": 99999999999}', "of no use"),
    "infinity": ('{"conn_type": "kafka", "extra": {"socket.timeout.ms": Infinity}}', "must be text"),
    "twice": ('{"conn_type": "kafka", "conn_type": "kafka"}', "twice"),
    "twice-extra": (
        '{"conn_type": "kafka", "extra": {"client.id": "a", "client.id": "b"}}',
        "client.id: is there twice",
    ),
    "field": ('{"conn_type": "kafka", "bootstrap.servers": "h:1"}', "is no field"),
    "type": ('{"conn_type": "http"}', "must be kafka"),
    "no-type": ('{"extra": {}}', "must be kafka"),
    "type-none": ('{"conn_type": null}', "must be kafka"),
    "type-list": ('{"conn_type": ["kafka"]}', "must be kafka"),
    "host": ('{"conn_type": "kafka", "host": "h"}', "of no use"),
    "password": (f'{{"conn_type": "kafka", "password": "{_CANARY}"}}', "of no use"),
    "login": (f'{{"conn_type": "kafka", "login": "{_CANARY}"}}', "of no use"),
    "extra-list": ('{"conn_type": "kafka", "extra": [1]}', "must be a JSON object"),
    "extra-number": ('{"conn_type": "kafka", "extra": 5}', "must be a JSON object"),
    "extra-text": ('{"conn_type": "kafka", "extra": "h:1"}', "isn't JSON"),
    "extra-text-list": ('{"conn_type": "kafka", "extra": "[1]"}', "must be a JSON object"),
    "secret-field": (f'{{"conn_type": "kafka", "{_CANARY}": 1}}', "is no field"),
    "secret-twice": (f'{{"{_CANARY}": 1, "{_CANARY}": 2}}', "twice"),
    "secret-key": (f'{{"conn_type": "kafka", "extra": {{"{_CANARY}": 1}}}}', "is no key"),
    "secret-cut": (f'{{"conn_type": "kafka", "extra": {{"sasl.password": "{_CANARY}', "isn't JSON"),
    "uri-user": (f"kafka://u:{_CANARY}@h:9092", "of no use"),
    "uri-port": ("kafka://h:99999999", "neither"),
    "uri-port-digits": (f"kafka://h:{'9' * 5000}", "neither|of no use"),
    "uri-empty": ("kafka://", "is required"),
    "uri-type": ("http://?bootstrap.servers=h%3A1", "must be kafka"),
    "uri-twice": ("kafka://?client.id=a&client.id=b", "twice"),
    "uri-brackets": ("kafka://[h", "neither"),
    "uri-half": ("kafka:", "neither"),
    "uri-query": (f"kafka://?{_CANARY}=1", "is no key"),
    "uri-path": ("kafka:///x", "of no use"),
    "uri-extra": ("kafka://?__extra__=5", "must be a JSON object"),
    "uri-not-utf-8": ("kafka://?bootstrap.servers=%ff%3A9092", "illegal host"),
}


@cache
def _made(name: str) -> tuple[str, str]:
    """A certificate and its key, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .sign(key, hashes.SHA256())
    )
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM).decode(), text.decode()


def _locked(password: str) -> str:
    key = serialization.load_pem_private_key(_made("a")[1].encode(), None)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(password.encode()),
    ).decode()


def _tls() -> dict[str, tuple[dict[str, str], str]]:
    certificate, key = _made("a")
    other = _made("b")[1]
    half = "-----BEGIN CERTIFICATE-----\n"
    cut = "cut short"
    return {
        "ca-empty": ({"ssl.ca.pem": "x"}, "must hold"),
        "ca-hollow": ({"ssl.ca.pem": f"{half}-----END CERTIFICATE-----"}, f"ssl.ca.pem: .*{cut}"),
        "ca-begins": ({"ssl.ca.pem": half}, f"ssl.ca.pem: .*{cut}"),
        "ca-cut": ({"ssl.ca.pem": certificate[:300]}, f"ssl.ca.pem: .*{cut}"),
        "ca-no-end": ({"ssl.ca.pem": certificate[:-30]}, f"ssl.ca.pem: .*{cut}"),
        "ca-second-cut": ({"ssl.ca.pem": certificate + certificate[:300]}, f"ssl.ca.pem: .*{cut}"),
        "ca-flipped": ({"ssl.ca.pem": _flipped(certificate)}, f"ssl.ca.pem: .*{cut}"),
        "ca-one-line": ({"ssl.ca.pem": certificate.replace("\n", " ")}, f"ssl.ca.pem: .*{cut}"),
        "ca-escaped": ({"ssl.ca.pem": certificate.replace("\n", "\\n")}, f"ssl.ca.pem: .*{cut}"),
        "ca-surrogate": ({"ssl.ca.pem": f"{certificate}\ud800"}, "half a character"),
        "ca-key": ({"ssl.ca.pem": key}, "another kind"),
        "ca-null": ({"ssl.ca.pem": f"{certificate[:200]}\x00"}, f"ssl.ca.pem: .*{cut}"),
        "ca-file-cut": ({"ssl.ca.location": f"{HERE}/cut.pem"}, f"ssl.ca.location = .*{cut}"),
        "ca-file-missing": ({"ssl.ca.location": f"{HERE}/nope.pem"}, "no such file"),
        "ca-file-folder": ({"ssl.ca.location": HERE}, "isn't a file"),
        "ca-file-relative": ({"ssl.ca.location": "ca.pem"}, "absolute"),
        "ca-file-der": ({"ssl.ca.location": f"{HERE}/der.pem"}, "not PEM"),
        "ca-file-device": ({"ssl.ca.location": "/dev/zero"}, "isn't a file"),
        "ca-twice": ({"ssl.ca.pem": certificate, "ssl.ca.location": "/x"}, "is also in"),
        "crl": ({"ssl.crl.location": f"{HERE}/cut.pem"}, "must hold"),
        "key-alone": ({"ssl.key.pem": key}, "is required"),
        "certificate-alone": ({"ssl.certificate.pem": certificate}, "is required"),
        "key-other": (_pair(certificate, other), "isn't the key of ssl.certificate.pem"),
        "key-cut": (_pair(certificate, key[:100]), f"ssl.key.pem: .*{cut}"),
        "key-hollow": (
            _pair(certificate, "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n"),
            f"ssl.key.pem: .*{cut}",
        ),
        "key-surrogate": (_pair(certificate, f"{key}\udfff"), "half a character"),
        "key-certificate": (_pair(certificate, certificate), "another kind"),
        "certificate-cut": (_pair(certificate[:300], key), f"ssl.certificate.pem: .*{cut}"),
        "certificate-key": (_pair(key, key), "another kind"),
        "key-locked": (_pair(certificate, _locked(_CANARY)), "is encrypted"),
        "key-wrong-password": (
            {**_pair(certificate, _locked("right")), "ssl.key.password": _CANARY},
            "ssl.key.password is wrong",
        ),
        "files-other": (
            {"ssl.certificate.location": f"{HERE}/a.pem", "ssl.key.location": f"{HERE}/b.key"},
            "isn't the key of ssl.certificate.location",
        ),
        "files-cut": (
            {"ssl.certificate.location": f"{HERE}/cut.pem", "ssl.key.location": f"{HERE}/b.key"},
            f"ssl.certificate.location = .*{cut}",
        ),
        "mixed-other": (
            {"ssl.certificate.location": f"{HERE}/a.pem", "ssl.key.pem": other},
            "isn't the key of ssl.certificate.location",
        ),
    }


def _pair(certificate: str, key: str) -> dict[str, str]:
    return {"ssl.certificate.pem": certificate, "ssl.key.pem": key}


def _flipped(pem: str) -> str:
    lines = pem.splitlines()
    return "\n".join([*lines[:2], lines[2][::-1], *lines[3:], ""])


def _with_files(folder: Path) -> None:
    certificate = _made("a")[0]
    (folder / "a.pem").write_text(certificate)
    (folder / "b.key").write_text(_made("b")[1])
    (folder / "cut.pem").write_text(certificate[:300])
    (folder / "der.pem").write_bytes(b"\x30\x82\x01\x00")


def _cases() -> Iterator[Case]:
    for number, (servers, says) in enumerate(_BOOTSTRAP.items()):
        yield _of_extra(f"servers-{number}", {"bootstrap.servers": servers}, says)
    for number, servers in enumerate(_SECRET_SERVERS):
        yield _of_extra(f"servers-secret-{number}", {"bootstrap.servers": servers}, "bootstrap.servers")
    for name, (extra, says) in _KEYS.items():
        yield _of_extra(f"key-{name}", extra, says)
    for key, (below, above) in _MILLISECONDS.items():
        for value in (below, above, -1, "1s", "1.5", "", " 1", "1_0", "٣", "9" * 5000):
            extra = {"bootstrap.servers": _SERVERS, key: value}
            yield _of_extra(f"{key}-{str(value)[:9]}", extra, f"{key}.*; write")
    for name, (text, says) in _JSON.items():
        yield _of_text(f"json-{name}", text, says)
    for name, (extra_tls, says) in _tls().items():
        yield _of_extra(f"tls-{name}", {**_TLS, **extra_tls}, says)
    yield from _seen_by_flows()


def _seen_by_flows() -> Iterator[Case]:
    """`flows --connections` finds the same without any network, and goes on with the other clusters."""
    for name, (extra, says) in _tls().items():
        yield Case(
            name=f"connection-flows-{name}",
            argv=("flows", "--connections"),
            environment={_VARIABLE: _text({**_TLS, **extra})},
            is_silent=True,
            says=(f"sf: connection kafka_sf .*{says}", "nyc +kafka_nyc +127.0.0.1:"),
            hides=(_CANARY, "PRIVATE KEY-----\n[A-Za-z0-9]"),
            prepare=_with_files,
        )
    certificate, key = _made("a")
    good = {**_TLS, "ssl.ca.pem": f"# Főtanúsítvány\n{certificate}", **_pair(certificate, key)}
    yield Case(
        name="connection-flows-good",
        argv=("flows", "--connections"),
        environment={_VARIABLE: _text(good)},
        codes=(0,),
    )


def _text(extra: Mapping[str, object]) -> str:
    return json.dumps({"conn_type": "kafka", "extra": extra})


def _of_extra(name: str, extra: Mapping[str, object], says: str) -> Case:
    return _of_text(name, _text(extra), says)


def _of_text(name: str, text: str, says: str) -> Case:
    return Case(
        name=f"connection-{name}",
        argv=("plan", FLOW),
        environment={_VARIABLE: text},
        says=(says,),
        hides=(_CANARY,),
        prepare=_with_files,
    )


CASES: tuple[Case, ...] = tuple(_cases())
