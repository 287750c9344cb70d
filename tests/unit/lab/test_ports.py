from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from causeway.lab import ports
from causeway.lab.errors import LabTrouble


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind((ports.LOOPBACK, 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_free_ports_are_different() -> None:
    assert len(set(ports.free_ports(50))) == 50


def test_a_port_that_somebody_listens_on_is_not_free(taken_port: int) -> None:
    assert not ports.is_free(taken_port)


def test_a_taken_port_is_passed_over(taken_port: int) -> None:
    with pytest.raises(LabTrouble, match="free ports = 0: 1 needed"):
        ports.free_ports(1, among=range(taken_port, taken_port + 1))


def test_ports_lie_below_those_of_outgoing_connections() -> None:
    with socket.socket() as listener, socket.socket() as client:
        listener.bind((ports.LOOPBACK, 0))
        listener.listen()
        client.connect(listener.getsockname())
        assert max(ports.free_ports(20)) < client.getsockname()[1]


def test_ports_are_taken_from_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ports.PORTS_VARIABLE, "16000-16009")
    assert set(ports.free_ports(3)) <= set(range(16_000, 16_010))


@pytest.mark.parametrize("given", ["16000", "a-b", "16009-16000", "0-5", "1-70000"])
def test_a_range_that_is_none_is_refused(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ports.PORTS_VARIABLE, given)
    with pytest.raises(LabTrouble, match=f"CAUSEWAY_LAB_PORTS = '?{given}"):
        ports.free_ports(1)
