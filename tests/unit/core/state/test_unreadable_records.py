"""Records of the flows topic that can't be read: whose they are, what heals them, who is stopped by them."""

from __future__ import annotations

import pytest

from causeway.core.offsets.lost_log import floor_record
from causeway.core.state.fences import Fence, fence_record, lift_record
from causeway.core.state.flow_log import LogRecord
from causeway.core.state.flow_records import alive_record, run_record
from causeway.core.state.flow_state import NOBODY, FlowState, fold
from causeway.core.state.unreadable_records import SteppedOver, odd_fault, recovered_record

Written = tuple[bytes, bytes | None]
RUN = run_record("f", FlowState(), holder="h", run_id="r", lanes=4, at_ms=5)
OTHER = run_record("g", FlowState(), holder="h", run_id="r", lanes=4, at_ms=5)
FENCE = fence_record("f", Fence(by="ann", because="x", since_ms=5, token="t"), most_lanes=4)
STEPPED = SteppedOver(record="11", by="ann", because="no fence", at_ms=7)


def folded(*records: Written, first_offset: int = 10) -> dict[str, FlowState]:
    states: dict[str, FlowState] = {}
    for offset, (key, value) in enumerate(records, first_offset):
        states = fold(states, LogRecord(offset, 0, key, value))
    return states


@pytest.mark.parametrize("key", [b"", b"some/other/app", b"orders", b"\xff\xfe", b'[1,"fence","f","x"]'])
@pytest.mark.parametrize("value", [b"", b"{}", b"not JSON"])
def test_a_foreign_record_harms_no_flow_and_is_known_by_its_offset(key: bytes, value: bytes) -> None:
    states = folded(RUN, (key, value), OTHER)
    assert list(states[NOBODY].odd) == [11]
    assert {name: states[name] for name in "fg"} == {
        "f": folded(RUN)["f"],
        "g": folded(OTHER, first_offset=12)["g"],
    }
    assert not folded(RUN, (key, value), (key, None))[NOBODY].odd, "a tombstone heals it"


@pytest.mark.parametrize("value", [b"", b"not JSON", b"[]", FENCE[1][:-9]])
@pytest.mark.parametrize("key", [FENCE[0], RUN[0], b"1/starts/f/x", b"1/claimed/f/3"])
def test_a_record_under_a_flows_key_concerns_that_flow_alone(key: bytes, value: bytes) -> None:
    states = folded(RUN, (key, value), OTHER)
    assert list(states["f"].odd) == [11]
    assert states["f"].generation == 10, "what was known stays known"
    assert not states["g"].odd
    fault = odd_fault("f", states["f"].odd[11])
    assert "record 11 of causeway-flows.internal" in str(fault)
    assert "`causeway recover f --record 11 --because" in fault.remedy
    assert fault.exit_code == 6


@pytest.mark.parametrize("key", [b"3/fence/f/t", b"2/run/f", b"1/lease/f"])
def test_a_newer_format_is_refused_by_name(key: bytes) -> None:
    fault = odd_fault("f", folded(RUN, (key, b'{"v":3}'))["f"].odd[11])
    assert "was written by a newer Causeway" in fault.rule
    assert fault.remedy.startswith("upgrade")


def test_whatever_comes_later_under_the_same_key_takes_its_place() -> None:
    """As compaction does; so a reader who comes before it and one who comes after it say the same."""
    bad = (alive_record("f", generation=1, ended=False, at_ms=1)[0], b"not JSON")
    good = alive_record("f", generation=10, ended=False, at_ms=9)
    assert folded(RUN, bad)["f"].odd
    assert not folded(RUN, bad, good)["f"].odd
    assert not folded(RUN, bad, (bad[0], None))["f"].odd
    assert list(folded(RUN, bad, bad)["f"].odd) == [12]


def test_a_tombstone_of_ours_changes_nothing() -> None:
    assert folded(RUN, FENCE, (FENCE[0], None))["f"].fence is not None
    assert folded((FENCE[0], None)) == {}


def test_a_person_names_one_record_and_no_other() -> None:
    bad = ((RUN[0], b"x"), (FENCE[0], b"y"))
    state = folded(OTHER, *bad, recovered_record("f", STEPPED))["f"]
    assert list(state.odd) == [12]
    assert state.stepped_over == (STEPPED,)
    foreign = folded(RUN, (b"them", b"x"), recovered_record("f", STEPPED))
    assert not foreign[NOBODY].odd
    again = folded(RUN, bad[0], recovered_record("f", STEPPED), bad[0])["f"]
    assert list(again.odd) == [13], "what comes later has to be named, too"


def test_from_a_floor_on_turns_are_numbered_above_it() -> None:
    states = folded(floor_record("f", 500), FENCE, first_offset=0)
    assert states["f"].generation == 501
    (fence,) = states["f"].standing
    assert fence.generation == 501
    lift = lift_record("f", fence, by="ann", because="y", most_lanes=4, at_ms=9)
    after = folded(floor_record("f", 500), FENCE, lift, RUN, first_offset=0)["f"]
    assert (after.generation, after.fence, after.generation_at(4)) == (503, None, 504)
    assert folded(floor_record("f", 500), OTHER, first_offset=0)["g"].generation == 1
