"""A cluster's connection: found as Airflow finds it, checked, and no secret ever repeated."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from causeway.config.connection.connections import FoundConnection, refuse_twin, resolve_endpoint
from causeway.config.connection.endpoint_rules import PROTECTED_KEYS
from causeway.config.values.environment import environment_variable
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import ConfigError

CANARY = "hunter2-canary"
PLAIN: dict[str, object] = {"bootstrap.servers": "127.0.0.1:9092"}
SASL: dict[str, object] = {
    "bootstrap.servers": "a.example:9093,b.example:9093",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "causeway",
    "sasl.password": CANARY,
}


def nobody(connection_id: str) -> FoundConnection | None:
    return None


def resolved(extra: Mapping[str, object], *, insecure: bool = False) -> ClusterEndpoint:
    text = json.dumps({"conn_type": "kafka", "extra": extra})
    return resolve_endpoint("sf", "kafka_sf", {"AIRFLOW_CONN_KAFKA_SF": text}, nobody, insecure=insecure)


def refused_text(text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        resolve_endpoint("sf", "kafka_sf", {"AIRFLOW_CONN_KAFKA_SF": text}, nobody)
    return checked(caught.value)


def refused(extra: Mapping[str, object]) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        resolved(extra)
    return checked(caught.value)


def checked(error: ConfigError) -> ConfigError:
    assert str(error).isprintable()
    assert "kafka_sf" in error.what
    assert error.rule
    assert error.remedy
    assert "canary" not in str(error) + repr(error.as_dict())
    return error


# Found


def test_the_environment_holds_a_connection_as_json() -> None:
    endpoint = resolved(SASL)
    assert endpoint.alias == "sf"
    assert endpoint.settings == SASL
    assert endpoint.secrets == {CANARY}
    assert CANARY not in f"{endpoint} {endpoint!r}"


@pytest.mark.parametrize(
    "text",
    [
        '{"conn_type": "kafka", "extra": "{\\"bootstrap.servers\\": \\"127.0.0.1:9092\\"}"}',
        ' {"conn_type": "Kafka", "host": "", "extra": {"bootstrap.servers": "127.0.0.1:9092"}} ',
        "kafka://?bootstrap.servers=127.0.0.1%3A9092",
        "kafka:///?bootstrap.servers=127.0.0.1%3A9092",
        "kafka://?__extra__=%7B%22bootstrap.servers%22%3A+%22127.0.0.1%3A9092%22%7D",
    ],
)
def test_both_of_airflows_forms_are_read(text: str) -> None:
    endpoint = resolve_endpoint("sf", "kafka_sf", {"AIRFLOW_CONN_KAFKA_SF": text}, nobody)
    assert endpoint.settings == {**PLAIN, "security.protocol": "PLAINTEXT"}


def test_a_password_in_a_uri_stays_text() -> None:
    """Airflow's own reading turns 1e5 into a number, and the password into another one."""
    text = (
        "kafka://?bootstrap.servers=h%3A1&security.protocol=SASL_SSL&sasl.mechanism=PLAIN"
        "&sasl.username=u&sasl.password=1e5"
    )
    endpoint = resolve_endpoint("sf", "kafka_sf", {"AIRFLOW_CONN_KAFKA_SF": text}, nobody)
    assert endpoint.settings["sasl.password"] == "1e5"


def test_the_environment_comes_first_and_an_empty_variable_is_none() -> None:
    asked: list[str] = []

    def elsewhere(connection_id: str) -> FoundConnection:
        asked.append(connection_id)
        return FoundConnection(connection_id, "elsewhere", "kafka", {"bootstrap.servers": "other:9092"})

    variable = environment_variable("kafka_sf")
    present = {variable: json.dumps({"conn_type": "kafka", "extra": PLAIN})}
    assert resolve_endpoint("sf", "kafka_sf", present, elsewhere).bootstrap_servers == "127.0.0.1:9092"
    assert asked == []
    assert resolve_endpoint("sf", "kafka_sf", {variable: " "}, elsewhere).bootstrap_servers == "other:9092"
    assert asked == ["kafka_sf"]


