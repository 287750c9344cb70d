"""The exact command that goes on from where a partition stands still: all that is known is filled in."""

from __future__ import annotations

from causeway.core.identity import TopicPartition

_WHY = '--because "..."'


def adopt_remedy(flow: str, source: TopicPartition) -> str:
    command = f"`causeway adopt {flow} {source.topic} {source.partition} OFFSET`"
    return f"{command} once you know where it should go on"


def adopt_command(flow: str, source: TopicPartition, offset: int) -> str:
    return f"`causeway adopt {flow} {source.topic} {source.partition} {offset} {_WHY}`"


def reconcile_remedy(flow: str, source: TopicPartition) -> str:
    command = f"`causeway reconcile {flow} {source.topic} {source.partition} {_WHY}`"
    return f"{command} finds where it stands and goes on"


def restart_remedy(flow: str, source_topic: str) -> str:
    return f"`causeway restart-topic {flow} {source_topic} {_WHY}` begins the topic anew"


def accept_gap_command(flow: str, source: TopicPartition, first: int, end: int) -> str:
    return f"`causeway accept-gap {flow} {source.topic} {source.partition} {first} {end} {_WHY}`"
