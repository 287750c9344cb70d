"""Logs at wire level: batches appended as bytes, segment files placed, everything read back as it lies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from confluent_kafka.admin import NewTopic

from causeway.brokers.transport.append_request import AppendRequest
from causeway.brokers.transport.connection import Network, Wire
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.ports import AppendAnswer, Appended, Fetched, FetchFrom, LogEnd, Owner
from causeway.core.kernel.identity import TopicPartition
from causeway.core.records.batches import BatchHead
from causeway.core.records.records import Record, decode_records
from causeway.core.records.visibility import Visibility, read_committed
from causeway.lab.clients import admin_client, wait_for_leaders
from causeway.lab.cluster import LabCluster

FOREVER = str(2**63 - 1)
# Records of any time are kept and taken; a segment isn't rolled by the times in it.
ANY_TIME = {
    "retention.ms": "-1",
    "segment.ms": FOREVER,
    "message.timestamp.after.max.ms": FOREVER,
    "message.timestamp.before.max.ms": FOREVER,
}


def create(cluster: LabCluster, topic: str, partitions: int, **settings: str) -> None:
    admin = admin_client(cluster.endpoint())
    config = ANY_TIME | {key.replace("_", "."): value for key, value in settings.items()}
    for answer in admin.create_topics([NewTopic(topic, partitions, 1, config=config)]).values():
        answer.result(30)
    wait_for_leaders(admin, {topic: partitions})


class RawLog:
    """One cluster's logs."""

    def __init__(self, cluster: LabCluster) -> None:
        self.network = Network()
        self.target = WireTarget(Wire(cluster.endpoint(), self.network))
        self.run(self.target.wire.connect)

    def __enter__(self) -> RawLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.target.wire.disconnect()
        self.network.close()

    def run(self, work: Callable[[], Any]) -> Any:
        return self.network.run(work)

    def append(self, batches: Mapping[TopicPartition, bytes]) -> dict[TopicPartition, AppendAnswer]:
        """One batch for each partition, of one broker."""

        async def ask() -> dict[TopicPartition, AppendAnswer]:
            (node,) = await self.target.wire.by_leader(batches)
            request = AppendRequest(dict(batches), transactional_id=None, is_v2=False)
            answers: dict[TopicPartition, AppendAnswer] = (
                await self.target.wire.send(request, node)
            ).by_partition
            return answers

        answers: dict[TopicPartition, AppendAnswer] = self.run(ask)
        return answers

    def owner(self, transactional_id: str, timeout_ms: int = 60_000) -> Owner:
        claimed: Owner = self.run(lambda: self.target.claim(transactional_id, timeout_ms=timeout_ms))
        return claimed

    def append_as(self, owner: Owner, batches: Mapping[TopicPartition, bytes | bytearray]) -> None:
        """In the owner's transaction; asked again until the last one's markers are there."""

        async def ask() -> None:
            waiting = dict(batches)
            while waiting:
                answers = await owner.append(waiting)
                waiting = {tp: b for tp, b in waiting.items() if not isinstance(answers[tp], Appended)}
                if waiting:
                    await self.network.sleep(0.01)

        self.run(ask)

    def end(self, owner: Owner, *, commit: bool) -> None:
        self.run(lambda: owner.end(commit=commit))

    def ends(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        found = self.run(lambda: self.target.log_ends(partitions))
        return {tp: end.offset for tp, end in found.items() if isinstance(end, LogEnd)}

    def batches(self, tp: TopicPartition) -> list[tuple[BatchHead, bytes]]:
        """The batches of data that a `read_committed` reader sees, checksums looked at."""

        async def read() -> list[tuple[BatchHead, bytes]]:
            topic_id = (await self.target.wire.topics([tp.topic]))[tp.topic].topic_id
            stable = (await self.target.last_stables([tp]))[tp]
            at, found = (await self.target.log_starts([tp]))[tp], []
            assert isinstance(stable, int)
            assert isinstance(at, int)
            while at < stable:
                answers = await self.target.fetch(
                    {tp: FetchFrom(topic_id, at)}, max_bytes=8 << 20, max_wait_ms=0
                )
                answer = answers[tp]
                assert isinstance(answer, Fetched), answer
                for head, batch, seen in read_committed(answer.records, answer.aborted, at):
                    at = head.next_offset
                    if seen is Visibility.DATA:
                        found.append((head, bytes(batch)))
            return found

        batches: list[tuple[BatchHead, bytes]] = self.run(read)
        return batches

    def records(self, tp: TopicPartition) -> list[Record]:
        return [r for head, batch in self.batches(tp) for r in decode_records(memoryview(batch), head)]


def place_segment(cluster: LabCluster, tp: TopicPartition, data: bytes) -> None:
    """All that a stopped broker's partition holds, from offset 0; its start makes the indexes again."""
    folder = log_folder(cluster, tp)
    for old in [*folder.glob("*.log"), *folder.glob("*.index"), *folder.glob("*.timeindex")]:
        old.unlink()
    (folder / f"{0:020d}.log").write_bytes(data)


def log_folder(cluster: LabCluster, tp: TopicPartition) -> Path:
    (folder,) = cluster.home.rglob(str(tp))
    return folder