def test_a_connection_that_nobody_has_says_how_to_make_one() -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_endpoint("sf", "kafka_sf", {}, nobody)
    assert caught.value.what == "connection kafka_sf"
    assert "cluster sf names it" in caught.value.rule
    assert "AIRFLOW_CONN_KAFKA_SF=" in caught.value.remedy
    assert "causeway lab up" in caught.value.remedy


def test_the_connection_of_somewhere_else_is_checked_too() -> None:
    def elsewhere(connection_id: str) -> FoundConnection:
        return FoundConnection(connection_id, "Airflow", "http", PLAIN)

    with pytest.raises(
        ConfigError, match=r"connection kafka_sf \(Airflow\): conn_type = http: must be kafka"
    ):
        resolve_endpoint("sf", "kafka_sf", {}, elsewhere)


TEXTS = [
    ("{", "", "isn't JSON"),
    ('{"conn_type": "kafka", "extra": {"sasl.password": "hunter2-canary"', "", "isn't JSON"),
    ("{" * 100_000, "", "isn't JSON"),
    ('{"a":' * 100_000, "", "is nested too deep"),
    (
        '{"conn_type": "kafka", "bootstrap.servers": "h:1"}',
        ": bootstrap.servers",
        "no field of an Airflow connection",
    ),
    ('{"conn_type": "kafka", "conn_type": "x"}', ": conn_type", "is there twice"),
    (
        '{"conn_type": "kafka", "extra": {"client.id": "a", "client.id": "b"}}',
        ": client.id",
        "is there twice",
    ),
    ('{"conn_type": "kafka", "extra": "[1]"}', ": extra", "must be a JSON object"),
    ('{"conn_type": "kafka", "extra": "hunter2-canary"}', ": extra", "isn't JSON"),
    ('{"conn_type": "kafka", "extra": 5}', ": extra", "must be a JSON object"),
    ('{"conn_type": "kafka", "host": "h"}', ": host", "is of no use"),
    ('{"conn_type": "kafka", "password": "hunter2-canary"}', ": password", "is of no use"),
    ('{"conn_type": "kafka"}', ": bootstrap.servers", "is required"),
    ('{"conn_type": "http", "extra": {}}', ": conn_type", "must be kafka"),
    ('{"extra": {}}', ": conn_type", "must be kafka"),
    ("kafka://user:hunter2-canary@host:9092", ": host", "is of no use"),
    ("kafka://host:99999999", "", "is neither a JSON object nor a URI"),
    ("hunter2-canary", "", "is neither a JSON object nor a URI"),
    ("[1, 2]", "", "is neither a JSON object nor a URI"),
    ("kafka://?client.id=a&client.id=b", ": client.id", "is there twice"),
    ("https://?bootstrap.servers=h%3A1", ": conn_type", "must be kafka"),
]


@pytest.mark.parametrize(("text", "field", "rule"), TEXTS, ids=lambda text: text[:40])
def test_a_text_that_is_no_kafka_connection_is_refused(text: str, field: str, rule: str) -> None:
    error = refused_text(text)
    assert error.what == f"connection kafka_sf (AIRFLOW_CONN_KAFKA_SF){field}"
    assert rule in error.rule


# Checked

SERVERS = [
    ("", "must not be empty"),
    ("   ", "must not be empty"),
    ("host", "has a server without a port"),
    ("host:", "has a port that isn't 1 to 65535"),
    ("host:0", "has a port that isn't 1 to 65535"),
    ("host:70000", "has a port that isn't 1 to 65535"),
    ("host:9092x", "has a port that isn't 1 to 65535"),
    ("host:-1", "has a port that isn't 1 to 65535"),
    ("host:९०९२", "has a port that isn't 1 to 65535"),
    (":9092", "has an illegal host name"),
    ("ho st:9092", "has a server with a blank or a semicolon in it"),
    ("höst:9092", "has an illegal host name"),
    ("-host:9092", "has an illegal host name"),
    ("a:1,,b:2", "has an empty entry"),
    ("a:1,", "has an empty entry"),
    ("a:1;b:2", "has servers that no comma parts"),
    ("PLAINTEXT://a:9092", "must not have a scheme"),
    ("user:hunter2-canary@host:9092", "must not have a user"),
    ("::1:9092", "an IPv6 address stands in brackets"),
    ("fe80::1", "an IPv6 address stands in brackets"),
    ("[::1]", "has a server without a port"),
    ("[zz]:9092", "has an illegal host name"),
    ("a:9092,b:9092,a:9092", "names a server twice"),
    ("a:9092\n", "holds a line end"),
]


