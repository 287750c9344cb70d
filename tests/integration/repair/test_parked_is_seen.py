"""What is parked is seen by everybody who looks: also what only a run could find."""

from __future__ import annotations

import contextlib
import io
import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from causeway.cli.main import main
from causeway.config.flows_file.load import load_flows
from causeway.core.doctor.finding import Diagnosis, Result
from causeway.lab.cluster import LabCluster
from causeway.spark.copy_job import last_line
from tests.integration.copy.spark_flow import flows_file
from tests.integration.doctor.examined import examined, of
from tests.support.inline_flow import create_topic, delete_topic, write
from tests.support.mirroring import Mirror

pytestmark = pytest.mark.integration


class Standing:
    """A flow of three topics: healthy, written to by somebody else, deleted on the target."""

    def __init__(self, sf: LabCluster, nyc: LabCluster, folder: Path) -> None:
        self.name = "seen_" + uuid.uuid4().hex[:6]
        self.healthy, self.foreign, self.gone = (f"{self.name}-{word}" for word in ("a", "b", "c"))
        self.file = flows_file(folder, self.name, self.healthy, self.foreign, self.gone)
        self.sf, self.nyc = sf, nyc
        self.mirror = Mirror(load_flows(self.file, shown_as="flows.yaml").flow(self.name), sf, nyc)
        for topic in (self.healthy, self.foreign, self.gone):
            create_topic(sf, topic)
            write(sf, topic, 10)

    def break_two(self) -> None:
        write(self.nyc, f"sf.{self.foreign}", 1)
        delete_topic(self.nyc, f"sf.{self.gone}")
        for topic in (self.healthy, self.foreign, self.gone):
            write(self.sf, topic, 5)

    def say(self, *words: str) -> tuple[int, str]:
        connections = {
            "AIRFLOW_CONN_KAFKA_SF": self.sf.connection_json(),
            "AIRFLOW_CONN_KAFKA_NYC": self.nyc.connection_json(),
        }
        out = io.StringIO()
        with (
            patch.dict(os.environ, connections),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            code = main([words[0], self.name, *words[1:], "--file", str(self.file)])
        return code, out.getvalue()

    def examined(self) -> Diagnosis:
        return examined(self.mirror.flow, self.sf.endpoint(), self.nyc.endpoint(), read_only=True)

    def states(self, verb: str) -> dict[str, str]:
        told: Any = json.loads(self.say(verb, "--json")[1])
        return {row["source"].removeprefix(f"{self.name}-"): row["state"] for row in told["partitions"]}


@pytest.fixture
def standing(sf: LabCluster, nyc: LabCluster, tmp_path: Path) -> Iterator[Standing]:
    made = Standing(sf, nyc, tmp_path)
    yield made
    made.mirror.close()


def test_who_looks_sees_what_a_run_left_standing_until_it_is_cured(standing: Standing) -> None:
    s = standing
    assert s.states("status") == {"a-0": "new", "b-0": "new", "c-0": "new"}
    assert "3 partitions, lag 30; 3 not begun" in s.say("status")[1]
    assert s.mirror.run().records == 30
    assert s.say("plan")[0] == 0
    s.break_two()
    report = s.mirror.run()
    assert last_line(report).startswith(f"{s.name}: caught up but for 2 parked partitions: 5 records, lag ")

    for verb in ("status", "plan"):
        assert s.states(verb) == {"a-0": "ok", "b-0": "parked", "c-0": "parked"}
        code, text = s.say(verb)
        assert code == 5
        (foreign,) = (line for line in text.splitlines() if line.startswith(f"PARKED {s.foreign}-0"))
        assert "foreign writer" in foreign
        assert "(found by a run at " in foreign
        assert f"PARKED {s.gone}-0: target topic deleted" in text
        assert "2 parked (lag 5 offsets)" in text
    assert [f.result for f in of(s.examined(), "parked")] == [Result.FAILED, Result.FAILED]
    assert s.say("doctor", "--read-only")[0] == 5

    assert s.say("fence", "--because", "a test")[0] == 0
    assert "a test: no run may begin as long as that stands" in s.say("plan")[1]
    assert s.say("lift", "--because", "a test")[0] == 0
    assert s.say("reconcile", s.foreign, "0", "--because", "a test")[0] == 0
    assert s.states("status") == {"a-0": "ok", "b-0": "ok", "c-0": "parked"}
    assert s.say("restart-topic", s.gone, "--because", "a test")[0] == 0
    assert not s.mirror.run().parked
    assert s.states("plan") == {"a-0": "ok", "b-0": "ok", "c-0": "ok"}
    assert [s.say(verb)[0] for verb in ("plan", "status", "verify")] == [0, 0, 0]
    assert [f.finding for f in of(s.examined(), "parked")] == ["no partition is parked"]
