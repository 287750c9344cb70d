"""This tree's readers understand all that commit dfef452 has stored, as dfef452 itself did.

Two kinds of tests. Each fact that dfef452 read is read again, one by one (`expected.json`, `facts.py`). And
what the scenes have made is written down here by hand, or found again in the logs that were recorded beside.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from causeway.core.kernel.identity import TargetOffset
from causeway.core.model.naming import FLOWS_TOPIC
from causeway.core.offsets.offset_map import valid_ranges
from tests.golden.facts import Facts, as_plain, facts_of, flow_states, map_entries, standing
from tests.golden.of_dfef452 import EXPECTED, FOLDER, NYC, SF
from tests.golden.stored import Golden

BOTH = {"nyc": NYC, "sf": SF}
PARTS = tuple(EXPECTED["nyc"])


def differences(expected: Any, found: Any, at: str = "") -> Iterator[str]:
    """Each fact by its path."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in expected.keys() | found.keys():
            yield from differences(expected.get(key, "-"), found.get(key, "-"), f"{at}/{key}")
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for number, (one, other) in enumerate(zip(expected, found, strict=True)):
            yield from differences(one, other, f"{at}/{number}")
    elif expected != found:
        yield f"{at}: {expected!r} is read as {found!r}"


def told(golden: Golden, part: str) -> Any:
    facts = facts_of(golden)[part]
    return _without_fences(facts) if part == "flows" else facts


def expected(cluster: str, part: str) -> Any:
    facts = EXPECTED[cluster][part]
    return _without_fences(facts) if part == "flows" else facts


def _without_fences(flows: Facts) -> Facts:
    """They have a test of their own: later versions know more fences of one flow."""
    return {name: {k: v for k, v in facts.items() if k != "fences"} for name, facts in flows.items()}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("cluster", BOTH)
def test_each_fact_is_read_again(cluster: str, part: str) -> None:
    assert sorted(differences(expected(cluster, part), told(BOTH[cluster], part))) == []


@pytest.mark.parametrize("part", ["flows", "maps", "journal", "inherited"])
@pytest.mark.parametrize("cluster", BOTH)
def test_each_fact_is_read_again_once_the_topics_were_compacted(cluster: str, part: str) -> None:
    compacted = Golden(FOLDER / cluster, is_compacted=True)
    assert sorted(differences(expected(cluster, part), told(compacted, part))) == []


@pytest.mark.parametrize("is_compacted", [False, True])
@pytest.mark.parametrize("cluster", BOTH)
def test_a_fence_that_stood_stands_and_what_was_open_is_open(cluster: str, is_compacted: bool) -> None:
    flows = facts_of(Golden(FOLDER / cluster, is_compacted=is_compacted))["flows"]
    for name, facts in EXPECTED[cluster]["flows"].items():
        found = flows[name]["fences"]
        assert all(fence in found for fence in facts["fences"]), name
        assert bool(found) == bool(facts["fences"]), name


# By hand: what the scenes have made


def run_of(cluster: str, flow: str) -> str:
    """The journal's name for the flow's newest failover or failback."""
    journal = EXPECTED[cluster]["journal"]
    found = [each for kind in ("runs", "failbacks") for each in journal[kind] if each["flow"] == flow]
    return str(found[-1]["run"])


def fences_of(golden: Golden) -> dict[str, list[tuple[str, str]]]:
    return {
        flow: [(fence.by, fence.because) for fence in standing(state)]
        for flow, state in flow_states(golden).items()
        if standing(state)
    }


def test_the_fences_that_stand() -> None:
    found = fences_of(NYC)
    assert ("amy", "a golden record") in found.pop("shut_twice"), "dfef452 forgot the operator's own below it"
    assert found == {
        "shut": [("ops", "maintenance of shut")],
        "shut_above": [("ops", "maintenance of shut_above")],
        "cut_short": [("amy", "a golden record")],
        "renamed_old": [("amy", "renamed to renamed_new: a golden record")],
        "failed_over": [("a test", f"failover {run_of('nyc', 'failed_over')}")],
        "broken_off": [("a test", f"failover {run_of('nyc', 'broken_off')}")],
        "away": [("a test", f"failback {run_of('nyc', 'away')}")],
        "rebuilt": [("a test", f"failback {run_of('nyc', 'rebuilt')}")],
    }
    words = f"stands by since failback {run_of('nyc', 'home')}: home goes on"
    assert fences_of(SF) == {"home_back": [("a test", words)]}


