"""The product's own copy job, which takes a round for lost after seconds instead of minutes."""

import sys
from dataclasses import replace
from pathlib import Path

from causeway.config.deployment import Deployment
from causeway.config.load import load_flows
from causeway.spark import driver, session


def with_short_limits(path: Path) -> Deployment:
    deployment = load_flows(path)
    flows = {
        name: replace(flow, limits=replace(flow.limits, transaction_timeout_ms=2_000, lane_seconds=0.5))
        for name, flow in deployment.flows.items()
    }
    return replace(deployment, flows=flows)


if __name__ == "__main__":
    driver.load_flows = with_short_limits  # type: ignore[assignment, attr-defined]
    session.GRACE_SECONDS = 4.0
    raise SystemExit(driver.main(sys.argv[1:]))
