"""Which settings of a source topic its new mirror gets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from causeway.core.model.pattern import compiled


class SettingSource(Enum):
    """Who set a topic's setting; the words are Kafka's."""

    TOPIC = "topic"
    BROKER_DYNAMIC = "dynamic broker"
    CLUSTER_DYNAMIC = "dynamic default broker"
    BROKER_FILE = "static broker"
    DEFAULT = "default"
    OTHER = "other"


_CROSSING = frozenset({SettingSource.TOPIC, SettingSource.BROKER_DYNAMIC, SettingSource.CLUSTER_DYNAMIC})


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSetting:
    name: str
    value: str | None
    source: SettingSource
    is_read_only: bool = False
    is_sensitive: bool = False


def settings_to_carry(
    settings: Iterable[TopicSetting], exclude: Iterable[str]
) -> tuple[tuple[str, str], ...]:
    """What a new topic on the target takes over from its source; `exclude` are full regular expressions."""
    patterns = [compiled(pattern) for pattern in exclude]
    return tuple(
        sorted(
            (setting.name, setting.value)
            for setting in settings
            if setting.source in _CROSSING
            and setting.value is not None
            and not setting.is_read_only
            and not setting.is_sensitive
            and not any(pattern.matches(setting.name) for pattern in patterns)
        )
    )
