"""Which differences of settings a sync would take away, and why not the others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from causeway.config.flows_file.model import DEFAULT_CONFIG_EXCLUDE
from causeway.core.model.flow import RefusedPolicy, Upkeep
from causeway.core.topics.carried_settings import SettingSource, TopicSetting
from causeway.core.topics.setting_drift import diff_settings, held_back
from tests.support import builders

FLOW = builders.flow("sf_to_nyc")
Source = SettingSource


def setting(
    value: str | None, source: Source = Source.TOPIC, name: str = "retention.ms", **more: Any
) -> TopicSetting:
    return TopicSetting(name=name, value=value, source=source, **more)


def verdict(
    ours: TopicSetting, theirs: TopicSetting | None, defaults_from: str = "target"
) -> tuple[str, str] | None:
    upkeep = Upkeep(sync_settings=True, use_defaults_from=defaults_from)  # type: ignore[arg-type]
    flow = replace(FLOW, upkeep=upkeep, config_properties_exclude=DEFAULT_CONFIG_EXCLUDE)
    found = diff_settings(flow, "orders", "sf.orders", [ours], [] if theirs is None else [theirs])
    return (found[0].change, found[0].why) if found else None


def test_equal_values_are_no_drift_whoever_set_them() -> None:
    for ours in Source:
        for theirs in Source:
            assert verdict(setting("1", ours), setting("1", theirs)) is None


@pytest.mark.parametrize("source", [Source.TOPIC, Source.BROKER_DYNAMIC, Source.CLUSTER_DYNAMIC])
def test_what_was_set_on_the_source_is_set_on_the_mirror(source: Source) -> None:
    for theirs in (Source.TOPIC, Source.DEFAULT, Source.BROKER_FILE):
        assert verdict(setting("1", source), setting("2", theirs)) == ("set", "it was set on the source")


def test_replicate_target_default() -> None:
    """What is at its default on the source is the mirror's own default again."""
    change, why = verdict(setting("1", Source.DEFAULT), setting("2")) or ("", "")
    assert change == "delete"
    assert why == "it is at its default on sf (use.defaults.from: target)"


def test_each_clusters_own_default_stays() -> None:
    for theirs in (Source.DEFAULT, Source.BROKER_FILE, Source.CLUSTER_DYNAMIC):
        change, why = verdict(setting("1", Source.DEFAULT), setting("2", theirs)) or ("", "")
        assert (change, why) == ("leave", "each cluster has its own default (use.defaults.from: target)")


def test_replicate_source_default() -> None:
    for theirs in (Source.TOPIC, Source.DEFAULT, Source.BROKER_FILE):
        change, why = verdict(setting("1", Source.DEFAULT), setting("2", theirs), "source") or ("", "")
        assert change == "set"
        assert why == "it is at its default on sf (use.defaults.from: source)"


@pytest.mark.parametrize(
    "name",
    [
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
        "message.timestamp.difference.max.ms",
        "message.timestamp.type",
        "unclean.leader.election.enable",
        "min.insync.replicas",
    ],
)
@pytest.mark.parametrize("defaults_from", ["target", "source"])
def test_mirror_makers_excludes_are_left_out(name: str, defaults_from: str) -> None:
    for source in (Source.TOPIC, Source.DEFAULT):
        ours, theirs = setting("1", source, name), setting("2", name=name)
        assert verdict(ours, theirs, defaults_from) == ("leave", "config.properties.exclude names it")


@pytest.mark.parametrize("source", [Source.BROKER_FILE, Source.OTHER])
def test_what_stands_in_the_files_of_brokers_stays_theirs(source: Source) -> None:
    assert verdict(setting("1", source), setting("2")) == ("leave", "it comes from the files of sf's brokers")


def test_what_the_target_does_not_know_is_reported_only_if_somebody_set_it() -> None:
    assert verdict(setting("1"), None) == ("leave", "the brokers of nyc don't know it")
    assert verdict(setting("1", Source.DEFAULT), None) is None


def test_secrets_and_what_can_not_be_set_are_never_touched() -> None:
    assert verdict(setting(None, is_sensitive=True), setting("2")) is None
    for ours, theirs in (
        (setting("1", is_read_only=True), setting("2")),
        (setting("1"), setting("2", is_read_only=True)),
        (setting("1"), setting(None, is_sensitive=True)),
    ):
        assert verdict(ours, theirs) == ("leave", "it can't be set on a topic")


def test_an_own_override_of_the_mirror_alone_is_found_through_the_sources_default() -> None:
    """All names come from the source's list, which has its defaults in it."""
    flow = replace(FLOW, upkeep=Upkeep(sync_settings=True))
    source = [setting("1", name="b"), setting("7", Source.DEFAULT, "a")]
    target = [setting("1", name="b"), setting("9", name="a"), setting("5", name="unknown.there")]
    found = diff_settings(flow, "orders", "sf.orders", source, target)
    assert [(each.setting, each.change, each.source_value, each.target_value) for each in found] == [
        ("a", "delete", "7", "9")
    ]


def test_what_is_held_back_keeps_the_reason_that_it_had() -> None:
    flow = replace(FLOW, config_properties_exclude=("a",), upkeep=Upkeep(sync_settings=True))
    source = [setting("1", name="a"), setting("1", name="b")]
    found = held_back(
        diff_settings(flow, "o", "sf.o", source, [setting("2", name="a"), setting("2", name="b")]), "because"
    )
    assert [(each.change, each.why) for each in found] == [
        ("leave", "config.properties.exclude names it"),
        ("leave", "because"),
    ]


RAISED = [
    "max.message.bytes",
    "segment.bytes",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
]


@pytest.mark.parametrize("name", RAISED)
@pytest.mark.parametrize("source", [Source.TOPIC, Source.DEFAULT])
def test_what_the_copy_has_raised_is_not_lowered_after_it(name: str, source: Source) -> None:
    """Or each run would be refused again, and raise it again."""
    ours = setting("1000", source, name)

    def judged(theirs: TopicSetting, policy: RefusedPolicy = RefusedPolicy.RAISE_LIMIT) -> str:
        flow = replace(FLOW, on_refused=policy, upkeep=Upkeep(sync_settings=True))
        return diff_settings(flow, "orders", "sf.orders", [ours], [theirs])[0].change

    undone = "set" if source is Source.TOPIC else "delete"
    assert judged(setting("20000", name=name)) == "leave"
    assert judged(setting("999", name=name)) == undone, "that is no raise"
    assert judged(setting("20000", name=name), RefusedPolicy.PARK) == undone
    if source is Source.TOPIC:
        assert judged(setting("20000", Source.DEFAULT, name)) == "set", "nobody raised it on this topic"


def test_only_limits_are_raised() -> None:
    flow = replace(FLOW, on_refused=RefusedPolicy.RAISE_LIMIT, upkeep=Upkeep(sync_settings=True))
    (found,) = diff_settings(flow, "orders", "sf.orders", [setting("1000")], [setting("20000")])
    assert found.change == "set"


@pytest.mark.parametrize("value", ["a,b,c", "0:1,1:0", "", " x ", "two\nlines"])
def test_values_are_compared_and_handed_on_letter_by_letter(value: str) -> None:
    flow = replace(FLOW, upkeep=Upkeep(sync_settings=True))
    (found,) = diff_settings(flow, "o", "sf.o", [setting(value)], [setting("a, b,c")])
    assert (found.change, found.source_value) == ("set", value)
