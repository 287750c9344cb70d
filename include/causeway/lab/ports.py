"""Free TCP ports on 127.0.0.1 that stay free while their broker is down.

Ports come from below the range that the kernel hands out to outgoing connections: a broker that is
killed and restarted a minute later finds its port as it left it. `CAUSEWAY_LAB_PORTS=16000-16999` says
which ones to take from: whoever starts labs side by side gives each its own, so that none takes the port
of another's broker that is down for a moment.
"""

from __future__ import annotations

import os
import random
import socket
from pathlib import Path

from causeway.lab.errors import LabTrouble

LOOPBACK = "127.0.0.1"
PORTS_VARIABLE = "CAUSEWAY_LAB_PORTS"
_LOWEST = 15_000
_EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_ports(count: int, *, among: range | None = None) -> list[int]:
    """Different ports that nobody listens on now.

    :raises LabTrouble: there are not that many.
    """
    candidates = among or _lasting_range()
    found: list[int] = []
    # Random order: two labs that look at the same moment don't meet at the first free port.
    for port in random.sample(candidates, len(candidates)):
        if len(found) == count:
            break
        if is_free(port):
            found.append(port)
    if len(found) < count:
        raise LabTrouble(
            "free ports", value=len(found), rule=f"{count} needed among {candidates}", remedy="stop something"
        )
    return found


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As the broker does: connections that linger after its end don't count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def _lasting_range() -> range:
    if given := os.environ.get(PORTS_VARIABLE):
        return _parsed(given)
    lowest_ephemeral = int(_EPHEMERAL_RANGE.read_text(encoding="ascii").split()[0])
    below = range(_LOWEST, lowest_ephemeral)
    return below if len(below) > 1000 else range(_LOWEST, 65_536)


def _parsed(given: str) -> range:
    first, dash, last = given.partition("-")
    if not (dash and first.isdecimal() and last.isdecimal() and 0 < int(first) <= int(last) < 65_536):
        raise LabTrouble(
            PORTS_VARIABLE, value=given, rule="isn't FIRST-LAST", remedy="say it like 16000-16999"
        )
    return range(int(first), int(last) + 1)
