"""What a flow makes of two lists of topics."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from causeway.core.model.flow import Flow, Upkeep
from causeway.core.model.naming import IdentityNaming, NamingPolicy, NamingRule, PrefixNaming, RuleNaming
from causeway.core.model.topic_filter import TopicFilter
from causeway.core.topics.carried_settings import SettingSource, TopicSetting, settings_to_carry
from causeway.core.topics.plan import (
    Growth,
    MirroredTopic,
    NewTopicPlan,
    TopicPlan,
    plan_topics,
    without_unknown_setting,
)
from causeway.core.topics.topic_facts import TopicFacts
from tests.support import builders

EXCLUDED = ("follower\\.replication\\.throttled\\.replicas", "message\\.timestamp\\.type", "min\\.insync.*")


def flow(*include: str, naming: NamingPolicy | None = None, exclude: tuple[str, ...] = ()) -> Flow:
    return builders.flow(
        "sf_to_nyc",
        topics=TopicFilter(include or (".*",), exclude),
        naming=naming or PrefixNaming("sf"),
        config_properties_exclude=EXCLUDED,
    )


def plan(
    the_flow: Flow,
    source: dict[str, int],
    target: dict[str, int] | None = None,
    known: frozenset[str] = frozenset(),
) -> TopicPlan:
    def facts(topics: dict[str, int]) -> list[TopicFacts]:
        return [TopicFacts(name, partitions) for name, partitions in topics.items()]

    return plan_topics(the_flow, facts(source), facts(target or {}), known)


@dataclasses.dataclass(frozen=True)
class Merging:
    """A policy that forgets the region."""

    def covers(self, source_topic: str) -> bool:
        return True

    def target_topic(self, source_topic: str) -> str:
        return source_topic.split("-", maxsplit=1)[0]

    def comes_from(self, topic: str, alias: str) -> bool:
        return False


def test_a_topic_that_is_missing_on_the_target_is_created_like_its_source() -> None:
    got = plan(flow(), {"orders": 3})
    assert got.mirrored == (MirroredTopic("orders", "sf.orders", 3),)
    assert got.to_create == (NewTopicPlan("sf.orders", 3),)
    assert (got.to_grow, got.refused, got.notes) == ((), (), ())


def test_the_flows_replication_factor_is_used_for_new_topics() -> None:
    got = plan(dataclasses.replace(flow(), replication_factor=3), {"orders": 1})
    assert got.to_create[0].replication_factor == 3


def test_a_topic_that_is_there_already_is_left_as_it_is() -> None:
    got = plan(flow(), {"orders": 3, "trades": 2}, {"sf.orders": 3, "sf.trades": 5})
    assert [pair.target for pair in got.mirrored] == ["sf.orders", "sf.trades"]
    assert got.mirrored[1].partitions == 2
    assert (got.to_create, got.to_grow, got.refused) == ((), (), ())


def test_a_known_target_follows_its_source_to_more_partitions() -> None:
    got = plan(flow(), {"orders": 5}, {"sf.orders": 3}, frozenset({"sf.orders"}))
    assert got.to_grow == (Growth("sf.orders", 3, 5),)
    assert got.mirrored == (MirroredTopic("orders", "sf.orders", 5),)


def test_a_foreign_target_with_fewer_partitions_is_never_repartitioned() -> None:
    got = plan(flow(), {"orders": 5, "trades": 1}, {"sf.orders": 3})
    assert got.to_grow == ()
    assert [pair.source for pair in got.mirrored] == ["trades"]
    (refused,) = got.refused
    assert refused.topic == "orders"
    assert "sf.orders on nyc has 3 partitions, orders has 5" in refused.reason


def test_two_topics_for_one_name_are_both_refused_and_both_named() -> None:
    got = plan(flow(naming=Merging()), {"orders-eu": 1, "orders-us": 1, "trades-eu": 1})
    assert [pair.source for pair in got.mirrored] == ["trades-eu"]
    assert [each.topic for each in got.refused] == ["orders-eu", "orders-us"]
    assert all("orders-eu, orders-us would all be called orders" in each.reason for each in got.refused)


@pytest.mark.parametrize(("length", "is_fit"), [(246, True), (247, False)])
def test_a_name_that_grows_too_long_is_refused(length: int, is_fit: bool) -> None:
    got = plan(flow(), {"x" * length: 1})
    assert len(got.mirrored) == is_fit
    if not is_fit:
        assert "250 characters; at most 249" in got.refused[0].reason


def test_an_illegal_name_is_refused() -> None:
    got = plan(flow(naming=PrefixNaming("sf", separator="/")), {"orders": 1})
    assert "sf/orders, is illegal" in got.refused[0].reason


def test_names_that_differ_only_by_dot_and_underscore_collide_with_what_is_there() -> None:
    got = plan(flow(), {"orders": 1}, {"sf_orders": 1})
    assert got.to_create == ()
    assert "sf.orders, differs from sf_orders only" in got.refused[0].reason


def test_of_two_new_topics_that_collide_the_first_is_made_and_stays() -> None:
    source = {"a.b": 1, "a_b": 1}
    first = plan(flow(naming=IdentityNaming()), source)
    assert [new.name for new in first.to_create] == ["a.b"]
    second = plan(flow(naming=IdentityNaming()), source, {"a.b": 1})
    assert second.mirrored == first.mirrored
    assert second.refused == first.refused


def test_colliding_names_that_both_exist_are_both_mirrored() -> None:
    got = plan(flow(naming=IdentityNaming()), {"a.b": 1, "a_b": 1}, {"a.b": 1, "a_b": 1})
    assert [pair.target for pair in got.mirrored] == ["a.b", "a_b"]


def test_a_pattern_that_matches_mirrors_of_the_target_leaves_them_out_with_a_note() -> None:
    got = plan(flow(), {"orders": 1, "nyc.trades": 1, "ldn.nyc.trades": 1})
    assert [pair.source for pair in got.mirrored] == ["orders"]
    assert got.refused == ()
    assert "ldn.nyc.trades, nyc.trades" in got.notes[0]
    assert "cycle" in got.notes[0]


def test_a_mirror_of_the_target_that_is_named_in_full_is_refused() -> None:
    got = plan(flow("nyc.trades", "orders"), {"orders": 1, "nyc.trades": 1})
    assert [pair.source for pair in got.mirrored] == ["orders"]
    assert [each.topic for each in got.refused] == ["nyc.trades"]


@pytest.mark.parametrize("name", ["__consumer_offsets", "causeway-flows.internal", "connect-internal", ".x"])
def test_internal_topics_never_cross_even_if_asked_for(name: str) -> None:
    assert plan(flow(), {name: 1, "a": 1}).mirrored == (MirroredTopic("a", "sf.a", 1),)
    assert plan(flow(name), {name: 1}).refused[0].topic == name


def test_what_the_broker_calls_internal_is_internal_whatever_its_name() -> None:
    assert plan_topics(flow(), [TopicFacts("secret", 1, is_internal=True)], [], ()).mirrored == ()


def test_no_match_is_a_note() -> None:
    got = plan(flow("orders", "pay-.*"), {"trades": 1})
    assert got.mirrored == ()
    assert got.notes == (
        "no topic of sf matches topics = orders, pay-.*: nothing to mirror",
        "not on sf (yet): orders",
    )


def test_a_wish_that_is_not_there_is_noted_beside_those_that_are() -> None:
    assert plan(flow("orders", "trades"), {"trades": 1}).notes == ("not on sf (yet): orders",)


def test_the_filters_exclude_wins() -> None:
    got = plan(flow(".*", exclude=("trades.*",)), {"orders": 1, "trades-eu": 1})
    assert [pair.source for pair in got.mirrored] == ["orders"]


def test_only_settings_that_someone_set_and_that_can_be_set_cross() -> None:
    def setting(
        name: str, source: SettingSource = SettingSource.TOPIC, value: str | None = "1", **more: bool
    ) -> TopicSetting:
        return TopicSetting(name=name, value=value, source=source, **more)

    carried = settings_to_carry(
        [
            setting("retention.ms"),
            setting("cleanup.policy", SettingSource.CLUSTER_DYNAMIC),
            setting("segment.bytes", SettingSource.BROKER_DYNAMIC),
            setting("flush.ms", SettingSource.BROKER_FILE),
            setting("max.message.bytes", SettingSource.DEFAULT),
            setting("message.timestamp.type"),
            setting("min.insync.replicas"),
            setting("ro", is_read_only=True),
            setting("secret", is_sensitive=True),
            setting("nothing", value=None),
        ],
        EXCLUDED,
    )
    assert carried == (("cleanup.policy", "1"), ("retention.ms", "1"), ("segment.bytes", "1"))


def test_excludes_match_whole_names() -> None:
    settings = [TopicSetting(name="retention.ms.x", value="1", source=SettingSource.TOPIC)]
    assert settings_to_carry(settings, ["retention.ms"]) == (("retention.ms.x", "1"),)


def test_the_order_of_the_clusters_answers_does_not_matter() -> None:
    forward = plan(flow(), {"a": 1, "b": 2, "c_d": 1, "c.d": 1})
    backward = plan(flow(), {"c.d": 1, "c_d": 1, "b": 2, "a": 1})
    assert forward == backward


RULES = RuleNaming((NamingRule("orders-(.*)", "eu.orders-$1"), NamingRule("trades.*", "trades")))


def test_mapping_rules_name_the_mirrors() -> None:
    got = plan(flow(naming=RULES), {"orders-a": 1, "orders-b": 2})
    assert [(pair.source, pair.target) for pair in got.mirrored] == [
        ("orders-a", "eu.orders-a"),
        ("orders-b", "eu.orders-b"),
    ]


def test_a_topic_that_no_rule_names_is_refused_with_the_remedy() -> None:
    got = plan(flow(naming=RULES), {"clicks": 1, "orders-a": 1})
    assert [pair.source for pair in got.mirrored] == ["orders-a"]
    assert [(each.topic, each.reason) for each in got.refused] == [
        ("clicks", "no rule of replication.policy.rules gives it a name on the target")
    ]
    assert "$0" in got.refused[0].remedy


def test_two_topics_that_rules_lead_to_one_name_are_both_refused() -> None:
    got = plan(flow(naming=RULES), {"trades-a": 1, "trades-b": 1})
    assert got.mirrored == ()
    assert all("trades-a, trades-b would all be called trades" in each.reason for each in got.refused)


def test_names_that_rules_make_collide_by_dot_and_underscore_too() -> None:
    rules = RuleNaming((NamingRule("a", "x.y"), NamingRule("b", "x_y")))
    got = plan(flow(naming=rules), {"a": 1, "b": 1})
    assert [new.name for new in got.to_create] == ["x.y"]
    assert "x_y, differs from x.y only" in got.refused[0].reason


@pytest.mark.parametrize(
    ("to", "rule"),
    [
        ("causeway-flows.internal", "names of internal topics"),
        ("__consumer_offsets", "names of internal topics"),
        ("x" * 250, "at most 249"),
        ("..", "only letters"),
    ],
)
def test_a_rule_never_leads_to_a_name_that_must_not_be(to: str, rule: str) -> None:
    got = plan(flow(naming=RuleNaming((NamingRule("orders", to),))), {"orders": 1})
    assert (got.mirrored, got.to_create) == ((), ())
    assert rule in got.refused[0].reason


@pytest.mark.parametrize(("replicas", "brokers", "made"), [(3, 3, True), (3, 2, False), (0, 1, True)])
def test_the_sources_replication_factor_is_followed_if_there_are_brokers_enough(
    replicas: int, brokers: int, made: bool
) -> None:
    the_flow = dataclasses.replace(flow(), replication_factor="source")
    got = plan_topics(the_flow, [TopicFacts("orders", 1, replicas=replicas)], [], (), target_brokers=brokers)
    if made:
        assert got.to_create[0].replication_factor == (replicas or None)
    else:
        assert (got.to_create, got.mirrored) == ((), ())
        assert "replication factor of 3 (as on the source), and nyc has 2 brokers" in got.refused[0].reason


def test_a_replication_factor_beyond_the_brokers_is_refused_before_it_is_tried() -> None:
    the_flow = dataclasses.replace(flow(), replication_factor=2)
    got = plan_topics(the_flow, [TopicFacts("orders", 1)], [], (), target_brokers=1)
    assert got.refused[0].remedy == "write replication.factor: 1, or -1 for nyc's own default"


@pytest.mark.parametrize("naming", [PrefixNaming, IdentityNaming])
def test_heartbeats_do_not_go_round_where_the_two_ways_call_a_cluster_differently(naming: Any) -> None:
    """Two files, or a new alias: nyc's way back calls itself `york` and sf `francisco`."""
    carry, none = Upkeep(mirror_heartbeats=True), TopicFilter(())
    there = dataclasses.replace(flow(naming=naming("sf")), upkeep=carry, topics=none)
    back = dataclasses.replace(
        flow(naming=naming("york")), source="york", target="francisco", upkeep=carry, topics=none
    )
    sf, nyc = {"heartbeats": 1}, {"heartbeats": 1}
    for _ in range(5):
        nyc |= {pair.target: 1 for pair in plan(there, sf, nyc).mirrored}
        sf |= {pair.target: 1 for pair in plan(back, nyc, sf).mirrored}
    assert sorted(nyc) == ["heartbeats", "sf.heartbeats", "sf.york.heartbeats"]
    assert sorted(sf) == ["heartbeats", "york.heartbeats", "york.sf.heartbeats"]
    assert "went round" in plan(there, sf, nyc).notes[0]
    assert plan(there, {"sf.heartbeats": 1}).mirrored, "somebody's topic on sf itself came by nobody"


