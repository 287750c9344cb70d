"""In which settings a mirror differs from its source, and what a sync would do about each.

MirrorMaker 2's rules: what was set on the source is set on the mirror; what is at its default on the source
is the mirror's own again (`use.defaults.from: target`: an override is deleted), or gets the source's default
(`source`); `config.properties.exclude` and what stands in the files of the source's brokers stay behind.
Here only differences count: values that are equal need no request, whoever set them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from causeway.core.flow import Flow
from causeway.core.pattern import compiled
from causeway.core.topics import SettingSource, TopicSetting

Change = Literal["set", "delete", "leave"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingDrift:
    """One setting of a mirror that isn't what it is on the source."""

    topic: str
    mirror: str
    setting: str
    source_value: str | None
    target_value: str | None
    change: Change
    why: str
    """Why it would be changed so, or why not."""


def diff_settings(
    flow: Flow, topic: str, mirror: str, source: Iterable[TopicSetting], target: Iterable[TopicSetting]
) -> tuple[SettingDrift, ...]:
    """Both sides with their defaults, or a default couldn't be told from a setting that isn't known there."""
    theirs = {setting.name: setting for setting in target}
    found: list[SettingDrift] = []
    for ours in sorted(source, key=lambda each: each.name):
        there = theirs.get(ours.name)
        if ours.is_sensitive or (there is not None and there.value == ours.value):
            continue
        if there is None and ours.source is SettingSource.DEFAULT:
            continue  # another version of Kafka: nobody asked for it
        change, why = _judge(flow, ours, there)
        found.append(
            SettingDrift(
                topic=topic,
                mirror=mirror,
                setting=ours.name,
                source_value=ours.value,
                target_value=None if there is None else there.value,
                change=change,
                why=why,
            )
        )
    return tuple(found)


def held_back(drifts: Iterable[SettingDrift], why: str) -> tuple[SettingDrift, ...]:
    """The same differences, none of which may be changed."""
    return tuple(
        drift if drift.change == "leave" else replace(drift, change="leave", why=why) for drift in drifts
    )


def _judge(flow: Flow, ours: TopicSetting, there: TopicSetting | None) -> tuple[Change, str]:
    if there is None:
        return "leave", f"the brokers of {flow.target} don't know it"
    if any(compiled(pattern).matches(ours.name) for pattern in flow.config_properties_exclude):
        return "leave", "config.properties.exclude names it"
    if ours.is_read_only or there.is_read_only or there.is_sensitive:
        return "leave", "it can't be set on a topic"
    match ours.source:
        case SettingSource.DEFAULT:
            return _judge_default(flow, there)
        case SettingSource.BROKER_FILE | SettingSource.OTHER:
            return "leave", f"it comes from the files of {flow.source}'s brokers"
    return "set", "it was set on the source"


def _judge_default(flow: Flow, there: TopicSetting) -> tuple[Change, str]:
    if flow.upkeep.use_defaults_from == "source":
        return "set", f"it is at its default on {flow.source} (use.defaults.from: source)"
    if there.source is SettingSource.TOPIC:
        return "delete", f"it is at its default on {flow.source} (use.defaults.from: target)"
    return "leave", "each cluster has its own default (use.defaults.from: target)"
