"""What tasks did to groups, and the why report of it."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from dataclasses import replace

from causeway.core.groups.report import GroupsReport, report_lines
from causeway.core.groups.sync_rules import Committed, Outcome, Verdict
from causeway.core.groups.task import (
    GroupTask,
    GroupTaskResult,
    cut_task,
    due,
    last_synced,
    together,
    told,
)
from causeway.core.groups.unprotected import Unprotected
from causeway.core.kernel.identity import TopicPartition
from causeway.core.model.group_filter import FlowGroups
from causeway.core.model.topic_filter import TopicFilter
from tests.support import builders


def verdict(group: str, partition: int, outcome: Outcome, why: str = "") -> Verdict:
    return Verdict(
        group=group,
        source=TopicPartition("orders", partition),
        target=TopicPartition("sf.orders", partition),
        outcome=outcome,
        source_next=10,
        target_next=5,
        commit=Committed(5) if outcome is Outcome.SYNCED else None,
        why=why,
    )


def report(*verdicts: Verdict, refused: dict[str, str] | None = None, idle: str = "idle") -> GroupsReport:
    counts, rows = told(verdicts, 100)
    names = sorted({v.group for v in verdicts} | {idle} | set(refused or {}))
    return GroupsReport(
        flow="sf_to_nyc",
        began_at="2026-11-19T00:00:00Z",
        seconds=1.0,
        wrote=True,
        syncs_offsets=True,
        groups=tuple(names),
        excluded={"causeway.x": "Causeway's own", "connect-a": "groups.exclude has connect-.*"},
        result=GroupTaskResult(counts=counts, rows=rows, refused=refused or {}, commits=1),
    )


def test_who_returned_and_waits_for_a_sync_is_named_until_one_has_been() -> None:
    home = replace(verdict("a", 0, Outcome.SYNCED), stands_as_it_left=True)
    own = verdict("b", 0, Outcome.MOVED_ON)
    looked = replace(report(home, own), wrote=False)
    assert looked.unprotected == Unprotected(waiting=("a",), own=("b",))
    lines = [line for line in report_lines(looked) if line.startswith("NOT PROTECTED")]
    assert [line.split(":")[0] for line in lines] == [
        "NOT PROTECTED 1 group (a)",
        "NOT PROTECTED 1 group (b)",
    ]
    assert report(home, own).unprotected == Unprotected(own=("b",))
    refused = replace(home, outcome=Outcome.REFUSED, commit=None)
    assert report(refused).unprotected == Unprotected(waiting=("a",))


def test_each_group_and_partition_has_its_reason() -> None:
    found = report(
        verdict("a", 0, Outcome.SYNCED),
        verdict("a", 1, Outcome.OLDER, "the map begins with 20"),
        verdict("b", 0, Outcome.ACTIVE),
        refused={"c": "no right to Describe"},
    )
    assert found.outcomes == {
        Outcome.SYNCED: 1,
        Outcome.OLDER: 1,
        Outcome.ACTIVE: 1,
        Outcome.NO_COMMITS: 1,
        Outcome.REFUSED: 1,
    }
    document = json.loads(json.dumps(found.as_dict()))
    assert {row["group"]: row["outcomes"] for row in document["groups"]}["a"] == {
        "older than the map": 1,
        "synced": 1,
    }
    assert {(row["group"], row["source"], row["outcome"]) for row in document["partitions"]} >= {
        ("a", "orders-1", "older than the map"),
        ("a", "orders-0", "synced"),
    }
    lines = list(report_lines(found))
    assert "a: 1 older than the map, 1 synced (as orders-1: the map begins with 20)" in lines
    assert "c: 1 refused: no right to Describe" in lines
    assert not any(line.startswith("idle:") for line in lines), "nothing has to be done about it"


def test_what_was_only_looked_at_is_not_synced() -> None:
    verdicts = [verdict("a", 0, Outcome.SYNCED), verdict("b", 0, Outcome.AHEAD)]
    there = replace(verdict("a", 1, Outcome.SYNCED), commit=None, synced_ms=1_790_000_000_000)
    counts, rows = told([*verdicts, there], 100)
    result = GroupTaskResult(
        counts=counts, rows=rows, due=due([*verdicts, there]), synced_ms=last_synced([*verdicts, there])
    )
    looked = replace(report(), wrote=False, groups=("a", "b"), result=result)
    assert looked.in_words("a") == {"synced": 1, "would be synced": 1}
    assert looked.in_words("b") == {"ahead of the mirror": 1}
    assert looked.as_dict()["outcomes"] == {"ahead of the mirror": 1, "synced": 2}, "as machines know them"
    assert looked.as_dict()["would_commit"] == 1
    assert (looked.last_synced("a"), looked.last_synced("b")) == ("2026-09-21T14:13:20Z", None)
    lines = list(report_lines(looked, names_excluded=False))
    assert "looked only: nothing was written, 1 offset would be committed" in lines[0]
    assert lines[1:] == ["1 ahead of the mirror", "1 synced", "1 would be synced"]
    assert replace(looked, wrote=True).in_words("a") == {"synced": 2}


def test_an_excluded_group_is_named_with_what_excludes_it() -> None:
    found = report(verdict("a", 0, Outcome.SYNCED))
    rows = {row["group"]: row for row in json.loads(json.dumps(found.as_dict()))["groups"]}
    assert rows["connect-a"] == {
        "group": "connect-a",
        "outcomes": {"excluded": 1},
        "why": "groups.exclude has connect-.*",
    }
    assert Outcome.EXCLUDED not in found.outcomes, "the totals are of what was seen to"
    lines = list(report_lines(found))
    assert lines[-2:] == [
        "excluded, Causeway's own: causeway.x",
        "excluded, groups.exclude has connect-.*: connect-a",
    ]
    assert not any("connect-a" in line for line in report_lines(found, names_excluded=False))
    many = replace(found, excluded={f"connect-{n}": "groups.exclude has connect-.*" for n in range(50)})
    assert list(report_lines(many))[-1].endswith("connect-39 and 10 more")


def test_places_that_are_counted_only_are_reported() -> None:
    counts, rows = told([verdict("a", n, Outcome.SYNCED) for n in range(50)], 3)
    found = replace(report(), result=GroupTaskResult(counts=counts, rows=rows))
    assert found.as_dict()["partitions_untold"] == 47
    assert "47 places are only counted, not listed" in list(report_lines(found))
    assert report(verdict("a", 0, Outcome.SYNCED)).as_dict()["partitions_untold"] == 0


def test_what_is_not_well_is_reported_first_where_not_all_fits() -> None:
    verdicts = [verdict("a", n, Outcome.SYNCED) for n in range(50)] + [verdict("b", 0, Outcome.OLDER)]
    counts, rows = told(verdicts, 3)
    assert counts == {"a": Counter({Outcome.SYNCED: 50}), "b": Counter({Outcome.OLDER: 1})}
    assert [row.group for row in rows] == ["b", "a", "a"]


def task(partitions: int) -> GroupTask:
    pairs = tuple(builders.pair(n) for n in range(partitions))
    return GroupTask(
        flow="f",
        position_group="causeway.f",
        map_topic="m",
        checkpoints_topic="c",
        syncs_topic="s",
        topics=TopicFilter(("orders",)),
        rules=FlowGroups(),
        groups=("a", "b"),
        active=frozenset(),
        pairs=pairs,
        unfit=((TopicPartition("gone", 0), Outcome.MISSING, "isn't there"),),
    )


def test_shares_hold_every_partition_once_and_travel() -> None:
    whole = task(100)
    shares = cut_task(whole, shares=8, map_partitions=8, most_rows=10)
    assert 1 < len(shares) <= 8
    assert sorted(str(p) for share in shares for p in share.pairs) == sorted(map(str, whole.pairs))
    assert [len(share.unfit) for share in shares] == [1, *[0] * (len(shares) - 1)]
    assert not any(share.is_whole for share in shares)
    assert all(pickle.loads(pickle.dumps(share)) == share for share in shares)
    assert cut_task(whole, shares=1, map_partitions=8, most_rows=10) == (whole,)


def test_results_add_up() -> None:
    first = GroupTaskResult(
        counts={"a": Counter({Outcome.SYNCED: 2})},
        due={"a": Counter({Outcome.SYNCED: 1})},
        synced_ms={"a": 5, "b": 9},
        checkpoints=2,
        commits=1,
    )
    second = GroupTaskResult(
        counts={"a": Counter({Outcome.SYNCED: 1, Outcome.ACTIVE: 1})}, refused={"b": "why"}, offset_syncs=3
    )
    both = together([first, second])
    assert both.counts == {"a": Counter({Outcome.SYNCED: 3, Outcome.ACTIVE: 1})}
    assert (both.checkpoints, both.commits, both.offset_syncs, both.refused) == (2, 1, 3, {"b": "why"})
    more = GroupTaskResult(due={"a": Counter({Outcome.SYNCED: 2})}, synced_ms={"a": 7})
    summed = together([first, more])
    assert (summed.due, summed.synced_ms) == ({"a": Counter({Outcome.SYNCED: 3})}, {"a": 7, "b": 9})
