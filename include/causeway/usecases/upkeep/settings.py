"""Topic settings of mirrors: in which they differ, and the changes of a sync."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from causeway.brokers.admin.topics import ClusterAdmin
from causeway.core.kernel.errors import BadInput, CausewayError
from causeway.core.model.flow import Flow
from causeway.core.topics.carried_settings import TopicSetting
from causeway.core.topics.setting_drift import SettingDrift, diff_settings, held_back
from causeway.usecases.session.blocking import blocking
from causeway.usecases.session.both_clusters import Clusters, admins
from causeway.usecases.upkeep.mirrors import Mirrors, see_mirrors
from causeway.usecases.upkeep.still_open import StillOpen

SWITCHED_OFF = "sync.topic.configs.enabled is false"
_TOPICS_IN_A_REQUEST = 200
Wanted = Mapping[str, Mapping[str, str | None]]
"""By mirror."""
Refused = Mapping[str, CausewayError]
"""Likewise."""
Alter = Callable[[Wanted], Awaitable[Refused]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsView:
    drifts: tuple[SettingDrift, ...]
    unseen: tuple[CausewayError, ...]
    """Why settings of a topic couldn't be read, on one side or the other."""

    @property
    def changes(self) -> tuple[SettingDrift, ...]:
        return tuple(drift for drift in self.drifts if drift.change != "leave")


def read_settings_view(
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsDone:
    made: tuple[SettingDrift, ...]
    refused: tuple[CausewayError, ...]


async def sync_settings(
    flow: Flow, clusters: Clusters, drifts: Iterable[SettingDrift], still_open: StillOpen
) -> SettingsDone:
    """The changes that are to be made to the mirrors of `drifts`, by what is seen of them now.

    Each portion is looked at again right before its change: the source may have changed its mind since, and a
    topic may have been recreated.
    """
    made: list[SettingDrift] = []
    refused: list[CausewayError] = []
    source, target = admins(clusters.source.wire.endpoint, clusters.target.wire.endpoint)
    for portion in _portions(sorted({drift.topic for drift in drifts})):
        looked_at = still_open.now()
        mirrors = await see_mirrors(flow, clusters)
        there = {topic: mirrors.there[topic] for topic in portion if topic in mirrors.there}
        seen = replace(mirrors, there=there)
        view = await blocking(partial(read_settings_view, flow, seen, source, target))

        async def alter(wanted: Wanted, at: float = looked_at) -> Refused:
            return await still_open.change(_in_words(wanted), at, lambda: target.alter_settings(wanted))

        not_made = await apply_settings(view.changes, alter)
        made += [each for each in view.changes if each not in not_made]
        refused += [*view.unseen, *not_made.values()]
    return SettingsDone(made=tuple(made), refused=tuple(refused))


async def rehearse_settings(changes: Iterable[SettingDrift], target: ClusterAdmin) -> SettingsDone:
    """Lets the broker judge them, and changes nothing."""
    wanted = tuple(changes)

    async def alter(wanted: Wanted) -> Refused:
        return await blocking(lambda: target.alter_settings(wanted, validate_only=True))

    refused = await apply_settings(wanted, alter)
    made = tuple(each for each in wanted if each not in refused)
    return SettingsDone(made=made, refused=tuple(refused.values()))


async def apply_settings(changes: Iterable[SettingDrift], alter: Alter) -> dict[SettingDrift, CausewayError]:
    """What the broker refused, with its reasons.

    Of one topic the broker takes all or nothing. So of a topic that it refuses each setting is asked for by
    itself: one value that can't be had there holds no other one back.
    """
    by_mirror: dict[str, list[SettingDrift]] = {}
    for drift in changes:
        by_mirror.setdefault(drift.mirror, []).append(drift)
    refused: dict[SettingDrift, CausewayError] = {}
    for portion in _portions(sorted(by_mirror)):
        wanted = {mirror: _values(by_mirror[mirror]) for mirror in portion}
        for mirror, error in (await alter(wanted)).items():
            refused |= await _one_by_one(by_mirror[mirror], error, alter)
    return refused


async def _one_by_one(
    changes: list[SettingDrift], error: CausewayError, alter: Alter
) -> dict[SettingDrift, CausewayError]:
    """Of one mirror, which refused them together; a missing right would be missing again."""
    if len(changes) == 1 or not isinstance(error, BadInput):
        return dict.fromkeys(changes, error)
    answers = {each: await alter({each.mirror: _values([each])}) for each in changes}
    return {each: answer[each.mirror] for each, answer in answers.items() if answer}


def _in_words(wanted: Wanted) -> list[str]:
    return [f"{' and '.join(settings)} of {mirror}" for mirror, settings in wanted.items()]


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