@pytest.mark.parametrize(("servers", "rule"), SERVERS)
def test_bootstrap_servers_are_checked_before_anybody_connects(servers: str, rule: str) -> None:
    error = refused({"bootstrap.servers": servers})
    assert error.what.endswith(": bootstrap.servers")
    assert rule in error.rule


@pytest.mark.parametrize(
    "servers", ["a:1", "a.b-c.example:65535, 10.0.0.1:9092", "[::1]:9092", "[fe80::1%eth0]:9092"]
)
def test_host_and_port_are_enough(servers: str) -> None:
    assert resolved({"bootstrap.servers": servers}).bootstrap_servers == servers


@pytest.mark.parametrize("key", sorted(PROTECTED_KEYS))
def test_what_exactly_once_stands_on_can_not_be_set_from_outside(key: str) -> None:
    error = refused({**PLAIN, key: "1"})
    assert error.what.endswith(f": {key}")
    assert "is set by Causeway" in error.rule
    assert all(protected in error.remedy for protected in ("acks", "transactional.id", "isolation.level"))


WITHOUT = {key: value for key, value in SASL.items() if key != "sasl.mechanism"}
KEYS = [
    # (extra, key, the rule, the fix)
    (
        {**PLAIN, "security.protocl": "SSL"},
        "security.protocl",
        "no key that both",
        "did you mean security.protocol?",
    ),
    ({**PLAIN, "debug": "all"}, "debug", "no key that both", "known:"),
    ({**PLAIN, "sasl.jaas.config": CANARY}, "sasl.jaas.config", "Java's word", "sasl.username"),
    ({**PLAIN, "ssl.truststore.location": "/x"}, "ssl.truststore.location", "Java's word", "ssl.ca.location"),
    ({**PLAIN, "security.protocol": "SASL-SSL"}, "security.protocol", "must be PLAINTEXT,", "SASL_SSL?"),
    ({**PLAIN, "security.protocol": "tls"}, "security.protocol", "must be PLAINTEXT,", "known:"),
    ({**PLAIN, "client.id": None}, "client.id", "must be text", "quotes"),
    ({**PLAIN, "client.id": ["a"]}, "client.id", "must be text", "quotes"),
    ({**PLAIN, "client.id": 1.5}, "client.id", "must be text", "quotes"),
    ({**PLAIN, "client.id": "a\x00"}, "client.id", "control character", "remove"),
    ({**PLAIN, "socket.timeout.ms": "30s"}, "socket.timeout.ms", "milliseconds", "30000"),
    ({**PLAIN, "socket.timeout.ms": 0}, "socket.timeout.ms", "milliseconds", "30000"),
    ({**PLAIN, "socket.timeout.ms": True}, "socket.timeout.ms", "milliseconds", "30000"),
    (
        {**PLAIN, "sasl.password": CANARY},
        "sasl.password",
        "does nothing with security.protocol = PLAINTEXT",
        "SASL_SSL",
    ),
    ({**PLAIN, "ssl.ca.location": "/x"}, "ssl.ca.location", "does nothing with", "SSL"),
    (
        {**PLAIN, "enable.ssl.certificate.verification": "true"},
        "enable.ssl.certificate.verification",
        "does nothing",
        "SSL",
    ),
    (WITHOUT, "sasl.mechanism", "is required with security.protocol = SASL_SSL", "extra"),
    ({**SASL, "sasl.mechanism": "SCRAM-SHA-215"}, "sasl.mechanism", "must be a mechanism", "did you mean"),
    ({**SASL, "sasl.mechanism": "GSSAPI"}, "sasl.mechanism", "must be a mechanism", "known: PLAIN"),
    ({**SASL, "sasl.mechanisms": "PLAIN"}, "sasl.mechanisms", "says the same", "one of the two"),
    ({**SASL, "sasl.password": ""}, "sasl.password", "must not be empty", "leave it out"),
    ({**SASL, "sasl.password": {"x": CANARY}}, "sasl.password", "must be text", "quotes"),
    ({**SASL, "sasl.password": f"{CANARY}\n"}, "sasl.password", "holds a line end", "remove"),
    (
        {**SASL, "security.protocol": "SASL_PLAINTEXT"},
        "security.protocol",
        "read the password",
        "insecure: true under sf",
    ),
    (
        {**SASL, "enable.ssl.certificate.verification": False},
        "enable.ssl.certificate.verification",
        "anybody answer",
        "insecure: true under sf",
    ),
    (
        {**SASL, "ssl.endpoint.identification.algorithm": "None"},
        "ssl.endpoint.identification.algorithm",
        "anybody answer",
        "insecure: true under sf",
    ),
    (
        {**SASL, "ssl.endpoint.identification.algorithm": "htps"},
        "ssl.endpoint.identification.algorithm",
        "must be https or none",
        "https",
    ),
    (
        {**SASL, "enable.ssl.certificate.verification": "no"},
        "enable.ssl.certificate.verification",
        "must be true or",
        "true",
    ),
    ({**SASL, "ssl.ca.location": "ca.pem"}, "ssl.ca.location", "must be an absolute path", "/"),
    ({**SASL, "ssl.ca.location": "/no/such.pem"}, "ssl.ca.location", "there is no such file", "PEM"),
    ({**SASL, "ssl.ca.location": "/"}, "ssl.ca.location", "isn't a file", "PEM"),
    ({**SASL, "ssl.ca.pem": "x"}, "ssl.ca.pem", "must hold -----BEGIN CERTIFICATE-----", "openssl"),
    (
        {**SASL, "ssl.key.pem": f"-----BEGIN CERTIFICATE----- {CANARY}"},
        "ssl.key.pem",
        "PEM of another kind",
        "openssl",
    ),
    (
        {**SASL, "ssl.ca.pem": "x", "ssl.ca.location": "/x"},
        "ssl.ca.pem",
        "is also in ssl.ca.location",
        "one of the two",
    ),
    (
        {**SASL, "ssl.key.pem": f"-----BEGIN ENCRYPTED PRIVATE KEY-----{CANARY}"},
        "ssl.key.pem",
        "is encrypted",
        "ssl.key.password",
    ),
    (
        {**SASL, "ssl.key.pem": f"-----BEGIN PRIVATE KEY-----{CANARY}"},
        "ssl.certificate.location",
        "is required with",
        "add",
    ),
    (
        {**SASL, "ssl.certificate.pem": "-----BEGIN CERTIFICATE-----"},
        "ssl.key.location",
        "is required with",
        "add",
    ),
]


