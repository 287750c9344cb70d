"""`bootstrap.servers`: host and port, several with commas, checked before anybody waits for a connection.

Messages repeat a server only if it looks like one: somebody may have pasted a URL with a password.
"""

from __future__ import annotations

import re
from collections import Counter

from causeway.config.values.refusal import KeyRefusal

KEY = "bootstrap.servers"
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9.])?", re.ASCII)
_IPV6 = re.compile(r"\[[0-9A-Fa-f:.]{2,45}(%[A-Za-z0-9]+)?\]", re.ASCII)
_BARE_IPV6 = re.compile(r"(?=.*::|(?:[^:]*:){7})[0-9A-Fa-f:.]+", re.ASCII)
_PORT = re.compile(r"[1-9][0-9]{0,4}", re.ASCII)
_SCHEME = re.compile(r"[A-Za-z_]{1,20}://[A-Za-z0-9._-]+(:[0-9]{1,5})?/?", re.ASCII)
_BETWEEN = re.compile(r"[;\s]+")
_EXAMPLE = "write host:9092"


def check_servers(text: str) -> None:
    if "@" in text:  # may be a password: not repeated
        raise KeyRefusal(KEY, "must not have a user", "write sasl.username and sasl.password")
    servers = [server.strip() for server in text.split(",")]
    for server in servers:
        _check_server(server)
    twice = sorted(server for server, times in Counter(servers).items() if times > 1)
    if twice:
        raise KeyRefusal(KEY, "names a server twice", "name each once", value=twice[0])


def _check_server(server: str) -> None:
    if not server:
        raise KeyRefusal(KEY, "has an empty entry", "write host:9092, several with single commas between")
    if "://" in server:
        shown = server if _SCHEME.fullmatch(server) else None
        raise KeyRefusal(KEY, "must not have a scheme", f"{_EXAMPLE} and security.protocol", value=shown)
    if _BETWEEN.search(server):
        _refuse_separator(server)
    host, colon, port = server.rpartition(":")
    if not colon or server.endswith("]"):
        raise KeyRefusal(KEY, "has a server without a port", f"write {server[:80]}:9092", value=server)
    if ":" in host and not host.startswith("["):
        _refuse_colons(server, host, port)
    if not (_HOST.fullmatch(host) or _IPV6.fullmatch(host)):
        raise KeyRefusal(KEY, "has an illegal host name", _EXAMPLE, value=server)
    if not _PORT.fullmatch(port) or int(port) > 65535:
        raise KeyRefusal(KEY, "has a port that isn't 1 to 65535", f"write {host}:9092", value=server)


def _refuse_separator(server: str) -> None:
    parts = [part for part in _BETWEEN.split(server) if part]
    for part in parts:
        host, _, port = part.rpartition(":")
        if not (_HOST.fullmatch(host) and _PORT.fullmatch(port)):
            raise KeyRefusal(KEY, "has a server with a blank or a semicolon in it", _EXAMPLE)
    joined = ",".join(parts[:3]) + (",..." if len(parts) > 3 else "")
    raise KeyRefusal(KEY, "has servers that no comma parts", f"write {joined}", value=server)


def _refuse_colons(server: str, host: str, port: str) -> None:
    if _BARE_IPV6.fullmatch(server):
        raise KeyRefusal(KEY, "an IPv6 address stands in brackets", f"write [{host}]:{port}", value=server)
    first, *rest = server.split(":")
    shown = server if all(part.isdigit() for part in rest) else None  # else one of them may be a password
    remedy = f"write {first}:{rest[0]}" if shown and len(set(rest)) == 1 else _EXAMPLE
    raise KeyRefusal(KEY, "has more than one colon", remedy, value=shown)
