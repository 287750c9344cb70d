"""What a lane may send, whatever comes of it: the rules of which one backs up the other.

Some rules of the protocol guard against the same harm as others do, so that breaking one of them alone
harms nobody. Here each is checked by itself, on what clients send (docs/development/invariants.md).

    C1  all appends of one transaction to one broker use one connection (R4)
    C2  one transaction per epoch: who has ended one appends no more in its epoch
    C3  the position is read after the claim, before the first append
    C4  a started task claims once: who was beaten doesn't claim back (R7)
    C5  after a claim the flow's state is read again, before the first append
    C6  both are proved by having written first, unless the claim follows the run's own last owner
"""

from __future__ import annotations

from typing import Any

from causeway.core.copy.producer import ProducerEpoch, ProducerState
from causeway.core.model.naming import FLOWS_TOPIC
from causeway.core.records.batches import parse_head
from tests.simulation.cluster.history import Broken


class Conduct:
    def __init__(self) -> None:
        self._connections: dict[tuple[int, int, int], int] = {}
        self._ended: set[tuple[object, int, int]] = set()
        self._claims: dict[object, int] = {}
        self._asked: dict[object, set[str]] = {}
        self._last_owners: dict[object, ProducerEpoch | None] = {}

    def started(self, task: object, last_owner: ProducerEpoch | None = None) -> None:
        self._claims[task] = 0
        self._last_owners[task] = last_owner

    def claimed(self, task: object, claimed: ProducerState) -> None:
        if task not in self._claims:
            return
        self._claims[task] += 1
        last = self._last_owners[task]
        follows = last is not None and last.is_followed_by(claimed)
        self._asked[task] = {"turn", "mark"} if follows else set()
        if self._claims[task] > 1:
            raise Broken(f"C4: {task} claims again")

    def sent(self, task: object, request: Any, node: int, connection: int) -> None:
        if task not in self._claims:
            return
        name = type(request).__name__
        asked = self._asked.get(task, set())
        if name == "OffsetFetchRequest" and request.require_stable:
            asked.add("position")
        elif name == "ListOffsetsRequest" and request.topics[0].name == FLOWS_TOPIC:
            asked.add("state")
        elif name == "EndTxnRequest":
            self._ended.add((task, request.producer_id, request.producer_epoch))
        elif name == "OffsetCommitRequest":
            asked.add("mark")
        elif name == "AppendRequest" and request.transactional_id is None:
            asked.add("turn")
        elif name == "AppendRequest":
            self._produced(task, request, node, connection)
            _check_asked(task, asked)

    def _produced(self, task: object, request: Any, node: int, connection: int) -> None:
        head = parse_head(memoryview(bytes(next(iter(request.batches.values())))))
        epoch = (head.producer_id, head.producer_epoch)
        if (task, *epoch) in self._ended:
            raise Broken(
                f"C2: producer {epoch[0]} appends in epoch {epoch[1]}, whose transaction it has ended"
            )
        if self._connections.setdefault((*epoch, node), connection) != connection:
            raise Broken(
                f"C1: producer {epoch[0]} epoch {epoch[1]} appends to node {node} on a second connection"
            )


def _check_asked(task: object, asked: set[str]) -> None:
    if "position" not in asked:
        raise Broken(f"C3: {task} appends without having read the position after its claim")
    if "state" not in asked:
        raise Broken(f"C5: {task} appends without having read the flow's state after its claim")
    if missing := {"turn", "mark"} - asked:
        raise Broken(f"C6: {task} appends without having proved what it read: {missing}")
