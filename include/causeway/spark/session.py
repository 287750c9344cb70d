"""The Spark application of a run: one context, one action a round, nothing repeated without our knowledge.

A SparkContext is enough: lanes are values, results are small, there is no shuffle and no DataFrame.
Under `spark-submit` everything that was set there stays; what is missing gets the defaults below.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import takewhile
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext

from causeway import interruption
from causeway.core.copy.lane_task import LaneResult, LaneTask
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import ClusterTrouble
from causeway.spark.executor import LanePayload, carry_lanes
from causeway.spark.java import refuse_without_java
from causeway.spark.jvm import SUBMITTED, ensure_jvm, kill_jvm
from causeway.spark.shipping import package_zip
from causeway.usecases.copy.worker import without_rows

_DEFAULTS = {
    "spark.master": "local[*]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.eventLog.enabled": "false",
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
_FIXED = {
    # The claim makes repeated tasks harmless; not repeating them keeps the log readable.
    "spark.speculation": "false",
    "spark.task.maxFailures": "1",
    "spark.dynamicAllocation.enabled": "false",
    "spark.python.worker.reuse": "true",
    # What goes to the executors holds passwords: without this it passes through a plain file on disk.
    "spark.io.encryption.enabled": "true",
    "spark.redaction.regex": "(?i)secret|password|passwd|token|sasl|ssl|jaas|keytab|passphrase|oauth|private",
}

GRACE_SECONDS = 60.0
_TRACEBACK = "Traceback (most recent call last):"
_SENTENCE_CHARACTERS = 300
_PY4J_LOGS_TO = (None, "py4j.clientserver", "py4j.java_gateway")  # None: the root


def _is_not_py4js(record: logging.LogRecord) -> bool:
    return "py4j" not in record.pathname


@contextmanager
def _without_py4js_tracebacks() -> Iterator[None]:
    """py4j logs each call that Ctrl-C, or the JVM's end, breaks off, with a traceback. What matters of it
    reaches the run as an exception, and its report. A logger's filter doesn't see what its children log."""
    loggers = [logging.getLogger(name) for name in _PY4J_LOGS_TO]
    for each in loggers:
        each.addFilter(_is_not_py4js)
    try:
        yield
    finally:
        for each in loggers:
            each.removeFilter(_is_not_py4js)


@contextmanager
def spark_context(name: str) -> Iterator[SparkContext]:
    if SUBMITTED not in os.environ:
        refuse_without_java(os.environ)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if SUBMITTED in os.environ:
        # Before its gateway is up, a SparkConf doesn't know what spark-submit set: everything would look
        # missing, the master too, and a cluster's job would quietly run here.
        SparkContext._ensure_initialized()  # noqa: SLF001 - PySpark's SparkSession does the same
    conf = SparkConf().setAppName(name)
    for key, value in _DEFAULTS.items():
        conf.setIfMissing(key, value)
    for key, value in _FIXED.items():
        conf.set(key, value)
    with _without_py4js_tracebacks():
        context = _started(conf)
        try:
            with TemporaryDirectory(prefix="causeway-") as folder:
                if not context.master.startswith("local"):
                    context.addPyFile(str(package_zip(Path(folder))))
                yield context
        finally:
            context.stop()


def _started(conf: SparkConf) -> SparkContext:
    ensure_jvm(conf)
    before = signal.getsignal(signal.SIGINT)
    try:
        with interruption.at_once():
            return SparkContext(conf=conf)
    except KeyboardInterrupt:
        kill_jvm()
        raise
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)  # Spark's own would raise wherever it strikes


def carrier(
    context: SparkContext, source: ClusterEndpoint, target: ClusterEndpoint
) -> Callable[[Sequence[LaneTask]], list[LaneResult]]:
    """One lane is one task of one job; lanes outnumber slots, so that Spark balances them."""

    def carry(tasks: Sequence[LaneTask]) -> list[LaneResult]:
        payloads = [LanePayload(task, source, target) for task in tasks]
        limit_seconds = _longest_round_seconds(tasks, slots=context.defaultParallelism)
        watch = threading.Timer(limit_seconds, context.cancelAllJobs)
        watch.daemon = True
        try:
            watch.start()
            with interruption.at_once():
                results: list[LaneResult] = (
                    context.parallelize(payloads, len(payloads)).mapPartitions(carry_lanes).collect()
                )
        except KeyboardInterrupt:
            with suppress(Py4JError):  # the JVM may have got the same signal
                context.setLogLevel("OFF")  # a task that is broken off as it begins logs a stack
                context.cancelAllJobs()  # waiting tasks would claim lanes after the claims of the end
            raise
        except Py4JError as lost:
            # A worker or an executor died. What its lanes did is on the target; the next round reads it.
            if _is_gone(context):
                raise ClusterTrouble(
                    "Spark",
                    rule="the application ended under the run",
                    remedy="nothing is lost: run it again",
                ) from lost
            return [without_rows(task, "doubt", f"Spark lost the round: {_cause(lost)}") for task in tasks]
        finally:
            watch.cancel()
        return results

    return carry


def travels_in_clear(conf: Mapping[str, str]) -> bool:
    """Whether what the driver tells its executors can be read on the network between them."""
    encrypting = (("spark.authenticate", "spark.network.crypto.enabled"), ("spark.ssl.rpc.enabled",))
    is_encrypted = any(all(conf.get(key) == "true" for key in keys) for keys in encrypting)
    return not conf["spark.master"].startswith("local") and not is_encrypted


def _longest_round_seconds(tasks: Sequence[LaneTask], *, slots: int) -> float:
    """Far more than any round takes: a worker that is frozen forever must not hold its run for ever."""
    longest = max(task.limits.lane_seconds + 2 * task.limits.transaction_timeout_ms / 1000 for task in tasks)
    return ceil(len(tasks) / slots) * longest + GRACE_SECONDS


def _is_gone(context: SparkContext) -> bool:
    try:
        return bool(context._jsc is None or context._jsc.sc().isStopped())  # noqa: SLF001
    except Py4JError:
        return True


def _cause(lost: Py4JError) -> str:
    return sentence_of(str(getattr(lost, "java_exception", lost)))


def sentence_of(failure: str) -> str:
    """Spark's own sentence, without the stacks under it; of a Python worker's, what was raised there."""
    lines = [line for line in failure.splitlines() if line.strip()]
    if not lines:
        return "no reason given"
    sentence = lines[0].strip()
    if sentence.endswith(_TRACEBACK):
        python = takewhile(lambda line: not line.startswith("\tat "), lines[1:])
        raised = [line for line in python if not line[0].isspace() and line != _TRACEBACK]
        sentence = sentence.removesuffix(_TRACEBACK) + (raised[-1] if raised else "")
    return sentence.strip()[:_SENTENCE_CHARACTERS]