@pytest.mark.parametrize(("extra", "key", "rule", "remedy"), KEYS)
def test_a_key_that_is_wrong_or_dangerous_is_named(
    extra: dict[str, object], key: str, rule: str, remedy: str
) -> None:
    error = refused(extra)
    assert error.what == f"connection kafka_sf (AIRFLOW_CONN_KAFKA_SF): {key}"
    assert rule in error.rule
    assert remedy in error.remedy


@pytest.mark.parametrize(
    "change",
    [
        {"security.protocol": "SASL_PLAINTEXT"},
        {"enable.ssl.certificate.verification": False},
        {"ssl.endpoint.identification.algorithm": "none"},
    ],
)
def test_insecure_is_accepted_only_in_writing(change: dict[str, object]) -> None:
    key, value = next(iter(change.items()))
    assert (
        resolved({**SASL, **change}, insecure=True).settings[key] == str(value).lower()
        or key == "security.protocol"
    )
    assert refused({**SASL, **change}).what.endswith(key)


def test_insecure_excuses_nothing_else() -> None:
    with pytest.raises(ConfigError, match="is set by Causeway"):
        resolved({**PLAIN, "acks": "1"}, insecure=True)


def test_one_spelling_comes_out_of_many() -> None:
    settings = resolved(
        {**WITHOUT, "sasl.mechanisms": "PLAIN", "security.protocol": "sasl_ssl", "socket.timeout.ms": 50}
    ).settings
    assert settings["sasl.mechanism"] == "PLAIN"
    assert "sasl.mechanisms" not in settings
    assert settings["security.protocol"] == "SASL_SSL"
    assert settings["socket.timeout.ms"] == "50"


