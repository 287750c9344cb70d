"""What the list of created ACLs says after each change, and that it survives being written down."""

from __future__ import annotations

import pytest

from causeway.core.acl_ledger import as_value, changed_patterns, entries, parse_value, pattern_of
from causeway.core.errors import ProtocolFault
from causeway.core.flow_state import FlowState, LogRecord, acls_record, fold
from tests.unit.core.test_acls import acl

ONE, TWO, WIDE = acl("sf.orders"), acl("sf.orders", who="bob"), acl("sf.", pattern="prefixed")


def test_only_patterns_that_change_are_written_again_and_whole() -> None:
    ledger = {pattern_of(ONE): frozenset({ONE}), pattern_of(WIDE): frozenset({WIDE})}
    assert changed_patterns(ledger, add=[TWO]) == {"literal/sf.orders": frozenset({ONE, TWO})}
    assert changed_patterns(ledger, add=[ONE]) == {}
    assert changed_patterns(ledger, remove=[WIDE]) == {"prefixed/sf.": frozenset()}
    assert changed_patterns(ledger, remove=[acl("sf.trades")]) == {}
    assert entries(ledger) == {ONE, WIDE}


def test_records_come_back_as_the_newest_list_of_each_pattern() -> None:
    states: dict[str, FlowState] = {}
    lists = [(ONE, TWO), (WIDE,), (TWO,)]
    for offset, acls in enumerate(lists):
        key, value = acls_record("a", pattern_of(acls[0]), frozenset(acls))
        states = fold(states, LogRecord(offset, 0, key, value))
    assert states["a"].acls == {"literal/sf.orders": frozenset({TWO}), "prefixed/sf.": frozenset({WIDE})}
    assert states["a"].generation == -1, "no turn"


def test_each_pattern_has_a_key_of_its_own() -> None:
    """Compaction keeps the newest record of a key."""
    keys = {acls_record("a", pattern_of(each), frozenset({each}))[0] for each in (ONE, TWO, WIDE)}
    assert keys == {b"1/acls/a/literal/sf.orders", b"1/acls/a/prefixed/sf."}


@pytest.mark.parametrize(
    "value",
    [
        b'{"v": 1, "pattern": "any/x", "rules": []}',
        b'{"v": 1, "pattern": "literal/", "rules": []}',
        b'{"v": 1, "pattern": "literal/x", "rules": 3}',
        b'{"v": 1, "pattern": "literal/x", "rules": [["User:a", "*", "Read"]]}',
        b'{"v": 1, "pattern": "literal/x", "rules": [["User:a", "*", "Read", "Perhaps"]]}',
        b'{"v": 1, "pattern": "literal/x"}',
    ],
)
def test_other_records_are_refused(value: bytes) -> None:
    with pytest.raises(ProtocolFault, match=r"value of record 7 in the flows topic"):
        fold({}, LogRecord(7, 0, b"1/acls/a/literal/x", value))


def test_a_list_is_written_in_one_order_only() -> None:
    assert as_value("literal/sf.orders", [TWO, ONE]) == as_value("literal/sf.orders", [ONE, TWO])
    assert parse_value(as_value("literal/sf.orders", [TWO, ONE])) == ("literal/sf.orders", {ONE, TWO})
