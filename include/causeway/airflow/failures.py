"""Our errors as Airflow's: at once, or worth the retries that flows.yaml gives.

Bad input (2), a flow that somebody else has (4) and a broken protocol (6) don't get better by waiting; a
cluster in trouble (3) may, and so may a driver that was killed or broke down.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from causeway.core.kernel.errors import CausewayError

_NOT_WORTH_A_RETRY = frozenset({2, 4, 6})


def failure_of(exit_code: int | None) -> type[AirflowException]:
    final: type[AirflowException] = AirflowFailException
    return final if exit_code in _NOT_WORTH_A_RETRY else AirflowException


@contextmanager
def failing_as_airflow_does() -> Iterator[None]:
    """:raises AirflowException: instead of our error, with its one line."""
    try:
        yield
    except CausewayError as error:
        raise failure_of(error.exit_code)(str(error)) from None
