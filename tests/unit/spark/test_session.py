import logging

import pytest

from causeway.spark.session import _without_py4js_tracebacks, travels_in_clear


def test_what_py4j_says_of_a_call_that_was_broken_off_is_not_printed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def logged(path: str) -> int:
        logging.getLogger().handle(
            logging.getLogger().makeRecord("root", logging.ERROR, path, 1, "while sending", (), None)
        )
        return len(caplog.records)

    with _without_py4js_tracebacks():
        assert logged("lib/py4j/java_gateway.py") == 0
        assert logged("lib/causeway/spark/copy_job.py") == 1
    assert logged("lib/py4j/java_gateway.py") == 2, "only for as long as a run lasts"


def _logged(name: str) -> None:
    words = ("Exception occurred while shutting down connection", None, None)
    logger = logging.getLogger(name)
    logger.handle(logging.LogRecord(name, logging.ERROR, "/lib/py4j/clientserver.py", 512, *words))


@pytest.mark.parametrize("name", ["root", "py4j.clientserver", "py4j.java_gateway"])
def test_whatever_logger_it_takes_nothing_is_reported(name: str, caplog: pytest.LogCaptureFixture) -> None:
    with _without_py4js_tracebacks():
        _logged(name)
        logging.getLogger(name).error("somebody else's words")
    assert [record.getMessage() for record in caplog.records] == ["somebody else's words"]
    _logged(name)
    assert len(caplog.records) == 2, "afterwards all is as before"


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
def test_passwords_are_in_clear_between_machines_unless_spark_encrypts(
    conf: dict[str, str], clear: bool
) -> None:
    assert travels_in_clear(conf) is clear
