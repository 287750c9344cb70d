"""One run of a flow in a process of its own, to be killed: `python -m tests.proofs.translation.copying JSON`.

It says `round` before each round's lanes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from causeway.core.copy.lane_task import LaneResult, LaneTask
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.model.flow import CopyLimits, Flow
from tests.support.mirroring import Mirror, make_flow


def flow_of(name: str, topics: Sequence[str], transaction_bytes: int) -> Flow:
    limits = CopyLimits(transaction_bytes=transaction_bytes, fetch_bytes=1 << 20, lane_seconds=1.0)
    return make_flow(name, *topics, lanes=2, limits=limits)


@dataclass(frozen=True, slots=True)
class Reached:
    """A cluster of another process."""

    settings: dict[str, str]

    def endpoint(self) -> ClusterEndpoint:
        return ClusterEndpoint("lab", self.settings)


class Telling(Mirror):
    def carry(self, tasks: Sequence[LaneTask]) -> list[LaneResult]:
        print("round", flush=True)
        return super().carry(tasks)


def main(arguments: list[str]) -> int:
    told = json.loads(arguments[0])
    flow = flow_of(told["name"], told["topics"], told["transaction_bytes"])
    mirror = Telling(flow, Reached(told["source"]), Reached(told["target"]))  # type: ignore[arg-type]
    mirror.run(take_over=True)
    mirror.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
