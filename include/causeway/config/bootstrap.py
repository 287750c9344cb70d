"""`bootstrap.servers`: host and port, several with commas, checked before anybody waits for a connection."""

from __future__ import annotations

import re

from causeway.config.refusal import KeyRefusal

KEY = "bootstrap.servers"
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9.])?", re.ASCII)
_IPV6 = re.compile(r"\[[0-9A-Fa-f:.]{2,45}(%[A-Za-z0-9]+)?\]", re.ASCII)
_PORT = re.compile(r"[1-9][0-9]{0,4}", re.ASCII)


def check_servers(text: str) -> None:
    servers = [server.strip() for server in text.split(",")]
    for server in servers:
        _check_server(server)
    twice = sorted({server for server in servers if servers.count(server) > 1})
    if twice:
        raise KeyRefusal(KEY, "names a server twice", "name each once", value=twice[0])


def _check_server(server: str) -> None:
    if not server:
        raise KeyRefusal(KEY, "has an empty entry", "write host:9092, several with single commas between")
    if "://" in server:
        raise KeyRefusal(KEY, "must not have a scheme", "write host:9092 and security.protocol", value=server)
    if "@" in server:  # may be a password: not repeated
        raise KeyRefusal(KEY, "must not have a user", "write sasl.username and sasl.password")
    host, colon, port = server.rpartition(":")
    if not colon or server.endswith("]"):
        raise KeyRefusal(KEY, "has a server without a port", f"write {server}:9092", value=server)
    if ":" in host and not host.startswith("["):
        raise KeyRefusal(KEY, "an IPv6 address stands in brackets", f"write [{host}]:{port}", value=server)
    if not (_HOST.fullmatch(host) or _IPV6.fullmatch(host)):
        raise KeyRefusal(KEY, "has an illegal host name", "write host:9092", value=server)
    if not _PORT.fullmatch(port) or int(port) > 65535:
        raise KeyRefusal(KEY, "has a port that isn't 1 to 65535", f"write {host}:9092", value=server)
