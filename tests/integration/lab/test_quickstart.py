"""What the quickstart asks a newcomer to type works as it is written there."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable

import pytest
from confluent_kafka.admin import AdminClient, OffsetSpec

from causeway.brokers.admin.leaders import partitions_of
from causeway.lab.cluster import LabCluster
from causeway.lab.places import project_root

pytestmark = pytest.mark.integration


def test_the_lines_that_write_to_a_fresh_lab(lab_cluster: Callable[..., LabCluster]) -> None:
    fresh = lab_cluster("newcomer")
    lines = (project_root() / "docs/quickstart.md").read_text(encoding="utf-8").splitlines()
    begin = next(number for number, line in enumerate(lines) if line.endswith("<<'EOF'"))
    script = textwrap.dedent("\n".join(lines[begin + 1 : lines.index("    EOF")]))

    subprocess.run(
        [sys.executable, "-", fresh.bootstrap_servers], input=script, text=True, check=True, timeout=60
    )

    client = AdminClient(dict(fresh.endpoint().settings))
    ends = client.list_offsets(dict.fromkeys(partitions_of({"orders": 4}), OffsetSpec.latest()))
    assert sum(end.result(30).offset for end in ends.values()) == 1_000
