"""One inline run in its own process, for its peak of memory: a flow and two clusters on stdin, JSON back."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from causeway.core.kernel.endpoint import ClusterEndpoint
from tests.support.inline_flow import InlineFlow, mirror_of

_ROOT = Path(__file__).parents[3]
_SECONDS = 240


def run_measured(runs: InlineFlow, topic: str) -> dict[str, Any]:
    """What the run reports, and `peak_mib`."""
    asked = {
        "flow": runs.flow.name,
        "topic": topic,
        "source": dict(runs.source.settings),
        "target": dict(runs.target.settings),
    }
    command = [sys.executable, "-m", "tests.integration.copy.measured_run"]
    done = subprocess.run(
        command,
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        cwd=_ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def main() -> None:
    asked = json.loads(sys.stdin.read())
    source, target = ClusterEndpoint("sf", asked["source"]), ClusterEndpoint("nyc", asked["target"])
    runs = InlineFlow(mirror_of(asked["flow"], asked["topic"], lanes=1), source, target)
    report = runs.run()
    answer = {
        "outcome": report.outcome,
        "lag": report.lag,
        "parked": [p.parked for p in report.partitions.values() if p.parked],
        "peak_mib": _peak_kib() >> 10,
    }
    print(json.dumps(answer))


def _peak_kib() -> int:
    """Of this program alone: `ru_maxrss` begins with what its parent had."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    (line,) = [line for line in lines if line.startswith("VmHWM:")]
    return int(line.split()[1])


if __name__ == "__main__":
    main()