def test_a_commands_own_fence_is_distinguished_from_an_operators() -> None:
    own = {flow: [f.is_at_work for f in standing(state)] for flow, state in flow_states(NYC).items()}
    assert (own["cut_short"], own["shut"], own["shut_above"]) == ([True], [False], [False])


def test_lanes_and_runs() -> None:
    flows = facts_of(NYC)["flows"]
    lanes = {
        flow: [facts["run"]["lanes"], facts["most_lanes"], facts["lanes_varied"]]
        for flow, facts in flows.items()
    }
    assert {flow: each for flow, each in lanes.items() if each != [3, 3, False]} == {
        "varied": [2, 4, True],
        "settled": [1, 1, False],
        "repeated": [1, 1, False],
        "maintained": [1, 1, False],
        "sf_to_nyc": [16, 16, False],
    }
    assert [flow for flow, facts in flows.items() if facts["running"]] == ["held"]
    assert flows["held"]["last_sign_ms"] > flows["held"]["run"]["since_ms"]


def test_what_people_have_recorded() -> None:
    flows = facts_of(NYC)["flows"]
    gaps = [
        [gap["kind"], gap["source"], gap["first"], gap["end"], gap["by"]] for gap in flows["gaps"]["gaps"]
    ]
    assert gaps == [["UNCOPIED", "gaps-taken-0", 10, 15, "amy"], ["UNSAID", "gaps-cut-0", 10, 20, "amy"]]
    by_hand = {
        flow: [[entry["how"], entry["places"]] for entry in facts["set_by_hand"]]
        for flow, facts in flows.items()
        if facts["set_by_hand"]
    }
    assert by_hand == {
        "adopted": [["adopt", [[0, 30, 21, 20]]]],
        "shut_above": [["adopt", [[0, 5, 11, 10]]]],
        "gaps": [["accept-gap", [[0, 10, 21, -1]]]],
        "restarted": [["restart-topic", [[0, 0, 11, -1], [1, 0, 0, -1]]]],
        "reconciled": [["reconcile", [[0, 20, 24, -1]]]],
        "renamed_new": [["reconcile", [[0, 20, 21, -1]]]],
        "home": [["adopt", [[0, 30, 31, -1], [1, 30, 31, -1]]]],
        "sf_to_nyc": [["import-mm2", [[0, 300, 300, -1]]]],
    }
    assert [topic for topic, *_ in flows["restarted"]["forgotten"]] == ["restarted-mirror"]
    (why,) = flows["still"]["parked"]["partitions"].items()
    assert (why[0], why[1][0]) == ("still-foreign-0", "foreign writer on the target")
    assert [acl for acl, _ in flows["ruled"]["acls"]] == [
        "Allow User:bob to Read sf.ruled-a",
        "Deny User:dave to Read sf.ruled-a",
    ]
    assert [[place, to] for place, _, to in flows["settled"]["settling"]] == [
        ["sf.settled-a-0", 54],
        ["sf.settled-a-1", 54],
    ]


def test_known_pairs_are_the_topics_that_are_there() -> None:
    checked = 0
    for here, there in ((SF, NYC), (NYC, SF)):
        for flow, state in flow_states(there).items():
            assert [state.source_cluster_id, state.target_cluster_id] == [here.cluster_id, there.cluster_id]
            for target, pair in state.pairs.items():
                ids = here.topics[pair.source_topic]["id"], there.topics[target]["id"]
                assert tuple(map(str, pair.ids)) == ids, (flow, target)
                checked += 1
    assert checked == 41


