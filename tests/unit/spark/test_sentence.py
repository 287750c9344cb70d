"""What a run says of a round that Spark lost."""

from __future__ import annotations

from causeway.spark.session import sentence_of

IN_PYTHON = """\
org.apache.spark.api.python.PythonException: [PYTHON_EXCEPTION] An exception was thrown from the \
Python worker: Traceback (most recent call last):
  File "worker.py", line 3, in main
    at += 1
KeyError: 'first'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "executor.py", line 41, in carry_lanes
    yield _worker(payload).run(payload.task)
AttributeError: no such thing

\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:581)
"""


def test_what_a_worker_raised_is_reported_without_its_stack() -> None:
    assert sentence_of(IN_PYTHON) == (
        "org.apache.spark.api.python.PythonException: [PYTHON_EXCEPTION] An exception was thrown "
        "from the Python worker: AttributeError: no such thing"
    )


def test_of_anything_else_the_first_line_is_reported() -> None:
    assert (
        sentence_of("\n  Job aborted: executor lost  \n\tat Somewhere.java\n") == "Job aborted: executor lost"
    )
    assert sentence_of("x" * 1_000) == "x" * 300
    assert sentence_of("\n") == "no reason given"
