"""The product's own copy job, which takes a round for lost after seconds instead of minutes."""

import sys
from dataclasses import replace
from pathlib import Path

from causeway.config.flows_file.deployment import Deployment
from causeway.config.flows_file.load import load_flows
from causeway.spark import copy_job, session


def with_short_limits(path: Path) -> Deployment:
    deployment = load_flows(path)
    flows = {
        name: replace(flow, limits=replace(flow.limits, transaction_timeout_ms=2_000, lane_seconds=0.5))
        for name, flow in deployment.flows.items()
    }
    return replace(deployment, flows=flows)


if __name__ == "__main__":
    copy_job.load_flows = with_short_limits  # type: ignore[assignment, attr-defined]
    session.GRACE_SECONDS = 4.0
    raise SystemExit(copy_job.main(sys.argv[1:]))
