"""Who a client is to brokers, as far as its own settings tell."""

from __future__ import annotations

import pytest

from causeway.core.kernel.endpoint import ClusterEndpoint


@pytest.mark.parametrize(
    ("settings", "principal"),
    [
        ({}, "User:ANONYMOUS"),
        ({"security.protocol": "ssl"}, "User:ANONYMOUS"),
        ({"security.protocol": "SSL", "ssl.ca.location": "ca.pem"}, "User:ANONYMOUS"),
        ({"security.protocol": "SSL", "ssl.certificate.location": "cert.pem"}, None),
        ({"security.protocol": "SSL", "ssl.certificate.pem": "..."}, None),
        ({"security.protocol": "SSL", "ssl.keystore.location": "store.p12"}, None),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "amy"}, "User:amy"),
        ({"security.protocol": "SASL_SSL", "sasl.username": "amy"}, "User:amy"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI", "sasl.username": "amy"}, None),
        ({"security.protocol": "SASL_SSL", "sasl.mechanisms": "OAUTHBEARER"}, None),
        ({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512"}, None),
    ],
)
def test_a_certificate_a_ticket_and_a_token_tell_brokers_only(
    settings: dict[str, str], principal: str | None
) -> None:
    assert ClusterEndpoint("sf", {"bootstrap.servers": "a:1", **settings}).principal == principal
