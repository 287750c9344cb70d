"""Fences are a set: what somebody raised stands until that one is lifted, whoever else raises and lifts."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

from causeway.core.state.fences import COMMAND, Fence, Lift, fence_record, lift_record
from causeway.core.state.flow_log import LogRecord
from causeway.core.state.flow_records import run_record
from causeway.core.state.flow_state import FlowState, fold

OPS, ADOPT, FAILOVER = "ops", "adopt", "failover"
RUN = "failover 0123456789ab"


def raised(token: str, *, owner: str = "", topics: Iterable[str] | None = None) -> tuple[bytes, bytes]:
    of_topics = None if topics is None else frozenset(topics)
    fence = Fence(by=token, because="why", since_ms=1_000, token=token, owner=owner, topics=of_topics)
    return fence_record("f", fence, most_lanes=4)


def lifted(fence: Fence | str, by: str = "amy") -> tuple[bytes, bytes]:
    if isinstance(fence, str):
        fence = Fence(generation=-1, by="", because="", since_ms=0, token=fence)
    return lift_record("f", fence, by=by, because="over", most_lanes=4, at_ms=2_000)


def run() -> tuple[bytes, bytes]:
    return run_record("f", FlowState(), holder="h", run_id="r", lanes=4, at_ms=5)


def of_version_1(kind: str, flow: str = "f", rest: str = "", **said: object) -> tuple[bytes, bytes]:
    """As every Causeway wrote it until fences became a set."""
    body = json.dumps({"v": 1, **said}, separators=(",", ":")).encode()
    return f"1/{kind}/{flow}{rest}".encode(), body


def legacy(because: str = "why", **token: str) -> tuple[bytes, bytes]:
    return of_version_1("fence", by="eve", because=because, most_lanes=9, at_ms=7, **token)


def legacy_lift(generation: int) -> tuple[bytes, bytes]:
    return of_version_1("lift", rest=f"/{generation}", lifts=generation, by="eve", because="x", at_ms=8)


def after(*records: tuple[bytes, bytes], first: int = 10) -> FlowState:
    states: dict[str, FlowState] = {}
    for offset, (key, value) in enumerate(records, first):
        states = fold(states, LogRecord(offset, 0, key, value))
    return states["f"]


def standing(state: FlowState) -> list[str]:
    return [fence.token for fence in state.standing]


def test_what_ops_raised_stands_whatever_a_killed_command_and_a_failover_do_above_it() -> None:
    """The scene in which one slot for one fence opened the flow."""
    state = after(
        raised(OPS),
        raised(ADOPT, owner=COMMAND),  # and killed
        raised(FAILOVER, owner=RUN),
        lifted(FAILOVER),  # its rollback
        lifted(ADOPT),  # somebody cleans up
    )
    assert standing(state) == [OPS]
    assert state.fence is not None
    assert (state.fence.by, state.fence.generation) == (OPS, 10)


def test_the_newest_fence_of_the_whole_flow_is_the_one_that_is_reported() -> None:
    state = after(raised("a"), raised("b"), raised("c", topics=["sf.x"]))
    assert state.fence is not None
    assert (state.fence.token, standing(state)) == ("b", ["a", "b", "c"])
    assert after(raised("c", topics=["sf.x"])).fence is None


def test_a_fence_of_topics_leaves_them_out_and_is_a_turn() -> None:
    state = after(run(), raised("a", topics=["sf.y", "sf.x"]))
    assert (state.running, state.generation) == (None, 11)
    fence = state.fence_over("sf.x")
    assert fence is not None
    assert fence.topics == frozenset({"sf.x", "sf.y"})
    assert str(fence).endswith("why; only sf.x, sf.y")
    assert state.fence_over("sf.z") is None
    assert after(raised("a", topics=["sf.x"]), lifted("a")).fence_over("sf.x") is None


def test_a_fence_of_the_whole_flow_leaves_no_single_topic_out() -> None:
    assert after(raised("a")).fence_over("sf.x") is None


def test_a_lift_is_a_turn_also_where_compaction_took_its_fence() -> None:
    assert after(run(), raised("a"), lifted("a")).generation == 12
    assert after(run(), lifted("a")).generation == 11
    assert after(raised("a"), run(), lifted("a")).running is None


def test_a_late_record_touches_its_own_fence_only() -> None:
    assert standing(after(raised("a"), raised("b"), lifted("a"), lifted("a"))) == ["b"]
    assert standing(after(raised("a"), lifted("a"), raised("a"))) == ["a"], "too much is safe"


def test_who_lifted_a_fence_is_known_until_it_is_raised_again() -> None:
    state = after(raised("a"), lifted("a", by="bob"))
    assert state.lifted == {"a": Lift(by="bob", because="over", at_ms=2_000)}
    assert after(raised("a"), lifted("a"), raised("a")).lifted == {}


def test_whose_a_fence_is() -> None:
    state = after(raised(OPS), raised(ADOPT, owner=COMMAND), raised(FAILOVER, owner=RUN))
    ops, adopt, failover = state.standing
    assert [fence.is_at_work for fence in state.standing] == [False, True, False]
    assert [fence.is_of_a_run for fence in state.standing] == [False, False, True]
    assert (state.fences_of(RUN), state.fences_of("failover another")) == ((failover,), ())
    assert state.fences_of("") == (ops,)
    assert state.fences_of(COMMAND) == (adopt,)


def test_words_that_somebody_types_make_no_fence_a_failovers() -> None:
    record = fence_record("f", Fence(by="eve", because=RUN, since_ms=1, token="t"), most_lanes=1)
    assert after(record).fences_of(RUN) == ()


# Of version 1


def test_a_fence_of_version_1_stands_until_it_is_lifted_as_it_was_raised() -> None:
    state = after(legacy(), run())
    assert state.fence is not None
    assert (state.fence.by, state.fence.generation, state.most_lanes) == ("eve", 10, 9)
    assert state.fence.is_legacy
    key, _ = lifted(state.fence)
    assert key == b"1/lift/f/10"
    assert standing(after(legacy(), run(), lifted(state.fence))) == []
    assert after(legacy(), legacy_lift(10)).generation == 11
    assert standing(after(legacy(), legacy_lift(9))) != []


def test_of_version_1_a_newer_fence_takes_the_place_of_the_one_before_and_of_no_other() -> None:
    state = after(raised(OPS), legacy(), legacy("another"))
    assert [(fence.because, fence.generation) for fence in state.standing] == [("why", 10), ("another", 12)]
    assert standing(after(raised(OPS), legacy(), legacy(), legacy_lift(11))) != [OPS]
    assert standing(after(raised(OPS), legacy(), legacy_lift(11))) == [OPS]


@pytest.mark.parametrize(
    ("because", "owner"),
    [
        (RUN, RUN),
        ("failback 0123456789ab", "failback 0123456789ab"),
        (
            "stands by since failback 0123456789ab: f goes on",
            "stands by since failback 0123456789ab: f goes on",
        ),
        ("failover of last year", ""),
        ("nyc takes over", ""),
    ],
)
def test_runs_of_version_1_knew_their_fences_by_their_words(because: str, owner: str) -> None:
    assert after(legacy(because)).standing[0].owner == owner


def test_a_command_of_version_1_is_at_work() -> None:
    assert after(legacy(token="mine")).standing[0].is_at_work
    assert standing(after(legacy(token="mine"))) == ["mine"]


def test_version_1_reads_no_record_of_a_fence_of_today() -> None:
    """It takes the first part of a key for the version, and refuses what isn't 1 (`parse_key` of dfef452)."""
    for key, _ in (raised("a"), raised("a", topics=["sf.x"]), lifted("a")):
        assert key.split(b"/")[0] == b"2"


GOOD = json.loads(raised("a")[1])


@pytest.mark.parametrize(
    "broken",
    [{"v": 1}, {"state": "open"}, {"scope": "sf.x"}, {"most_lanes": True}, {"at_ms": None}],
    ids=str,
)
def test_a_fence_that_cannot_be_read_is_odd_not_skipped(broken: dict[str, object]) -> None:
    key, _ = raised("a")
    assert len(after((key, json.dumps(GOOD | broken).encode())).odd) == 1


@pytest.mark.parametrize("missing", sorted(GOOD))
def test_nothing_of_a_fence_may_be_missing(missing: str) -> None:
    key, _ = raised("a")
    assert len(after((key, json.dumps({k: v for k, v in GOOD.items() if k != missing}).encode())).odd) == 1


@pytest.mark.parametrize("key", [b"2/fence/f", b"2/lift/f/9", b"3/fence/f/a", b"2/run/f"])
def test_a_key_that_no_version_has_is_odd(key: bytes) -> None:
    state = after((key, raised("a")[1]))
    assert (len(state.odd), state.standing) == (1, ())
