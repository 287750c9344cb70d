"""Which codes of a broker and of librdkafka mean the same to us: `error_map` makes one error of each set."""

from __future__ import annotations

from enum import IntEnum

from causeway.core.kernel.acl_vocabulary import Resource
from causeway.core.kernel.kafka_errors import KafkaErrorCode


class LibrdkafkaCode(IntEnum):
    """Librdkafka's own codes, all negative, with its names less the underscore."""

    AUTO_OFFSET_RESET = -140
    UNSUPPORTED_FEATURE = -165
    TIMED_OUT_QUEUE = -166
    AUTHENTICATION = -169
    WAIT_COORD = -180
    SSL = -181
    TIMED_OUT = -185
    INVALID_ARG = -186
    ALL_BROKERS_DOWN = -187
    UNKNOWN_TOPIC = -188
    UNKNOWN_PARTITION = -190
    PARTITION_EOF = -191
    MSG_TIMED_OUT = -192
    RESOLVE = -193
    CRIT_SYS_RESOURCE = -194
    TRANSPORT = -195
    BAD_MSG = -199


UNREACHABLE = frozenset(
    {
        LibrdkafkaCode.TRANSPORT,
        LibrdkafkaCode.RESOLVE,
        LibrdkafkaCode.ALL_BROKERS_DOWN,
        LibrdkafkaCode.TIMED_OUT,
        LibrdkafkaCode.TIMED_OUT_QUEUE,
        LibrdkafkaCode.MSG_TIMED_OUT,
        LibrdkafkaCode.WAIT_COORD,
        KafkaErrorCode.BROKER_NOT_AVAILABLE,
    }
)
AUTHENTICATION = frozenset(
    {
        LibrdkafkaCode.AUTHENTICATION,
        KafkaErrorCode.UNSUPPORTED_SASL_MECHANISM,
        KafkaErrorCode.ILLEGAL_SASL_STATE,
        KafkaErrorCode.SASL_AUTHENTICATION_FAILED,
    }
)
INCOMPATIBLE = frozenset(
    {
        LibrdkafkaCode.UNSUPPORTED_FEATURE,
        KafkaErrorCode.UNSUPPORTED_VERSION,
        KafkaErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    }
)
UNKNOWN_NAME = frozenset(
    {
        LibrdkafkaCode.UNKNOWN_TOPIC,
        LibrdkafkaCode.UNKNOWN_PARTITION,
        KafkaErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        KafkaErrorCode.UNKNOWN_TOPIC_ID,
        KafkaErrorCode.GROUP_ID_NOT_FOUND,
    }
)
REFUSED_REQUEST = frozenset(
    {
        KafkaErrorCode.INVALID_TOPIC_EXCEPTION,
        KafkaErrorCode.TOPIC_ALREADY_EXISTS,
        KafkaErrorCode.INVALID_PARTITIONS,
        KafkaErrorCode.INVALID_REPLICATION_FACTOR,
        KafkaErrorCode.INVALID_REPLICA_ASSIGNMENT,
        KafkaErrorCode.INVALID_CONFIG,
        KafkaErrorCode.INVALID_TRANSACTION_TIMEOUT,
        KafkaErrorCode.POLICY_VIOLATION,
    }
)
ACL_RESOURCE: dict[KafkaErrorCode, Resource] = {
    KafkaErrorCode.TOPIC_AUTHORIZATION_FAILED: "topic",
    KafkaErrorCode.GROUP_AUTHORIZATION_FAILED: "group",
    KafkaErrorCode.CLUSTER_AUTHORIZATION_FAILED: "cluster",
    KafkaErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "transactional-id",
}
