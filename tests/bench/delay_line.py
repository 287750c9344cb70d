"""A slow line between clients and one broker: every byte arrives a fixed time after it was sent, in both
directions.

    python -I -S delay_line.py      (a process of its own, so that its work is nobody's)

Prints its port. On standard input: `target PORT`, `delay SECONDS`; it ends with its input. Bandwidth isn't
limited: what is on the line is kept, up to a bound that no contender's window reaches.
"""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import time
from collections import deque

_HOST = "127.0.0.1"
_PIECE_BYTES = 256 << 10
_ON_THE_LINE_BYTES = 256 << 20


class Line:
    def __init__(self) -> None:
        self.target = 0
        self.delay_seconds = 0.0

    def serve(self, listener: socket.socket) -> None:
        while True:
            near, _ = listener.accept()
            far = socket.create_connection((_HOST, self.target))
            for one, other in ((near, far), (far, near)):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                _Direction(self, one, other).start()


class _Direction:
    def __init__(self, line: Line, read_from: socket.socket, write_to: socket.socket) -> None:
        self._line, self._from, self._to = line, read_from, write_to
        self._waiting: deque[tuple[float, bytes]] = deque()
        self._bytes = 0
        self._changed = threading.Condition()

    def start(self) -> None:
        for work in (self._read, self._write):
            threading.Thread(target=work, daemon=True).start()

    def _read(self) -> None:
        data = b"-"
        while data:
            try:
                data = self._from.recv(_PIECE_BYTES)
            except OSError:
                data = b""
            with self._changed:
                self._waiting.append((time.monotonic() + self._line.delay_seconds, data))
                self._bytes += len(data)
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._bytes < _ON_THE_LINE_BYTES)

    def _write(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                due_at, data = self._waiting.popleft()
                self._bytes -= len(data)
                self._changed.notify_all()
            time.sleep(max(due_at - time.monotonic(), 0.0))
            try:
                if not data:
                    self._to.shutdown(socket.SHUT_WR)
                    return
                self._to.sendall(data)
            except OSError:
                with contextlib.suppress(OSError):
                    self._from.shutdown(socket.SHUT_RDWR)
                return


def main() -> None:
    line = Line()
    listener = socket.create_server((_HOST, 0))
    print(listener.getsockname()[1], flush=True)
    threading.Thread(target=line.serve, args=(listener,), daemon=True).start()
    for told in sys.stdin:
        word, value = told.split()
        if word == "target":
            line.target = int(value)
        else:
            line.delay_seconds = float(value)
        print("done", flush=True)


if __name__ == "__main__":
    main()
