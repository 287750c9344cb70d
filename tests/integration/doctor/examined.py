"""`causeway doctor` in this process, on lab clusters; what it found, and what it left."""

from __future__ import annotations

from collections.abc import Iterable

from causeway.core.doctor.finding import Diagnosis, Finding, Result
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.model.flow import Flow
from causeway.lab.cluster import LabCluster
from causeway.usecases.doctor.examine import examine
from tests.support.inline_flow import group_offsets, topic_ends


def examined(
    flow: Flow,
    source: ClusterEndpoint,
    target: ClusterEndpoint,
    *,
    others: Iterable[Flow] = (),
    read_only: bool = False,
) -> Diagnosis:
    return examine(flow, others, source, target, read_only=read_only, say=lambda _: None)


def of(diagnosis: Diagnosis, check: str, where: str | None = None) -> list[Finding]:
    return [each for each in diagnosis.findings if each.check == check and where in (None, each.where)]


def red(diagnosis: Diagnosis) -> list[str]:
    """All that isn't PASSED, one line each; each of them must name the remedy."""
    bad = [each for each in diagnosis.findings if each.result is not Result.PASSED]
    assert all(each.remedy for each in bad)
    assert all((each.exit_code > 0) == (each.result is Result.FAILED) for each in diagnosis.findings)
    return [f"{each.result} {each.check} {each.where}: {each.finding} -> {each.remedy}" for each in bad]


def assert_no_scratch_left(*clusters: LabCluster) -> None:
    for cluster in clusters:
        names = [topic for topic, _ in topic_ends(cluster)] + list(group_offsets(cluster))
        assert [name for name in names if name.startswith("causeway-doctor")] == []
