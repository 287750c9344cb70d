"""What the list of created ACLs says after each change, whoever else changes it, and that it survives being
written down."""

from __future__ import annotations

import pytest

from causeway.core.state.acl import Acl
from causeway.core.state.acl_ledger import Ledger, acl_gone_record, acl_record, entered, taken_out
from causeway.core.state.flow_log import LogRecord
from causeway.core.state.flow_state import FlowState, fold
from tests.support.builders import acl

ONE, TWO, WIDE = acl("sf.orders"), acl("sf.orders", who="bob"), acl("sf.", pattern="prefixed")


def told(*records: tuple[bytes, bytes], compacted: bool = False) -> dict[Acl, int]:
    """The list after these records, at the offsets 0, 1, ...; compacted: only the newest of each key."""
    newest = {key: offset for offset, (key, _) in enumerate(records)}
    states: dict[str, FlowState] = {}
    for offset, (key, value) in enumerate(records):
        if not compacted or newest[key] == offset:
            states = fold(states, LogRecord(offset, 0, key, value))
    state = states["a"]
    assert state.generation == -1, "no turn"
    return dict(state.acls)


def entry(one: Acl) -> tuple[bytes, bytes]:
    return acl_record("a", one)


def gone(one: Acl, at: int) -> tuple[bytes, bytes]:
    return acl_gone_record("a", one, entry=at)


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize(
    ("records", "left"),
    [
        ([entry(ONE), entry(TWO), entry(WIDE)], {ONE: 0, TWO: 1, WIDE: 2}),
        ([entry(ONE), entry(TWO), gone(ONE, 0)], {TWO: 1}),
        ([entry(ONE), entry(ONE)], {ONE: 1}),
        ([entry(ONE), entry(ONE), gone(ONE, 0)], {ONE: 1}),
        ([entry(ONE), gone(ONE, 0), gone(ONE, 0), entry(ONE), gone(ONE, 0)], {ONE: 3}),
        ([entry(ONE), entry(ONE), gone(ONE, 1)], {}),
        ([gone(TWO, 7), entry(ONE)], {ONE: 1}),
    ],
    ids=["entered", "taken out", "again", "of before", "twice, and anew", "the newest", "never there"],
)
def test_what_is_taken_out_is_one_entry_and_no_newer_one(
    records: list[tuple[bytes, bytes]], left: dict[Acl, int], compacted: bool
) -> None:
    assert told(*records, compacted=compacted) == left


def test_each_acl_has_a_key_of_its_own() -> None:
    """Compaction keeps the newest record of a key; a part of one that looks like another key is none."""
    tricky = [Acl("t", "literal", f"User:a{mark}b", "*", "Read", "Allow") for mark in ("/", '"', ",", '","')]
    hosts = [Acl("t", "literal", "User:a", host, "Read", "Allow") for host in ("*", "10.0.0.7")]
    acls = [ONE, TWO, WIDE, *tricky, *hosts]
    assert len({entry(each)[0] for each in acls}) == len(acls)
    assert set(told(*map(entry, acls))) == set(acls)


@pytest.mark.parametrize(
    "value",
    [
        b'{"v": 1, "acl": ["x", "any", "User:a", "*", "Read", "Allow"]}',
        b'{"v": 1, "acl": ["", "literal", "User:a", "*", "Read", "Allow"]}',
        b'{"v": 1, "acl": 3}',
        b'{"v": 1, "acl": ["x", "literal", "User:a", "*", "Read"]}',
        b'{"v": 1, "acl": ["x", "literal", "User:a", "*", "Read", "Perhaps"]}',
        b'{"v": 1, "acl": ["x", "literal", "User:a", "*", 3, "Allow"]}',
        b'{"v": 1}',
    ],
)
def test_other_records_are_odd(value: bytes) -> None:
    for kind in (b"acl", b"acl_gone"):
        state = fold({}, LogRecord(7, 0, b"1/" + kind + b"/a/x", value))["a"]
        assert (list(state.odd), state.acls) == ([7], {})


def test_thousands_that_were_removed_cost_a_reader_no_more_than_thousands_that_stand() -> None:
    """Each lane reads them before its first record. Counted, not timed: each is hashed a few times only."""
    acls = [Counting(f"sf.t{number}", "literal", "User:amy", "*", "Read", "Allow") for number in range(2_000)]
    ledger: dict[Acl, int] = {}
    for place, each in enumerate(acls):
        ledger = dict(entered(ledger, each, place))
    Counting.hashed = 0
    left: Ledger = ledger
    for place, each in enumerate(acls):
        left = taken_out(left, each, place)
    assert not left
    assert Counting.hashed < 10 * len(acls)


class Counting(Acl):
    hashed = 0

    def __hash__(self) -> int:
        Counting.hashed += 1
        return super().__hash__()
