"""Heartbeats have MirrorMaker 2's bytes, and their topics' names tell who is upstream, how far away."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causeway.core.kernel.errors import ProtocolFault
from causeway.core.kernel.timestamps import rfc3339
from causeway.core.model.naming import way_of
from causeway.core.topics.heartbeats import Heartbeat, Upstream, decode_heartbeat, encode_heartbeat, upstreams


def test_mirror_makers_bytes() -> None:
    key, value = encode_heartbeat(Heartbeat("A", "B", 1_700_000_000_000))
    assert key.hex() == "000141000142"
    assert value.hex() == "00000000018bcfe56800"


@given(st.text(max_size=50), st.text(max_size=50), st.integers(0, 253_402_300_799_999))
def test_what_is_written_is_read_again(source: str, target: str, at_ms: int) -> None:
    heartbeat = Heartbeat(source, target, at_ms)
    assert decode_heartbeat(*encode_heartbeat(heartbeat)) == heartbeat


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("000141000142", "00010000018bcfe56800"),
        ("000141000142", "00000000018bcfe568"),
        ("00014100014200", "00000000018bcfe56800"),
        ("0001410002", "00000000018bcfe56800"),
        ("ffff", "00000000018bcfe56800"),
        ("0001ff000142", "00000000018bcfe56800"),
        ("", ""),
        ("000141000142", "00007fffffffffffffff"),
        ("000141000142", "0000ffffffffffffffff"),
        ("000141000142", "00000000e677d21fdc00"),
    ],
)
def test_other_bytes_are_refused(key: str, value: str) -> None:
    with pytest.raises(ProtocolFault, match="a record of a heartbeats topic"):
        decode_heartbeat(bytes.fromhex(key), bytes.fromhex(value))


def test_hops_are_counted_along_the_shortest_way() -> None:
    """MirrorClient's cases: one, two and three hops, unreachable, a circle."""
    topics = ["heartbeats", "a.heartbeats", "b.a.heartbeats", "c.b.d.heartbeats", "x.topic", "e.e.heartbeats"]
    assert upstreams(topics) == (
        Upstream("a", 1, "a.heartbeats"),
        Upstream("b", 1, "b.a.heartbeats"),
        Upstream("c", 1, "c.b.d.heartbeats"),
        Upstream("d", 3, "c.b.d.heartbeats"),
    )


def test_another_separator() -> None:
    assert upstreams(["b-a-heartbeats", "c.heartbeats"], ["-"]) == (
        Upstream("b", 1, "b-a-heartbeats"),
        Upstream("a", 2, "b-a-heartbeats"),
    )
    assert upstreams(["heartbeats", "myheartbeats"]) == ()


def test_flows_with_different_separators_meet_in_one_cluster() -> None:
    topics = ["b-a-heartbeats", "c.d.heartbeats", "a.heartbeats"]
    assert upstreams(topics, ["-", "."]) == (
        Upstream("a", 1, "a.heartbeats"),
        Upstream("b", 1, "b-a-heartbeats"),
        Upstream("c", 1, "c.d.heartbeats"),
        Upstream("d", 2, "c.d.heartbeats"),
    )


@pytest.mark.parametrize(
    ("topic", "separator", "way"),
    [
        ("heartbeats", ".", []),
        ("sf.heartbeats", ".", ["sf"]),
        ("nyc.sf.heartbeats", ".", ["nyc", "sf"]),
        ("nyc-sf-heartbeats", "-", ["nyc", "sf"]),
        ("nyc-sf-heartbeats", ".", []),
        ("orders", ".", []),
        ("myheartbeats", ".", []),
        (".heartbeats", ".", [""]),
    ],
)
def test_the_way_is_in_the_name(topic: str, separator: str, way: list[str]) -> None:
    assert way_of(topic, separator) == way


@given(st.integers(0, 253_402_300_799_999))
def test_each_time_that_is_read_can_be_printed(at_ms: int) -> None:
    assert rfc3339(decode_heartbeat(*encode_heartbeat(Heartbeat("a", "b", at_ms))).at_ms).endswith("Z")
