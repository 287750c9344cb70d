"""What a run copies while the flow is verified looks neither extra nor missing."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from threading import Thread

import pytest

from causeway.core.verify.report import PartitionVerdict
from causeway.lab.cluster import LabCluster
from causeway.usecases.verify import flow
from tests.support.inline_flow import InlineFlow, create_topic, mirror_of, named, write

pytestmark = pytest.mark.integration
COMPACTED = {"cleanup_policy": "compact"}


@pytest.fixture(params=[{}, COMPACTED], ids=["plain", "compacted"])
def runs(request: pytest.FixtureRequest, sf: LabCluster, nyc: LabCluster) -> InlineFlow:
    topic = f"beside-{uuid.uuid4().hex[:8]}"
    create_topic(sf, topic, **request.param)
    write(sf, topic, 30)
    mirrored = InlineFlow(mirror_of(topic.replace("-", "_"), topic), named(sf, "sf"), named(nyc, "nyc"))
    assert mirrored.run().records == 30
    return mirrored


@pytest.mark.parametrize(
    "moment", ["survey_topics", "plan_round", "with_cleaners", "read_ranges", "verify_flow"]
)
def test_a_run_meanwhile_makes_no_difference(
    runs: InlineFlow, sf: LabCluster, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Callable[..., object] = getattr(flow, moment)
    copied: list[int] = []

    def copy() -> None:
        write(sf, runs.flow.name.replace("_", "-"), 20)
        copied.append(runs.run().records)

    def beside(*args: object, **more: object) -> object:
        if not copied:
            run = Thread(target=copy)
            run.start()
            run.join()
        return real(*args, **more)

    monkeypatch.setattr(flow, moment, beside)
    (verdict,) = runs.verify().partitions
    assert copied == [20]
    assert counts(verdict) in {(30, 0, 0, 0), (50, 0, 0, 0)}
    (verdict,) = runs.verify().partitions
    assert counts(verdict) == (50, 0, 0, 0)


def counts(verdict: PartitionVerdict) -> tuple[int, int, int, int]:
    return verdict.equal, verdict.different, verdict.missing, verdict.extra