def test_a_certificate_in_der_is_distinguished_from_pem(tmp_path: Path) -> None:
    der = tmp_path / "ca.der"
    der.write_bytes(bytes(range(256)))
    error = refused({**SASL, "ssl.ca.location": str(der)})
    assert "not PEM (perhaps DER or PKCS#12)" in error.rule
    assert error.value == str(der)


@pytest.mark.parametrize("digits", [19, 40, 4_000])
def test_a_password_of_digits_may_be_long(digits: int) -> None:
    password = int("7" * digits)
    assert resolved({**SASL, "sasl.password": password}).settings["sasl.password"] == str(password)


def test_a_number_that_python_does_not_write_is_refused() -> None:
    found = FoundConnection("kafka_sf", "Airflow", "kafka", {**SASL, "sasl.password": 10**5_000})
    with pytest.raises(ConfigError, match=r"sasl\.password.*put it into quotes"):
        resolve_endpoint("sf", "kafka_sf", {}, lambda _: found)


def test_one_variable_of_two_connections_is_refused() -> None:
    ids = ("kafka_dc", "KAFKA_DC", "kafka_x")
    refuse_twin("kafka_dc", ids, {})
    refuse_twin("kafka_x", ids, {"AIRFLOW_CONN_KAFKA_X": "{}", "AIRFLOW_CONN_KAFKA_DC": "{}"})
    with pytest.raises(
        ConfigError, match=r"kafka_dc: AIRFLOW_CONN_KAFKA_DC is set, and stands for KAFKA_DC too"
    ):
        refuse_twin("kafka_dc", ids, {"AIRFLOW_CONN_KAFKA_DC": "{}"})


def _issued(
    folder: Path, bits: int, digest: str = "-sha256", by: tuple[Path, Path] | None = None
) -> tuple[Path, Path]:
    """A certificate and its key, by OpenSSL's own program: others refuse to sign with SHA-1."""
    name = f"of{len(list(folder.iterdir()))}"
    certificate, key, request = (folder / f"{name}.{kind}" for kind in ("pem", "key", "csr"))

    def openssl(*words: str | Path) -> None:
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)

    new = ("-newkey", f"rsa:{bits}", "-nodes", "-keyout", key, "-subj", f"/CN={name}")
    if by is None:
        openssl("req", "-x509", *new, "-out", certificate)
        return certificate, key
    openssl("req", *new, "-out", request)
    signed = ("-CA", by[0], "-CAkey", by[1], "-CAcreateserial", "-out", certificate)
    openssl("x509", "-req", digest, "-in", request, *signed)
    certificate.write_text(certificate.read_text() + by[0].read_text())
    return certificate, key


@pytest.mark.parametrize(
    ("bits", "of_ca", "digest", "rule"),
    [
        (1024, None, "-sha256", "has a key that is too short for OpenSSL (EE_KEY_TOO_SMALL)"),
        (2048, 1024, "-sha256", "has a CA whose key is too short for OpenSSL (CA_KEY_TOO_SMALL)"),
        (2048, 2048, "-sha1", "is signed by a CA with a hash that is too weak for OpenSSL (CA_MD_TOO_WEAK)"),
    ],
)
@pytest.mark.skipif(shutil.which("openssl") is None, reason="the program openssl isn't here")
def test_a_certificate_that_is_too_weak_is_not_called_damaged(
    tmp_path: Path, bits: int, of_ca: int | None, digest: str, rule: str
) -> None:
    ca = None if of_ca is None else _issued(tmp_path, of_ca)
    certificate, key = _issued(tmp_path, bits, digest, ca)
    error = refused({**SASL, "ssl.certificate.location": str(certificate), "ssl.key.location": str(key)})
    assert error.what.endswith(": ssl.certificate.location")
    assert error.value == str(certificate)
    assert error.rule == rule
    assert "issued again" in error.remedy
    assert "2048 bits" in error.remedy