def test_heartbeats_are_carried_on_and_never_back() -> None:
    carrying = dataclasses.replace(flow("orders"), upkeep=Upkeep(mirror_heartbeats=True))
    got = plan(carrying, {"orders": 1, "heartbeats": 1, "par.heartbeats": 1, "nyc.heartbeats": 1, "x": 1})
    assert [pair.target for pair in got.mirrored] == ["sf.heartbeats", "sf.orders", "sf.par.heartbeats"]
    assert "nyc.heartbeats" in got.notes[0]


def test_a_setting_that_the_target_does_not_know_is_left_out_by_its_own_word() -> None:
    new = NewTopicPlan("sf.a", 1, (("old.one", "x"), ("retention.ms", "5")))
    said = "cluster nyc: Unknown topic config name: old.one"
    fewer = without_unknown_setting(new, said)
    assert fewer is not None
    assert (fewer.settings, fewer.left_out) == ((("retention.ms", "5"),), ("old.one",))
    assert without_unknown_setting(fewer, said) is None, "the same word twice is something else"
    assert without_unknown_setting(new, "Invalid value x for configuration old.one") is None


EXPORT = "orders.diverged.20261118T040300Z"


def test_an_export_of_a_failback_is_left_out_by_patterns_and_refused_by_name() -> None:
    got = plan(flow("orders.*", naming=IdentityNaming()), {"orders": 1, EXPORT: 1})
    assert ([pair.source for pair in got.mirrored], got.refused) == (["orders"], ())
    got = plan(flow("orders", EXPORT), {"orders": 1, EXPORT: 1})
    assert [pair.source for pair in got.mirrored] == ["orders"]
    (refused,) = got.refused
    assert (refused.topic, refused.remedy) == (EXPORT, f"take {EXPORT} out of topics")
    assert "never mirrored" in refused.reason


def test_no_rule_makes_a_topic_that_looks_like_an_export() -> None:
    got = plan(flow(naming=RuleNaming((NamingRule("orders", EXPORT),))), {"orders": 1})
    assert got.mirrored == ()
    assert "only a failback gives a topic such a name" in got.refused[0].reason
