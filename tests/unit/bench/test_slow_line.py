"""The slow line loses nothing, keeps the order, and lets an end through after what came before it."""

from __future__ import annotations

import random
import socket
import threading
import time

from tests.bench.slow_line import DelayLine


def echo(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    while data := connection.recv(1 << 16):
        connection.sendall(data)
    connection.close()


def send_all(client: socket.socket, data: bytes) -> None:
    client.sendall(data)
    client.shutdown(socket.SHUT_WR)


def test_all_bytes_arrive_in_order_and_not_before_their_time() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=echo, args=(listener,), daemon=True).start()
    sent = random.Random(1).randbytes(3 << 20)
    with DelayLine() as line:
        line.tell("target", listener.getsockname()[1])
        line.tell("delay", 0.03)
        began = time.monotonic()
        with socket.create_connection(("127.0.0.1", line.port)) as client:
            threading.Thread(target=send_all, args=(client, sent)).start()
            found = b""
            while data := client.recv(1 << 16):
                found += data
        assert time.monotonic() - began >= 0.06  # a lower bound: no machine is too slow for it
    assert found == sent
