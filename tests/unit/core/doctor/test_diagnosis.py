"""Facts to findings, without a broker: what can't be made wrong in a lab (clocks, old versions) above all."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest

from causeway.core.doctor.brokers import judge_brokers, judge_source_factors
from causeway.core.doctor.clusters import judge_both_clocks, judge_clock, judge_identity
from causeway.core.doctor.excess_rights import judge_writers
from causeway.core.doctor.finding import Diagnosis, Finding, Result, failed, passed, some, together, warn
from causeway.core.doctor.names import judge_clashes, judge_leftovers
from causeway.core.doctor.rehearsal import contradicted, got_in, left_behind
from causeway.core.doctor.topics import TopicPair, defaults_of, judge_own_topics, judge_topics
from causeway.core.doctor.versions import judge_transactions, judge_versions
from causeway.core.kernel.cluster_facts import (
    UNLIMITED,
    BrokerFacts,
    ClockReading,
    ClusterView,
    Grant,
    TopicView,
    middle_reading,
)
from causeway.core.kernel.errors import BadInput, NotAuthorized, ProtocolFault
from causeway.core.model.naming import FLOWS_TOPIC, IdentityNaming, PrefixNaming
from causeway.core.model.topic_filter import TopicFilter
from causeway.core.state.flow_state import FlowState
from tests.support import builders

FLOW = builders.flow(topics=TopicFilter(("orders",)))
NEW = {0: 13, 1: 18, 2: 11, 3: 13, 9: 10, 22: 5, 23: 4, 24: 5, 26: 5, 28: 5, 61: 0}
GOOD = {
    "offsets.retention.minutes": "10080",
    "transactional.id.expiration.ms": "604800000",
    "transaction.max.timeout.ms": "900000",
    "auto.create.topics.enable": "false",
    "unclean.leader.election.enable": "false",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "transaction.partition.verification.enable": "true",
}


def nyc(brokers: int = 3, apis: dict[int, int] | None = None, **changed: str) -> ClusterView:
    settings = GOOD | {name.replace("_", "."): value for name, value in changed.items()}
    return ClusterView(
        alias="nyc",
        cluster_id="n",
        principal="User:causeway",
        brokers=tuple(
            BrokerFacts(node_id=node, api_versions=NEW | (apis or {}), settings=settings)
            for node in range(1, brokers + 1)
        ),
        finalized={"transaction.version": 2},
        supported={"transaction.version": 2},
    )


def results(findings: list[Finding]) -> set[str]:
    return {
        f"{each.result} {each.finding.split(':')[0].split(' is ')[0]}" for each in findings if each.remedy
    }


# Findings


def test_only_failures_make_the_exit_code_and_the_gravest_wins() -> None:
    found = (
        passed("a", "sf", "well"),
        warn("b", "sf", "hm", "do"),
        failed("c", "sf", "no", "do", BadInput),
        failed("d", "sf", "no", "do", NotAuthorized),
    )
    assert Diagnosis(flow="f", findings=found[:2]).exit_code == 0
    assert Diagnosis(flow="f", findings=found[:3]).exit_code == 2
    assert Diagnosis(flow="f", findings=found).exit_code == 3
    worst = Diagnosis(flow="f", findings=(*found, failed("e", "sf", "no", "do", ProtocolFault)))
    assert worst.exit_code == 6
    printed = worst.as_dict()
    assert (printed["healthy"], printed["passed"], printed["warn"], printed["failed"]) == (False, 1, 1, 3)


def test_long_lists_are_cut_and_say_so_and_no_command_comes_twice() -> None:
    assert some(["c", "b", "a"]) == "a, b, c"
    assert some([*"edcba"]) == "a, b, c and 2 more"
    assert together(["x", "y", "x"]) == "x; y"


# Versions


def test_one_old_broker_of_three_is_named() -> None:
    view = nyc()
    old = replace(view.brokers[1], api_versions=NEW | {24: 3})
    found = judge_versions(replace(view, brokers=(view.brokers[0], old, view.brokers[2])), is_target=True)
    assert (found.result, found.exit_code) == (Result.FAILED, 3)
    assert found.finding == "broker 2 takes AddPartitionsToTxn 3, 4 is needed"
    assert found.remedy == "upgrade nyc to Kafka 3.6 or newer, every broker of it"


def test_a_source_needs_less_than_a_target() -> None:
    assert judge_versions(nyc(apis={24: 3}), is_target=False).result is Result.PASSED
    assert judge_versions(nyc(apis={1: 12}), is_target=False).result is Result.FAILED
    assert judge_versions(nyc(apis={61: -1}), is_target=True).result is Result.FAILED


@pytest.mark.parametrize(
    ("finalized", "supported", "verification", "result"),
    [
        (2, 2, "false", Result.PASSED),
        (0, 0, "true", Result.PASSED),
        (0, 0, "false", Result.FAILED),
        (1, 2, "true", Result.WARN),
        (1, 2, "false", Result.FAILED),
    ],
)
def test_transactions_are_v2_or_v1_with_verification(
    finalized: int, supported: int, verification: str, result: Result
) -> None:
    view = nyc(transaction_partition_verification_enable=verification)
    view = replace(
        view, finalized={"transaction.version": finalized}, supported={"transaction.version": supported}
    )
    assert judge_transactions(view).result is result


def test_v1_whose_verification_can_not_be_seen_is_not_taken_for_granted() -> None:
    view = nyc()
    blind = tuple(replace(each, settings=None) for each in view.brokers)
    found = judge_transactions(replace(view, brokers=blind, finalized={}, supported={}))
    assert found.result is Result.WARN


def test_v1_on_a_broker_that_never_heard_of_verification_is_refused() -> None:
    view = nyc()
    old = {name: value for name, value in GOOD.items() if "verification" not in name}
    one_old = (*view.brokers[:2], replace(view.brokers[2], settings=old))
    found = judge_transactions(replace(view, brokers=one_old, finalized={}, supported={}))
    assert (found.result, found.exit_code) == (Result.FAILED, 3)
    assert "older than Kafka 3.6" in found.finding


# Identity and clocks


def test_identity() -> None:
    known = FlowState(source_cluster_id="s", target_cluster_id="n")
    assert judge_identity(FLOW, "s", "n", known).result is Result.PASSED
    assert judge_identity(FLOW, "s", "n", FlowState()).result is Result.PASSED
    assert judge_identity(FLOW, "s", "n", None).result is Result.WARN
    assert judge_identity(FLOW, "n", "n", FlowState()).exit_code == 2
    assert judge_identity(FLOW, "n", "n", None).exit_code == 2
    for source, target in (("x", "n"), ("s", "x")):
        found = judge_identity(FLOW, source, target, known)
        assert (found.exit_code, "cluster x" in found.finding) == (2, True)


def at(ahead_ms: int, round_trip_ms: int = 10) -> ClockReading:
    return ClockReading(ahead_ms=ahead_ms, round_trip_ms=round_trip_ms)


@pytest.mark.parametrize(
    ("reading", "result", "said"),
    [
        (at(0), Result.PASSED, "within a second of this machine's clock"),
        (at(-4_000), Result.PASSED, "4.0 s earlier than this machine's clock"),
        (at(6_000), Result.WARN, "6.0 s ahead of this machine's clock"),
        (at(-7_200_000), Result.WARN, "7,200.0 s earlier than this machine's clock"),
        (at(6_000, 4_000), Result.PASSED, "6.0 s ahead of this machine's clock"),
    ],
)
def test_a_clock_is_judged_beyond_what_the_question_took(
    reading: ClockReading, result: Result, said: str
) -> None:
    found = judge_clock(replace(nyc(), clock=reading))
    assert (found.result, found.finding) == (result, said)


def test_a_clock_that_can_not_be_seen_says_the_grant() -> None:
    found = judge_clock(nyc())
    grant = "kafka-acls.sh --add --allow-principal User:causeway --operation Describe --cluster"
    assert (found.result, found.remedy) == (Result.WARN, grant)


@pytest.mark.parametrize(
    ("source", "target", "most_ahead_ms", "result"),
    [
        (at(0), at(0), 3_600_000, Result.PASSED),
        (at(3_000), at(-3_000), 3_600_000, Result.WARN),
        (at(0), at(-3_700_000), 3_600_000, Result.FAILED),
        (at(0), at(3_700_000), 3_600_000, Result.WARN),
        (at(0), at(-3_700_000), UNLIMITED, Result.WARN),
    ],
)
def test_a_target_whose_clock_is_early_refuses_fresh_records(
    source: ClockReading, target: ClockReading, most_ahead_ms: int, result: Result
) -> None:
    found = judge_both_clocks(FLOW, source, target, most_ahead_ms)
    assert found is not None
    assert found.result is result


def test_a_reading_is_taken_in_the_middle_of_the_question() -> None:
    assert middle_reading(1_500, 1_000, 2_000) == at(0, 1_000)
    assert judge_both_clocks(FLOW, None, at(0), UNLIMITED) is None


# Brokers


def test_good_settings_of_three_brokers_pass() -> None:
    assert [each for each in judge_brokers(FLOW, nyc(), {}) if each.result is not Result.PASSED] == []


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"offsets_retention_minutes": "1440"}, "FAILED offsets.retention.minutes"),
        ({"offsets_retention_minutes": "2880"}, "WARN offsets.retention.minutes"),
        ({"transactional_id_expiration_ms": "3600000"}, "WARN transactional.id.expiration.ms"),
        ({"transaction_max_timeout_ms": "59999"}, "FAILED transaction.max.timeout.ms"),
        ({"auto_create_topics_enable": "true"}, "WARN auto.create.topics.enable"),
        ({"unclean_leader_election_enable": "true"}, "WARN unclean.leader.election.enable"),
        ({"offsets_topic_replication_factor": "2"}, "WARN __consumer_offsets will have 2 replicas"),
        ({"offsets_topic_replication_factor": "4"}, "FAILED __consumer_offsets will have 4 replicas"),
        ({"transaction_state_log_replication_factor": "2"}, "WARN __transaction_state will have 2 replicas"),
        ({"transaction_state_log_min_isr": "4"}, "FAILED transaction.state.log.min.isr"),
        ({"min_insync_replicas": "1"}, "WARN new topics get 3 replicas, min.insync.replicas"),
        ({"min_insync_replicas": "4"}, "FAILED new topics get 3 replicas, min.insync.replicas"),
        ({"default_replication_factor": "4"}, "FAILED new topics get 4 replicas, min.insync.replicas"),
    ],
)
def test_each_broker_setting_by_itself(changed: dict[str, str], line: str) -> None:
    found = judge_brokers(FLOW, nyc(3, None, **changed), {})
    (bad,) = [each for each in found if each.result is not Result.PASSED]
    assert f"{bad.result} {bad.finding}".startswith(line)


def test_one_broker_that_differs_is_enough() -> None:
    view = nyc()
    odd = replace(view.brokers[2], settings=GOOD | {"unclean.leader.election.enable": "true"})
    found = judge_brokers(FLOW, replace(view, brokers=(*view.brokers[:2], odd)), {})
    assert results(found) == {"WARN unclean.leader.election.enable"}


def test_what_a_topic_has_counts_more_than_what_it_would_be_made_with() -> None:
    made = {"__consumer_offsets": TopicView(partitions=50, fewest_replicas=1, settings=None)}
    (bad,) = [each for each in judge_brokers(FLOW, nyc(), made) if each.result is not Result.PASSED]
    assert bad.finding.startswith("__consumer_offsets has 1 replica on 3 brokers")
    assert bad.remedy.startswith("kafka-reassign-partitions.sh")


@pytest.mark.parametrize(
    ("factor", "replicas", "said"),
    [
        ("source", {"a": 3, "b": 1}, "PASSED 2 mirrors to be made as on sf (replication.factor: source)"),
        ("source", {"a": 4}, "FAILED 1 mirror to be made as on sf (replication.factor: source)"),
        ("source", {}, None),
        (None, {"a": 4}, None),
        (2, {"a": 4}, None),
    ],
)
def test_mirrors_that_get_their_sources_factor_need_as_many_brokers(
    factor: int | Literal["source"] | None, replicas: dict[str, int], said: str | None
) -> None:
    found = judge_source_factors(replace(FLOW, replication_factor=factor), nyc(), replicas)
    assert len(found) == (said is not None)
    for each in found:
        assert f"{each.result} {each.finding}".startswith(str(said))
        is_beyond = "the cluster has 3 brokers: no mirror of a can be made" in each.finding
        assert is_beyond is (4 in replicas.values())


# Topics


def pair(here: dict[str, str], there: dict[str, str]) -> TopicPair:
    return TopicPair(source="orders", target="sf.orders", source_settings=here, target_settings=there)


def test_what_a_new_topic_gets_follows_from_its_brokers_settings() -> None:
    assert defaults_of({"log.retention.hours": "168"})["retention.ms"] == "604800000"
    assert (
        defaults_of({"log.retention.hours": "168", "log.retention.minutes": "5"})["retention.ms"] == "300000"
    )
    assert defaults_of({"log.retention.minutes": "5", "log.retention.ms": "-1"})["retention.ms"] == "-1"
    assert defaults_of({"message.max.bytes": "7"}) == {"max.message.bytes": "7"}


@pytest.mark.parametrize(
    ("here", "there", "is_red"),
    [
        ({"retention.ms": "-1"}, {"retention.ms": "604800000"}, {"retention"}),
        ({"retention.ms": "604800000"}, {"retention.ms": "-1"}, set()),
        ({"retention.ms": "604800000"}, {"message.timestamp.before.max.ms": "604799999"}, {"old records"}),
        ({"message.timestamp.after.max.ms": "3600000"}, {}, set()),
        ({}, {"message.timestamp.after.max.ms": "3600000"}, {"records from the future"}),
        ({"compression.type": "zstd"}, {"compression.type": "zstd"}, set()),
        ({"cleanup.policy": "compact,delete"}, {"cleanup.policy": "delete,compact"}, set()),
        ({"cleanup.policy": "compact"}, {"cleanup.policy": "compact", "retention.ms": "1"}, set()),
        ({"retention.ms": "86399999"}, {"retention.ms": "86399999"}, {"retention of the source"}),
    ],
)
def test_settings_of_a_pair(here: dict[str, str], there: dict[str, str], is_red: set[str]) -> None:
    found = judge_topics(FLOW, [pair(here, there)])
    assert {each.finding.split(":")[0] for each in found if each.result is not Result.PASSED} == is_red
    assert len(found) == 9


def test_many_topics_give_one_finding_for_each_rule() -> None:
    pairs = [replace(pair({}, {"compression.type": "gzip"}), source=f"t{n}") for n in range(9)]
    (bad,) = [each for each in judge_topics(FLOW, pairs) if each.result is not Result.PASSED]
    assert bad.finding.endswith("; so t1, t2, t3 and 5 more")


@pytest.mark.parametrize(
    ("topic", "result"),
    [
        (
            TopicView(partitions=1, fewest_replicas=3, settings={"cleanup.policy": "compact"}),
            Result.PASSED,
        ),
        (
            TopicView(partitions=2, fewest_replicas=3, settings={"cleanup.policy": "compact"}),
            Result.FAILED,
        ),
        (
            TopicView(partitions=1, fewest_replicas=3, settings={"cleanup.policy": "delete"}),
            Result.FAILED,
        ),
        (
            TopicView(
                partitions=1,
                fewest_replicas=3,
                most_replicas=3,
                settings={"cleanup.policy": "compact,delete"},
            ),
            Result.FAILED,
        ),
        (
            TopicView(partitions=1, fewest_replicas=1, settings={"min.insync.replicas": "2"}),
            Result.FAILED,
        ),
        (TopicView(partitions=1, fewest_replicas=3, settings=None), Result.WARN),
    ],
)
def test_the_flows_own_topics(topic: TopicView, result: Result) -> None:
    found, _ = judge_own_topics(FLOW, nyc(), {FLOWS_TOPIC: topic})
    assert found.result is result


# Names


def test_flows_that_would_write_the_same_topics() -> None:
    def clash(**changes: object) -> list[Finding]:
        other = replace(FLOW, name="other", **changes)  # type: ignore[arg-type]
        return [each for each in judge_clashes(FLOW, [FLOW, other], ["sf.orders"]) if each.remedy]

    assert [each.exit_code for each in clash()] == [2]
    assert clash(target="par") == []
    assert clash(topics=TopicFilter(("clicks",))) == []
    assert clash(source="ams", naming=PrefixNaming("ams")) == []
    by_name = {"source": "ams", "naming": IdentityNaming(), "topics": TopicFilter(("sf.*",))}
    assert [each.result for each in clash(**by_name)] == [Result.WARN]


def test_leftovers_are_known_by_their_exact_names() -> None:
    ours, other = "causeway-doctor.0a1b.internal", "causeway-doctor.me.internal"
    found = judge_leftovers("nyc", [ours, other, "orders"])
    assert found is not None
    assert (ours in found.finding, other in found.finding) == (True, False)
    assert judge_leftovers("nyc", [other]) is None


# Rights of others, and the rehearsal


def test_other_writers() -> None:
    def judged(name: str, *, is_prefix: bool = False, operation: int = 4) -> Result | None:
        grant = Grant(
            principal="User:x", resource_type=2, name=name, is_prefix=is_prefix, operation=operation
        )
        found = judge_writers(replace(nyc(), grants=(grant,)), ["sf.orders"])
        return found.result if found else None

    assert judged("sf.orders") is Result.WARN
    assert judged("sf.orders", operation=2) is Result.WARN
    assert judged("sf.", is_prefix=True) is Result.WARN
    assert judged("*") is Result.WARN
    assert judged("sf.") is Result.PASSED
    assert judged("sf.orders", operation=3) is Result.PASSED
    assert judge_writers(replace(nyc(), has_authorizer=False), ["sf.orders"]) is None
    unseen = judge_writers(nyc(), ["sf.orders"])
    assert unseen is not None
    assert unseen.result is Result.WARN


def test_what_contradicts_the_protocol_stops_everything() -> None:
    assert contradicted("nyc", "x").exit_code == 6
    assert got_in("nyc", "a partition", 2).exit_code == 6
    on_v1 = got_in("nyc", "a partition", 1)
    assert (on_v1.exit_code, on_v1.remedy) == (
        3,
        "set transaction.partition.verification.enable=true on every broker of nyc",
    )


def test_what_is_still_there_is_no_failure_but_reported_with_the_command() -> None:
    (found,) = left_behind(
        "nyc", "scratch", [NotAuthorized("topic scratch", rule="no right", remedy="grant")]
    )
    assert found.result is Result.WARN
    assert found.remedy == "grant; kafka-topics.sh --delete --topic scratch"
