"""Topic settings of mirrors: in which they differ, and the changes of a sync."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from causeway.brokers.admin import ClusterAdmin
from causeway.core.errors import BadInput, CausewayError
from causeway.core.flow import Flow
from causeway.core.setting_drift import SettingDrift, diff_settings, held_back
from causeway.core.topics import TopicSetting
from causeway.flows.upkeep.mirrors import Mirrors

SWITCHED_OFF = "sync.topic.configs.enabled is false"
_TOPICS_IN_A_REQUEST = 200


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
) -> dict[SettingDrift, CausewayError]:
    """What the broker refused, with its reasons; a dry run lets it judge, and changes nothing.

    Of one topic the broker takes all or nothing. So of a topic that it refuses each setting is asked for by
    itself: one value that can't be had there holds no other one back.
    """
    by_mirror: dict[str, list[SettingDrift]] = {}
    for drift in changes:
        by_mirror.setdefault(drift.mirror, []).append(drift)
    refused: dict[SettingDrift, CausewayError] = {}
    for portion in _portions(sorted(by_mirror)):
        wanted = {mirror: _values(by_mirror[mirror]) for mirror in portion}
        for mirror, error in target.alter_settings(wanted, validate_only=dry_run).items():
            refused |= _one_by_one(by_mirror[mirror], error, target, dry_run=dry_run)
    return refused


def _one_by_one(
    changes: list[SettingDrift], error: CausewayError, target: ClusterAdmin, *, dry_run: bool
) -> dict[SettingDrift, CausewayError]:
    """Of one mirror, which refused them together; a missing right would be missing again."""
    if len(changes) == 1 or not isinstance(error, BadInput):
        return dict.fromkeys(changes, error)
    asked = {each: {each.mirror: _values([each])} for each in changes}
    answers = {each: target.alter_settings(wish, validate_only=dry_run) for each, wish in asked.items()}
    return {each: answer[each.mirror] for each, answer in answers.items() if answer}


def _values(changes: Iterable[SettingDrift]) -> dict[str, str | None]:
    return {each.setting: None if each.change == "delete" else each.source_value for each in changes}


def _settings(
    admin: ClusterAdmin, topics: Collection[str]
) -> dict[str, tuple[TopicSetting, ...] | CausewayError]:
    found: dict[str, tuple[TopicSetting, ...] | CausewayError] = {}
    for portion in _portions(sorted(topics)):
        found |= admin.topic_settings(portion, with_defaults=True)
    return found


def _portions(topics: list[str]) -> Iterator[list[str]]:
    """With its defaults a topic has some forty settings, and a controller takes 10,000 changes at once."""
    for first in range(0, len(topics), _TOPICS_IN_A_REQUEST):
        yield topics[first : first + _TOPICS_IN_A_REQUEST]
