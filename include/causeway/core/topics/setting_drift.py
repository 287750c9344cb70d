"""In which settings a mirror differs from its source, and what a sync would do about each.

MirrorMaker 2's rules: what was set on the source is set on the mirror; what is at its default on the source
is the mirror's own again (`use.defaults.from: target`: an override is deleted), or gets the source's default
(`source`); `config.properties.exclude` and what is in the files of the source's brokers are left out.
Here only differences count: values that are equal need no request, whoever set them. And what the copy
itself has raised on the mirror (`on_refused: raise_limit`) isn't lowered again: records are there for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from causeway.core.copy.target_limits import RAISED
from causeway.core.model.flow import Flow, RefusedPolicy
from causeway.core.model.pattern import compiled
from causeway.core.topics.carried_settings import SettingSource, TopicSetting

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
    """Both sides with their defaults, or a default couldn't be distinguished from a setting that isn't known
    there."""
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
    if why := _why_left(flow, ours, there):
        return "leave", why
    if ours.source is SettingSource.DEFAULT:
        return _judge_default(flow, there)
    return "set", "it was set on the source"


def _why_left(flow: Flow, ours: TopicSetting, there: TopicSetting) -> str:
    if any(compiled(pattern).matches(ours.name) for pattern in flow.config_properties_exclude):
        return "config.properties.exclude names it"
    if ours.is_read_only or there.is_read_only or there.is_sensitive:
        return "it can't be set on a topic"
    if ours.source in (SettingSource.BROKER_FILE, SettingSource.OTHER):
        return f"it comes from the files of {flow.source}'s brokers"
    if flow.on_refused is RefusedPolicy.RAISE_LIMIT and _is_raised(ours, there):
        return "on_refused: raise_limit may have raised it"
    return ""


def _is_raised(ours: TopicSetting, there: TopicSetting) -> bool:
    if ours.name not in RAISED or there.source is not SettingSource.TOPIC:
        return False
    return ours.value is not None and there.value is not None and int(there.value) > int(ours.value)


def _judge_default(flow: Flow, there: TopicSetting) -> tuple[Change, str]:
    if flow.upkeep.use_defaults_from == "source":
        return "set", f"it is at its default on {flow.source} (use.defaults.from: source)"
    if there.source is SettingSource.TOPIC:
        return "delete", f"it is at its default on {flow.source} (use.defaults.from: target)"
    return "leave", "each cluster has its own default (use.defaults.from: target)"
