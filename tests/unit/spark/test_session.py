import pytest

from causeway.spark.session import travels_in_clear

CRYPTO = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}


@pytest.mark.parametrize(
    ("conf", "clear"),
    [
        ({"spark.master": "local[*]"}, False),
        ({"spark.master": "spark://host:7077"}, True),
        ({"spark.master": "spark://host:7077", "spark.authenticate": "true"}, True),
        ({"spark.master": "yarn", **CRYPTO}, False),
        ({"spark.master": "k8s://host", "spark.ssl.rpc.enabled": "true"}, False),
    ],
)
def test_passwords_are_in_clear_between_machines_unless_spark_encrypts(conf, clear):
    assert travels_in_clear(conf) is clear
