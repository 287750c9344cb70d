"""py4j's own words about a call that was broken off reach no screen."""

from __future__ import annotations

import logging

import pytest

from causeway.spark.session import _without_py4js_tracebacks


def _logged(name: str) -> None:
    words = ("Exception occurred while shutting down connection", None, None)
    logger = logging.getLogger(name)
    logger.handle(logging.LogRecord(name, logging.ERROR, "/lib/py4j/clientserver.py", 512, *words))


@pytest.mark.parametrize("name", ["root", "py4j.clientserver", "py4j.java_gateway"])
def test_whatever_logger_it_takes_nothing_is_said(name: str, caplog: pytest.LogCaptureFixture) -> None:
    with _without_py4js_tracebacks():
        _logged(name)
        logging.getLogger(name).error("somebody else's words")
    assert [record.getMessage() for record in caplog.records] == ["somebody else's words"]
    _logged(name)
    assert len(caplog.records) == 2, "afterwards all is as before"
