"""Topic settings of mirrors: in which they differ, and the changes of a sync."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from causeway.brokers.admin import ClusterAdmin
from causeway.core.errors import CausewayError
from causeway.core.flow import Flow
from causeway.core.setting_drift import SettingDrift, diff_settings, held_back
from causeway.core.topics import TopicSetting
from causeway.flows.upkeep.mirrors import Mirrors

SWITCHED_OFF = "sync.topic.configs.enabled is false"
_TOPICS_IN_A_REQUEST = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsView:
    drifts: tuple[SettingDrift, ...]
    unseen: tuple[CausewayError, ...]
    """Why settings of a topic couldn't be read, on one side or the other."""

    @property
    def changes(self) -> tuple[SettingDrift, ...]:
        return tuple(drift for drift in self.drifts if drift.change != "leave")


def look_at_settings(
    flow: Flow, mirrors: Mirrors, source: ClusterAdmin, target: ClusterAdmin
) -> SettingsView:
    here = _settings(source, mirrors.there.keys())
    there = _settings(target, mirrors.there.values())
    drifts: list[SettingDrift] = []
    unseen: list[CausewayError] = []
    for topic, mirror in sorted(mirrors.there.items()):
        ours, theirs = here[topic], there[mirror]
        if isinstance(ours, CausewayError) or isinstance(theirs, CausewayError):
            unseen += [each for each in (ours, theirs) if isinstance(each, CausewayError)]
            continue
        found = diff_settings(flow, topic, mirror, ours, theirs)
        if not flow.upkeep.sync_settings:
            found = held_back(found, SWITCHED_OFF)
        elif topic in mirrors.held_back:
            found = held_back(found, mirrors.held_back[topic])
        drifts += found
    return SettingsView(drifts=tuple(drifts), unseen=tuple(unseen))


def apply_settings(
    changes: Iterable[SettingDrift], target: ClusterAdmin, *, dry_run: bool
) -> dict[str, CausewayError]:
    """What the broker refused, by mirror; a dry run lets it judge, and changes nothing."""
    by_mirror: dict[str, dict[str, str | None]] = {}
    for drift in changes:
        value = None if drift.change == "delete" else drift.source_value
        by_mirror.setdefault(drift.mirror, {})[drift.setting] = value
    return target.alter_settings(by_mirror, validate_only=dry_run)


def _settings(
    admin: ClusterAdmin, topics: Collection[str]
) -> dict[str, tuple[TopicSetting, ...] | CausewayError]:
    """In portions: with its defaults a topic has some forty settings."""
    names = sorted(topics)
    found: dict[str, tuple[TopicSetting, ...] | CausewayError] = {}
    for first in range(0, len(names), _TOPICS_IN_A_REQUEST):
        found |= admin.topic_settings(names[first : first + _TOPICS_IN_A_REQUEST], with_defaults=True)
    return found