def test_the_journal() -> None:
    journal = facts_of(NYC)["journal"]
    assert [[run["flow"], run["status"], run["is_agreed"]] for run in journal["runs"]] == [
        ["failed_over", "done", True],
        ["rolled_back", "given up", False],
        ["rolled_back", "rolled back", True],
        ["broken_off", "begun", True],
        ["away", "done", True],
        ["home", "done", True],
        ["rebuilt", "done", True],
    ]
    by_flow = {run["flow"]: run for run in journal["runs"]}
    assert by_flow["failed_over"]["left_to_apply"] == {"commit": {}, "forget": {}, "astray": []}
    assert list(by_flow["broken_off"]["left_to_apply"]["commit"]) == ["broken-off.middle"]
    assert by_flow["failed_over"]["left_to_roll_back"] == {
        "commit": {"failed-over.middle": {"sf.failed-over-0": [7, ""]}},
        "forget": {
            "failed-over.ahead": ["sf.failed-over-0", "sf.failed-over-1"],
            "failed-over.middle": ["sf.failed-over-1"],
        },
        "astray": [],
    }
    assert [[back["flow"], back["reverse"], back["way"], back["step"]] for back in journal["failbacks"]] == [
        ["away", "away_back", "resume", "returning"],
        ["home", "home_back", "resume", "home"],
        ["rebuilt", "rebuilt_back", "rebuild", "returning"],
    ]
    assert [drill["flow"] for drill in journal["drills"]] == ["drilled"]


def test_stamps_and_checkpoints_lead_to_the_record_that_a_group_reads_next() -> None:
    stamps = facts_of(NYC)["stamps"]
    places = {
        (group, place): [told["offset"], told["source_next"], told["metadata"]]
        for group, of_group in stamps.items()
        for place, told in of_group.items()
        if "flow" in told
    }
    assert places == {
        ("groups-a.reader", "sf.groups-a-0"): [38, 35, "own"],
        ("groups-a.reader", "sf.groups-a-1"): [64, 59, "own"],
        ("groups-a.at-the-end", "sf.groups-a-0"): [65, 60, ""],
    }
    for (_, place), (at, source_at, _) in places.items():
        assert next_value(NYC, place, at) == next_value(SF, place.removeprefix("sf."), source_at)
    checkpoints = facts_of(NYC)["checkpoints"]["sf.checkpoints.internal"]
    told_of_groups = [each for each in checkpoints if each[0].startswith("groups-a.")]
    assert len(told_of_groups) == 6
    for _, place, source_at, at, _ in told_of_groups:
        assert next_value(NYC, place, at) == next_value(SF, place.removeprefix("sf."), source_at)


def next_value(golden: Golden, place: str, at: int) -> Any:
    topic, _, partition = place.rpartition("-")
    return next((value for offset, _, value in golden.logs[topic][partition] if offset >= at), None)


# The map, held against both logs


MAPPED = {
    "sf.plain-orders-0": 120,
    "sf.plain-orders-1": 6,
    "sf.latest-clicks-0": 5,
    "sf.since-logs-0": 8,
    "sf.plain-timeless-0": 4,
    "sf.settled-a-0": 60,
    "sf.settled-a-1": 60,
    "sf.repeated-a-0": 60,
    "sf.repeated-a-1": 60,
    "sf.quarantined-a-0": 9,
    "sf.maintained-a-0": 520,
    "sf.adopted-a-0": 10,
    "sf.adopted-a-2": 4,
    "sf.gaps-cut-0": 3,
    "sf.gaps-taken-0": 5,
    "sf.restarted-source-0": 6,
    "sf.reconciled-a-0": 10,
    "sf.taken-0": 20,
}
"""How many records of some mirrors the map translates back to the source, since their positions were last
set."""


def test_the_map_leads_each_record_to_its_own_on_the_source() -> None:
    counted: dict[str, int] = {}
    for here, there in ((SF, NYC), (NYC, SF)):
        counted |= _counted(here, there)
    assert {target: counted.get(target) for target in MAPPED} == MAPPED
    assert sum(counted.values()) > 1_500


