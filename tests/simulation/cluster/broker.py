"""What a node of a simulated cluster answers: kafka-python's own request objects in, plain fields out.

Only the APIs that the product uses, only the fields that it reads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace as Reply
from typing import TYPE_CHECKING, Any

from causeway.brokers.transport.append_request import AppendAnswers
from causeway.core.copy.ports import AppendAnswer, Appended, Refused
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.records.batches import BatchHead, parse_head
from tests.simulation.cluster.coordinator import OFFSETS, STATE_NAMES

if TYPE_CHECKING:
    from tests.simulation.cluster.cluster import SimNode

Respond = Callable[[Any], None]
_EARLIEST, _LATEST = -2, -1
_OFFSETS_TIMEOUT_SECONDS = 5.0
_V2_PRODUCE, _V2_END, _V2_OFFSETS = 12, 5, 5
_MOST_BATCH_BYTES, _OFFSET_RECORD_BYTES = 1_048_588, 60
"""`message.max.bytes`; what a record of an offset has besides its names."""


def handle(node: SimNode, request: Any, connection: int, respond: Respond) -> None:
    _HANDLERS[type(request).__name__](node, request, respond)


def _features(node: SimNode, _: Any, respond: Respond) -> None:
    level = 2 if node.cluster.is_v2 else 0
    respond(Reply(finalized_features=[Reply(name="transaction.version", max_version_level=level)]))


def _metadata(node: SimNode, request: Any, respond: Respond) -> None:
    cluster = node.cluster
    leaders = node.past.leaders if node.past else cluster.leaders
    known = [name for name in cluster.topics if name not in node.lacks]
    names = known if request.topics is None else [t.name for t in request.topics]
    topics = []
    for name in names:
        topic = cluster.topics.get(name)
        if topic is None or name in node.lacks:
            topics.append(
                Reply(
                    name=name,
                    topic_id=None,
                    is_internal=False,
                    partitions=[],
                    error_code=int(Code.UNKNOWN_TOPIC_OR_PARTITION),
                    authorized_operations=None,
                )
            )
            continue
        partitions = [
            Reply(
                partition_index=tp.partition,
                leader_id=leaders.get(tp, -1),
                isr_nodes=[0],
                replica_nodes=[0],
            )
            for tp in topic.partitions
        ]
        topics.append(
            Reply(
                name=name,
                topic_id=topic.topic_id,
                is_internal=False,
                partitions=partitions,
                error_code=0,
                authorized_operations=None,
            )
        )
    respond(Reply(topics=topics, cluster_id=cluster.cluster_id))


def _find_coordinator(node: SimNode, request: Any, respond: Respond) -> None:
    told = node.past or node.cluster
    number = told.transaction_node if request.key_type == 1 else told.group_node
    keys = request.coordinator_keys or [request.key]
    respond(Reply(coordinators=[Reply(error_code=0, node_id=number, key=key) for key in keys]))


# logs


def _fetch(node: SimNode, request: Any, respond: Respond) -> None:
    """In the order of the question, until `max_bytes` are reached; the first one gets a batch in any case."""

    def answer(*, may_wait: bool) -> None:
        left, found = request.max_bytes, list[Reply]()
        for topic in request.topics:
            parts = list[Reply]()
            for wanted in topic.partitions:
                part = _fetch_one(node, topic.topic_id, wanted, request)
                if left < request.max_bytes:
                    part.records = part.records[: max(left, 0)]
                left -= len(part.records)
                parts.append(part)
            found.append(Reply(topic_id=topic.topic_id, partitions=parts))
        parts = [p for topic in found for p in topic.partitions]
        is_worth = any(p.records or p.error_code or p.diverging_epoch for p in parts)
        if is_worth or not may_wait:
            respond(Reply(error_code=0, responses=found))
        else:
            node.cluster.loop.after(request.max_wait_ms / 1000, lambda: answer(may_wait=False))

    if (seconds := _remote_read_seconds(node, request)) > 0:
        node.cluster.loop.after(seconds, lambda: answer(may_wait=False))
    else:
        answer(may_wait=request.max_wait_ms > 0)


def _remote_read_seconds(node: SimNode, request: Any) -> float:
    """What a remote read holds an answer up, whatever else there is to give (Kafka 3.6, 3.7)."""
    longest = max(
        (
            node.cluster.remote_reads.get(TopicPartition(t.name, p.partition), 0.0)
            for topic in request.topics
            for t in node.cluster.topics.values()
            if t.topic_id == topic.topic_id
            for p in topic.partitions
        ),
        default=0.0,
    )
    waited: float = request.max_wait_ms / 1000
    return min(longest, waited)


def _fetch_one(node: SimNode, topic_id: Any, wanted: Any, request: Any) -> Reply:
    cluster = node.cluster
    topic = next((t for t in cluster.topics.values() if t.topic_id == topic_id), None)
    if topic is None or topic.name in node.lacks:
        return _no_records(wanted, Code.UNKNOWN_TOPIC_ID)
    tp = TopicPartition(topic.name, wanted.partition)
    log, offset = node.log(tp), wanted.fetch_offset
    if log is None:
        return _no_records(wanted, Code.NOT_LEADER_OR_FOLLOWER)
    if offset < log.start or (offset > log.end and wanted.last_fetched_epoch < 0):
        return _no_records(wanted, Code.OFFSET_OUT_OF_RANGE)
    if wanted.last_fetched_epoch >= 0:
        epoch, end = log.epoch_end(wanted.last_fetched_epoch)
        if end < 0:
            return _no_records(wanted, Code.OFFSET_OUT_OF_RANGE)
        if epoch < wanted.last_fetched_epoch or end < offset:
            found = _no_records(wanted, Code.NONE)
            found.diverging_epoch = Reply(epoch=epoch, end_offset=end)
            return found
    if cluster.remote_reads.get(tp, 0.0) > request.max_wait_ms / 1000:
        return _no_records(wanted, Code.NONE)  # cut off, and begun again by the next question
    is_isolated = bool(request.isolation_level)
    limit = log.last_stable if is_isolated else log.high_watermark
    most = cluster.loop.random.randint(1, cluster.most_batches_of_a_fetch)
    batches = log.read(offset, limit, most)
    upto = batches[-1].next if batches else offset
    return Reply(
        partition_index=wanted.partition,
        error_code=0,
        diverging_epoch=None,
        records=b"".join(b.data for b in batches),
        log_start_offset=log.start,
        last_stable_offset=log.last_stable,
        high_watermark=log.high_watermark,
        aborted_transactions=[
            Reply(first_offset=first, producer_id=pid) for first, pid in log.aborted_between(offset, upto)
        ]
        if is_isolated
        else [],
    )


def _no_records(wanted: Any, code: Code) -> Reply:
    return Reply(
        partition_index=wanted.partition,
        error_code=int(code),
        diverging_epoch=None,
        records=b"",
        log_start_offset=-1,
        last_stable_offset=-1,
        high_watermark=-1,
        aborted_transactions=[],
    )


def _list_offsets(node: SimNode, request: Any, respond: Respond) -> None:
    topics = []
    for topic in request.topics:
        parts = []
        for p in topic.partitions:
            code, offset, epoch = _offset_at(
                node, TopicPartition(topic.name, p.partition_index), p.timestamp, request.isolation_level
            )
            parts.append(
                Reply(partition_index=p.partition_index, error_code=code, offset=offset, leader_epoch=epoch)
            )
        topics.append(Reply(name=topic.name, partitions=parts))
    respond(Reply(topics=topics))


def _offset_at(node: SimNode, tp: TopicPartition, timestamp: int, isolation: int) -> tuple[int, int, int]:
    if tp not in node.cluster.logs:
        return Code.UNKNOWN_TOPIC_OR_PARTITION, -1, -1
    log = node.log(tp)
    if log is None:
        return Code.NOT_LEADER_OR_FOLLOWER, -1, -1
    if timestamp == _EARLIEST:
        return 0, log.start, log.epochs[0][0]
    if not log.is_settled:
        return Code.OFFSET_NOT_AVAILABLE, -1, -1
    if timestamp == _LATEST:
        return 0, log.last_stable if isolation else log.high_watermark, log.leader_epoch
    if node.cluster.refused_lookups and node.cluster.loop.random.random() < node.cluster.refused_lookups:
        return Code.REQUEST_TIMED_OUT, -1, -1
    limit = log.last_stable if isolation else log.high_watermark
    for batch in log.batches:
        if batch.base < limit and batch.head.max_timestamp >= timestamp and batch.commits is None:
            return 0, batch.base, batch.head.leader_epoch
    return 0, -1, -1


def _epoch_ends(node: SimNode, request: Any, respond: Respond) -> None:
    topics = []
    for topic in request.topics:
        parts = []
        for p in topic.partitions:
            log = node.log(TopicPartition(topic.topic, p.partition))
            if log is not None:
                epoch, end = log.epoch_end(p.leader_epoch)
                parts.append(Reply(partition=p.partition, error_code=0, leader_epoch=epoch, end_offset=end))
            else:
                code = int(Code.NOT_LEADER_OR_FOLLOWER)
                parts.append(Reply(partition=p.partition, error_code=code, leader_epoch=-1, end_offset=-1))
        topics.append(Reply(topic=topic.topic, partitions=parts))
    respond(Reply(topics=topics))


def _describe_producers(node: SimNode, request: Any, respond: Respond) -> None:
    topics = []
    for topic in request.topics:
        parts = []
        for number in topic.partition_indexes:
            log = node.log(TopicPartition(topic.name, number))
            if log is not None:
                active = [
                    Reply(
                        producer_id=pid, current_txn_start_offset=-1 if p.open_from is None else p.open_from
                    )
                    for pid, p in log.producers.items()
                ]
                parts.append(Reply(partition_index=number, error_code=0, active_producers=active))
            else:
                code = int(Code.NOT_LEADER_OR_FOLLOWER)
                parts.append(Reply(partition_index=number, error_code=code, active_producers=[]))
        topics.append(Reply(name=topic.name, partitions=parts))
    respond(Reply(topics=topics))


# appending


def _produce(node: SimNode, request: Any, respond: Respond) -> None:
    batches = {tp: bytes(batch) for tp, batch in request.batches.items()}
    answers: dict[TopicPartition, AppendAnswer] = {}

    def answered(tp: TopicPartition, code: int, base: int = -1) -> None:
        if tp in answers:
            return
        answers[tp] = Refused(int(code), "") if code else Appended(base, 0)
        if len(answers) == len(batches):
            respond(AppendAnswers(answers))

    if not batches:
        respond(AppendAnswers({}))
        return
    _Appending(node, request, batches, answered).begin()


class _Appending:
    """One Produce request: verified by the transaction coordinator where needed, then appended."""

    def __init__(
        self,
        node: SimNode,
        request: Any,
        batches: dict[TopicPartition, bytes],
        answered: Callable[..., None],
    ) -> None:
        self._node, self._cluster, self._request = node, node.cluster, request
        self._batches, self._answered = batches, answered
        self._heads = {tp: parse_head(memoryview(batch)) for tp, batch in batches.items()}
        self._is_v2 = (request._max_version or 0) >= _V2_PRODUCE

    def begin(self) -> None:
        plain: list[TopicPartition] = []
        to_verify: dict[TopicPartition, object] = {}
        for tp, head in self._heads.items():
            if tp not in self._cluster.logs:
                self._answered(tp, Code.UNKNOWN_TOPIC_OR_PARTITION)
            elif self._node.past is not None and tp in self._node.past.logs:
                answer_later(self._node, partial(self._answered, tp, Code.NOT_LEADER_OR_FOLLOWER))
            elif self._node.log(tp) is None:
                self._answered(tp, Code.NOT_LEADER_OR_FOLLOWER)
            elif not head.is_transactional or self._is_open(tp, head):
                plain.append(tp)
            else:
                log = self._cluster.logs[tp]
                to_verify[tp] = log.guards.setdefault(head.producer_id, object())
        for tp in plain:
            self._append(tp)
        if to_verify:
            self._verify(to_verify)

    def _is_open(self, tp: TopicPartition, head: BatchHead) -> bool:
        known = self._cluster.logs[tp].producers.get(head.producer_id)
        return known is not None and known.open_from is not None and known.epoch == head.producer_epoch

    def _verify(self, guards: dict[TopicPartition, object]) -> None:
        cluster = self._cluster
        head = self._heads[next(iter(guards))]
        name = self._request.transactional_id

        def verified(code: int) -> None:
            cluster.loop.after(
                cluster.loop.random.uniform(0.0002, 0.002), lambda: self._verified(guards, code)
            )

        def ask() -> None:
            coordinator_node = cluster.nodes[cluster.transaction_node]
            if not coordinator_node.is_up or coordinator_node.is_frozen or cluster.coordinator.is_loading:
                verified(Code.NOT_COORDINATOR)
                return
            cluster.coordinator.add(
                name,
                head.producer_id,
                head.producer_epoch,
                list(guards),
                answering(cluster, verified),
                verify_only=not self._is_v2,
            )

        cluster.loop.after(cluster.loop.random.uniform(0.0002, 0.002), ask)

    def _verified(self, guards: dict[TopicPartition, object], code: int) -> None:
        for tp, guard in guards.items():
            log = self._cluster.logs[tp]
            if code:
                self._answered(tp, self._translated(code))
            elif log.guards.get(self._heads[tp].producer_id) is not guard:
                self._answered(tp, Code.INVALID_TXN_STATE)
            else:
                self._append(tp)

    def _translated(self, code: int) -> int:
        """What the coordinator says isn't what the producer hears."""
        if code == Code.PRODUCER_FENCED:
            return Code.INVALID_PRODUCER_EPOCH
        if code == Code.CONCURRENT_TRANSACTIONS and self._is_v2:
            return code
        if code in (Code.CONCURRENT_TRANSACTIONS, Code.NOT_COORDINATOR):
            return Code.NOT_ENOUGH_REPLICAS
        return code

    def _append(self, tp: TopicPartition) -> None:
        cluster, head, batch = self._cluster, self._heads[tp], self._batches[tp]
        log = self._node.log(tp)
        if log is None or self._node.past is not None:
            self._answered(tp, Code.NOT_LEADER_OR_FOLLOWER)
            return
        verdict = log.check(head, len(batch))
        if verdict < 0:
            base = -1 - verdict
        elif verdict:
            self._answered(tp, verdict)
            return
        elif cluster.is_stormy and cluster.loop.random.random() < cluster.refuses_for_replicas:
            self._answered(tp, Code.NOT_ENOUGH_REPLICAS)
            return
        else:
            base = log.append(batch, head)
            cluster.on_append(tp, head, base)
        is_short = cluster.is_stormy and cluster.loop.random.random() < cluster.refuses_for_replicas

        def replicated(is_so: bool) -> None:
            if is_short:
                self._answered(tp, Code.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
            elif is_so:
                self._answered(tp, 0, base)
            else:
                self._answered(tp, Code.NOT_LEADER_OR_FOLLOWER)

        cluster.appended(tp, base + head.record_count, replicated)


# transactions


def answering(cluster: Any, say: Callable[..., None]) -> Callable[..., None]:
    """Says one thing only; if the coordinator moves first, that it isn't the coordinator any more."""
    number = cluster.next_number()

    def answer(code: int, *rest: int) -> None:
        if cluster.unanswered.pop(number, None) is not None:
            say(int(code), *rest)

    cluster.unanswered[number] = say
    return answer


def answer_later(node: SimNode, answer: Callable[[], None]) -> None:
    """What a deposed node can't do alone waits until it hears from the others that it was deposed."""
    assert node.past is not None
    node.past.unanswered.append(answer)


def _is_coordinator(node: SimNode) -> bool:
    return node.cluster.transaction_node == node.number and not node.cluster.coordinator.is_loading


def _init(node: SimNode, request: Any, respond: Respond) -> None:
    def say(code: int, producer_id: int = -1, epoch: int = -1) -> None:
        respond(Reply(error_code=code, producer_id=producer_id, producer_epoch=epoch))

    if not _is_coordinator(node):
        say(int(Code.NOT_COORDINATOR))
    elif request.transaction_timeout_ms <= 0:
        say(int(Code.INVALID_TRANSACTION_TIMEOUT))
    else:
        node.cluster.coordinator.init(
            request.transactional_id,
            request.transaction_timeout_ms,
            (request.producer_id, request.producer_epoch),
            answering(node.cluster, say),
        )


def _end(node: SimNode, request: Any, respond: Respond) -> None:
    def say(code: int, producer_id: int = -1, epoch: int = -1) -> None:
        respond(Reply(error_code=code, producer_id=producer_id, producer_epoch=epoch))

    if not _is_coordinator(node):
        say(int(Code.NOT_COORDINATOR))
    else:
        node.cluster.coordinator.end(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            answering(node.cluster, say),
            commit=request.committed,
            is_v2=(request._max_version or 0) >= _V2_END,
        )


def _describe_transactions(node: SimNode, request: Any, respond: Respond) -> None:
    past, states = node.past, []
    was_one = past is not None and past.transaction_node == node.number
    known = past.transactions if past is not None and was_one else node.cluster.coordinator.known
    for name in request.transactional_ids:
        found = known.get(name)
        if not was_one and not _is_coordinator(node):
            states.append(Reply(error_code=int(Code.NOT_COORDINATOR)))
        elif found is None:
            states.append(Reply(error_code=int(Code.TRANSACTIONAL_ID_NOT_FOUND)))
        else:
            topics: dict[str, list[int]] = {}
            for tp in found.partitions:
                topics.setdefault(tp.topic, []).append(tp.partition)
            states.append(
                Reply(
                    error_code=0,
                    transaction_state=STATE_NAMES[found.state],
                    producer_id=found.producer_id,
                    producer_epoch=found.epoch,
                    topics=[Reply(topic=t, partitions=p) for t, p in topics.items()],
                )
            )
    respond(Reply(transaction_states=states))


def _describe_configs(node: SimNode, request: Any, respond: Respond) -> None:
    results = []
    for resource in request.resources:
        topic = node.cluster.topics.get(resource.resource_name)
        results.append(
            Reply(
                resource_name=resource.resource_name,
                error_code=0 if topic else int(Code.UNKNOWN_TOPIC_OR_PARTITION),
                configs=[Reply(name="cleanup.policy", value=topic.cleanup_policy)] if topic else [],
            )
        )
    respond(Reply(results=results))


def _add_partitions(node: SimNode, request: Any, respond: Respond) -> None:
    topics = request.v3_and_below_topics
    partitions = [TopicPartition(t.name, p) for t in topics for p in t.partitions]

    def say(code: int, *_: int) -> None:
        results = [
            Reply(
                name=t.name,
                results_by_partition=[
                    Reply(partition_index=p, partition_error_code=code) for p in t.partitions
                ],
            )
            for t in topics
        ]
        respond(Reply(results_by_topic_v3_and_below=results))

    if not _is_coordinator(node):
        say(int(Code.NOT_COORDINATOR))
    else:
        node.cluster.coordinator.add(
            request.v3_and_below_transactional_id,
            request.v3_and_below_producer_id,
            request.v3_and_below_producer_epoch,
            partitions,
            answering(node.cluster, say),
        )


def _add_offsets(node: SimNode, request: Any, respond: Respond) -> None:
    def say(code: int, *_: int) -> None:
        respond(Reply(error_code=code))

    if not _is_coordinator(node):
        say(int(Code.NOT_COORDINATOR))
    else:
        node.cluster.coordinator.add(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            [OFFSETS],
            answering(node.cluster, say),
        )


# offsets


def _commit_offsets(node: SimNode, request: Any, respond: Respond) -> None:
    cluster = node.cluster

    def say(code: int, *_: int) -> None:
        topics = [
            Reply(
                name=t.name,
                partitions=[Reply(partition_index=p.partition_index, error_code=code) for p in t.partitions],
            )
            for t in request.topics
        ]
        respond(Reply(topics=topics))

    if cluster.group_node != node.number:
        say(int(Code.NOT_COORDINATOR))
        return
    owner = (request.producer_id, request.producer_epoch)
    if owner in cluster.groups.joined:
        say(_take_offsets(cluster, request))
        return
    is_v2 = (request._max_version or 0) >= _V2_OFFSETS

    def verified(code: int) -> None:
        def act() -> None:
            if cluster.group_node != node.number:
                say(int(Code.NOT_COORDINATOR))
            elif code:
                say(_offsets_code(code))
            elif cluster.groups.epochs.get(owner[0], -1) > owner[1] or guard != cluster.groups.epochs.get(
                owner[0], -1
            ):
                say(int(Code.INVALID_PRODUCER_EPOCH))
            else:
                cluster.groups.joined.add(owner)
                say(_take_offsets(cluster, request))

        cluster.loop.after(cluster.loop.random.uniform(0.0002, 0.002), act)

    guard = cluster.groups.epochs.get(owner[0], -1)
    if cluster.coordinator.is_loading:
        verified(int(Code.COORDINATOR_NOT_AVAILABLE))
    else:
        cluster.coordinator.add(
            request.transactional_id, *owner, [OFFSETS], answering(cluster, verified), verify_only=not is_v2
        )


def _describe_groups(node: SimNode, request: Any, respond: Respond) -> None:
    """No rights are asked for here: a broker without ACLs doesn't list any."""
    told = node.past or node.cluster
    code = 0 if told.group_node == node.number else int(Code.NOT_COORDINATOR)
    respond(
        Reply(groups=[Reply(group_id=g, error_code=code, authorized_operations=None) for g in request.groups])
    )


def _commit_plain_offsets(node: SimNode, request: Any, respond: Respond) -> None:
    cluster = node.cluster

    def say(code: int) -> None:
        topics = [
            Reply(name=t.name, partitions=[Reply(partition_index=p.partition_index, error_code=code)])
            for t in request.topics
            for p in t.partitions
        ]
        respond(Reply(topics=topics))

    def written() -> None:
        if cluster.group_node != node.number:
            say(int(Code.NOT_COORDINATOR))
            return
        for topic in request.topics:
            for p in topic.partitions:
                key = (request.group_id, TopicPartition(topic.name, p.partition_index))
                cluster.groups.committed[key] = (p.committed_offset, p.committed_metadata)
        say(0)

    if _size_bytes(request) > _MOST_BATCH_BYTES:
        say(int(Code.UNKNOWN_SERVER_ERROR))
    elif any(topic.name not in cluster.topics for topic in request.topics):
        say(int(Code.UNKNOWN_TOPIC_OR_PARTITION))
    elif node.past is not None and node.past.group_node == node.number:
        # It waits for replicas that don't follow it any more, as long as offsets.commit.timeout.ms.
        cluster.loop.after(_OFFSETS_TIMEOUT_SECONDS, lambda: say(int(Code.COORDINATOR_NOT_AVAILABLE)))
    elif cluster.group_node != node.number:
        say(int(Code.NOT_COORDINATOR))
    else:
        cluster.loop.after(cluster.loop.random.uniform(0.0001, cluster.replication_delay), written)


def _offsets_code(code: int) -> int:
    if code == Code.PRODUCER_FENCED:
        return int(Code.INVALID_PRODUCER_EPOCH)
    if code == Code.NOT_COORDINATOR:
        return int(Code.COORDINATOR_NOT_AVAILABLE)
    if code == Code.TRANSACTION_ABORTABLE:
        return int(Code.INVALID_TXN_STATE)
    return code


def _take_offsets(cluster: Any, request: Any) -> int:
    groups = cluster.groups
    if _size_bytes(request) > _MOST_BATCH_BYTES:
        return int(Code.UNKNOWN_SERVER_ERROR)
    if request.producer_epoch < groups.epochs.get(request.producer_id, -1):
        return int(Code.INVALID_PRODUCER_EPOCH)
    groups.epochs[request.producer_id] = request.producer_epoch
    pending = groups.pending.setdefault(request.producer_id, {})
    for topic in request.topics:
        for p in topic.partitions:
            tp = TopicPartition(topic.name, p.partition_index)
            pending[request.group_id, tp] = (p.committed_offset, p.committed_metadata)
    return 0


def _size_bytes(request: Any) -> int:
    """Of the one batch that a coordinator writes for one request."""
    return sum(
        len(request.group_id) + len(topic.name) + len(p.committed_metadata or "") + _OFFSET_RECORD_BYTES
        for topic in request.topics
        for p in topic.partitions
    )


def _fetch_offsets(node: SimNode, request: Any, respond: Respond) -> None:
    """Of one group, or in the later form of several."""
    told = node.past or node.cluster
    code = 0 if told.group_node == node.number else int(Code.NOT_COORDINATOR)

    def answered(group: str, topics: Any) -> Reply:
        asked = _committed_topics(told.groups, group) if topics is None else topics
        found = [] if code else [_fetched(told.groups, group, topic, request) for topic in asked]
        return Reply(group_id=group, error_code=code, topics=found)

    if request.groups:
        respond(Reply(groups=[answered(each.group_id, each.topics) for each in request.groups]))
    else:
        respond(answered(request.group_id, request.topics))


def _committed_topics(groups: Any, group: str) -> list[Reply]:
    """Whatever the group has committed offsets of."""
    topics: dict[str, list[int]] = {}
    for whose, tp in groups.committed:
        if whose == group:
            topics.setdefault(tp.topic, []).append(tp.partition)
    return [Reply(name=name, partition_indexes=numbers) for name, numbers in topics.items()]


def _fetched(groups: Any, group: str, topic: Any, request: Any) -> Reply:
    parts = []
    for number in topic.partition_indexes:
        key = (group, TopicPartition(topic.name, number))
        offset, metadata = groups.committed.get(key, (-1, ""))
        is_unstable = request.require_stable and any(key in p for p in groups.pending.values())
        parts.append(
            Reply(
                partition_index=number,
                committed_offset=-1 if is_unstable else offset,
                metadata=metadata,
                error_code=int(Code.UNSTABLE_OFFSET_COMMIT) if is_unstable else 0,
            )
        )
    return Reply(name=topic.name, partitions=parts)


_HANDLERS: dict[str, Callable[..., None]] = {
    "ApiVersionsRequest": _features,
    "MetadataRequest": _metadata,
    "FindCoordinatorRequest": _find_coordinator,
    "FetchRequest": _fetch,
    "ListOffsetsRequest": _list_offsets,
    "OffsetForLeaderEpochRequest": _epoch_ends,
    "DescribeProducersRequest": _describe_producers,
    "AppendRequest": _produce,
    "InitProducerIdRequest": _init,
    "EndTxnRequest": _end,
    "DescribeTransactionsRequest": _describe_transactions,
    "DescribeConfigsRequest": _describe_configs,
    "AddPartitionsToTxnRequest": _add_partitions,
    "AddOffsetsToTxnRequest": _add_offsets,
    "TxnOffsetCommitRequest": _commit_offsets,
    "DescribeGroupsRequest": _describe_groups,
    "OffsetCommitRequest": _commit_plain_offsets,
    "OffsetFetchRequest": _fetch_offsets,
}
