"""A worker of Spark that is frozen and never wakes: the run gives its round up and copies on without it."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from causeway.lab import processes as lab
from causeway.lab.cluster import LabCluster
from causeway.lab.live import LiveProducer
from tests.integration.copy.spark_flow import environment, flows_file, submit_command
from tests.proofs.chaos.parts.processes import start, wait_until
from tests.support.mirroring import end_offsets

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.spark]
_IMPATIENT = Path(__file__).parent / "parts" / "copy_impatient.py"


def test_a_worker_frozen_forever_does_not_hold_its_run(
    sf: LabCluster, nyc: LabCluster, tmp_path: Path, topic_name: str
) -> None:
    topic = topic_name("frozen")  # type: ignore[operator]
    flow = topic.replace("-", "_")
    command = submit_command(flow, flows_file(tmp_path, flow, topic), "--run-for", "600")
    command = [str(_IMPATIENT) if part.endswith("copy_flow.py") else part for part in command]
    connections = {"sf": sf.connection_json(), "nyc": nyc.connection_json()}

    def mirrored() -> int:
        return sum(end for _, end in end_offsets(nyc, of=f"sf.{topic}").values())

    with LiveProducer(sf.endpoint(), topic=topic, records_per_second=500, partitions=2):
        run = start(flow, command, tmp_path / "run.log", environment(connections, tmp_path))
        try:
            wait_until(lambda: mirrored() > 500, "the mirror begins", timeout_seconds=120)
            daemons = {m.pid for m in run.members() if "pyspark.daemon" in m.command}
            workers = [m for m in run.members() if m.parent in daemons]
            assert workers
            for worker in workers:
                lab.send(worker.identity, signal.SIGSTOP)
            time.sleep(1)
            stood_at = mirrored()
            wait_until(
                lambda: mirrored() > stood_at + 500 or run.exit_code is not None,
                "the run copies on",
                timeout_seconds=120,
            )
            assert run.exit_code is None, run.output()[-2000:]
        finally:
            run.kill_all()