def _counted(here: Golden, there: Golden) -> dict[str, int]:
    states = flow_states(there)
    pairs = {topic: pair for state in states.values() for topic, pair in state.pairs.items()}
    counted: dict[str, int] = {}
    for topic in there.topics_named("causeway-offset-map."):
        entries = map_entries(there, topic)
        for target in entries.targets:
            pair = pairs[target.topic]
            if target.topic.endswith("heartbeats"):
                continue
            values = {offset: value for offset, _, value in there.logs[target.topic][str(target.partition)]}
            sources = {
                offset: value for offset, _, value in here.logs[pair.source_topic][str(target.partition)]
            }
            ours = [
                run for run in entries.runs(target) if (run.source_topic_id, run.target_topic_id) == pair.ids
            ]
            for run in valid_ranges(ours):
                if run.generation < pair.adopted_at:
                    continue  # of before somebody set the position
                for at in map(TargetOffset, range(run.target_first, run.target_next)):
                    assert sources.get(run.source_of(at), values[at]) == values[at], (target, at)
                    counted[str(target)] = counted.get(str(target), 0) + (run.source_of(at) in sources)
    return counted


GONE_ON = {f"causeway.{flow}" for flow in ("still", "away", "rebuilt", "renamed_old", "shut_above")}
"""Parked, or set back, or gone on with by another flow."""


def test_positions_stand_where_the_logs_end() -> None:
    """Of flows that were caught up: nothing is on the source from there on, and nothing on the target."""
    positions = facts_of(NYC)["positions"]
    behind = {"causeway.failed_over", "causeway.broken_off", "causeway.drilled"}
    checked = 0
    for group, of_group in positions.items():
        for place, told in of_group.items():
            target, _, partition = place.rpartition("-")
            source = target.removeprefix("sf.")
            if source not in SF.logs or str(SF.topics[source]["id"]) != told["source_topic_id"]:
                continue
            values = [v for o, _, v in SF.logs[source][partition] if o >= told["source_next"]]
            mirrored = [v for o, _, v in NYC.logs[target][partition] if o >= told["target_next"]]
            if group in behind and partition == "0":
                assert values == ["0", "1", "2", "3"], (group, place)
            elif group in (
                "causeway.still",
                "causeway.away",
                "causeway.rebuilt",
                "causeway.renamed_old",
                "causeway.shut_above",
            ):
                continue  # parked, or gone on by another flow
            else:
                assert (values, mirrored) == ([], []), (group, place)
            checked += 1
    assert checked > 30


# What was recorded at all


def test_every_kind_of_record_was_recorded() -> None:
    """A format that no scene writes would be read by nobody here."""
    kinds = {(r.key or b"").split(b"/")[1].decode() for g in (NYC, SF) for r in g.records(FLOWS_TOPIC)}
    assert kinds == {
        *("run", "alive", "ended", "parked", "fence", "lift", "claimed"),
        *("pairs", "adopted", "forgotten", "gap", "set", "settling", "clusters", "acl", "acl_gone"),
    }
    told = {json.loads(r.key or b"")[1] for r in NYC.records("causeway-failovers.internal")}
    assert told == {"offsets", "begun", "agreed", "done", "given up", "rolled back", "failback", "drill"}
    maps = facts_of(NYC)["maps"]["causeway-offset-map.sf.internal"]
    assert [target for target, entries in maps.items() if any(e["merged"] for e in entries)] == [
        "sf.maintained-a-0"
    ]
    assert [r for r in NYC.records("causeway-offset-map.sf.internal") if r.value is None]
    holes = [run for e in maps["sf.plain-ledger-0"] for run in e["runs"] if len(run["segments"]) > 1]
    assert holes
    assert facts_of(NYC)["positions"]["causeway.settled"]["sf.settled-a-0"]["records"] == 60


def test_a_wrong_byte_would_be_seen() -> None:
    """The comparison itself: one fact of many, three levels down."""
    facts = as_plain(EXPECTED["nyc"]["maps"])
    entry = facts["causeway-offset-map.sf.internal"]["sf.plain-orders-0"][0]["runs"][0]
    entry["source"][1] += 1
    (found,) = differences(EXPECTED["nyc"]["maps"], facts)
    assert found.startswith("/causeway-offset-map.sf.internal/sf.plain-orders-0/0/runs/0/source/1: 10 ")
