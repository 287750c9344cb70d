"""kafka-python's connections, with fewer system calls and copies on the way of the bytes.

The library reads four kilobytes at a time, copies each answer several times before it is parsed, and
gives every request a task that waits for a socket which nearly always takes it at once. Here an answer is
received into one buffer and parsed where it lies, and a request is written at once as far as the socket
takes it.

Overrides what the library doesn't promise to keep: its version is pinned, and the contract suite on real
brokers, plain and by TLS, runs over this.
"""

from __future__ import annotations

import contextlib
import selectors
import ssl
import time
from typing import Any

from kafka import errors as kafka_errors
from kafka.future import Future
from kafka.net import KafkaConnectionManager
from kafka.net.inet import create_connection
from kafka.net.selector import NetworkSelector, Task, TaskState
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport
from kafka.protocol.api_header import RequestHeader
from kafka.protocol.frame import KafkaBytes

from causeway import interruption
from causeway.brokers.transport.fetch_response import FETCH, VERSION, FetchAnswers
from causeway.brokers.transport.pending_response import Awaited

_READ_BYTES = 1 << 20
_PIECE_BYTES = 64 << 10
_LENGTH_BYTES = 4
_STEP_SECONDS = 0.1
_NOT_NOW = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class LeanSelector(NetworkSelector):  # type: ignore[misc]
    def run(self, coro: Any, *args: Any) -> Any:
        """Until it is done, in steps. An exception that strikes inside of a step may end any task, or none;
        so an interruption takes effect between two of them. The work gets it where it waits, and ends there:
        its clean-up may not wait for this loop."""
        interruption.check()
        if self._closed:
            raise RuntimeError("the network is closed")
        answer = Future()

        async def work() -> None:
            try:
                answer.success(await self._invoke(coro, *args))
            except BaseException as exc:  # noqa: BLE001 - goes to who waits for it
                answer.failure(exc)

        task = self.call_soon(work)
        while not answer.is_done:
            try:
                interruption.check()
            except KeyboardInterrupt as stop:
                self._end(task, stop)
                if answer.exception is None or isinstance(answer.exception, GeneratorExit):
                    raise
            else:
                self._poll_once(_STEP_SECONDS)
        if answer.exception is not None:
            raise answer.exception
        return answer.value

    def _end(self, task: Task, stop: KeyboardInterrupt) -> None:
        if task.state is TaskState.SCHEDULED:
            self._unschedule(task)
        self._pending_tasks.discard(task)
        task._exc = stop  # noqa: SLF001 - a time-out that is on its way to the work comes too late
        with contextlib.suppress(StopIteration):
            task()
            task.close()  # it waits again

    def register_event(self, fileobj: Any, event: int, task: Any) -> None:
        """Nearly always nothing waits for that socket yet. The library learns it from an error whose text is
        all that is known of a socket."""
        if isinstance(task, Task) and fileobj.fileno() not in self._selector._fd_to_key:  # noqa: SLF001
            waiting = (task, None) if event == selectors.EVENT_READ else (None, task)
            self._selector.register(fileobj, event, waiting)
        else:
            super().register_event(fileobj, event, task)


class Frame(KafkaBytes):  # type: ignore[misc]
    """One answer as it arrives; what the library reads of it last, it reads without a copy."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(size_bytes)
        self.missing = size_bytes

    def room(self) -> memoryview:
        """What hasn't come yet."""
        return memoryview(self)[len(self) - self.missing :]

    def take(self, data: memoryview) -> int:
        """:returns: how many of these bytes belong to this answer."""
        count = min(self.missing, len(data))
        if data.obj is not self:  # else they were received where they belong
            self.room()[:count] = data[:count]
        self.missing -= count
        return count

    def read(self, nbytes: int | None = None) -> Any:
        if nbytes is not None:
            return super().read(nbytes)
        start = self.tell()
        self.seek(len(self))
        return memoryview(self)[start:]


class FrameReader:
    """Cuts what a socket gives into answers; takes the place of `KafkaProtocol.receive_bytes`."""

    def __init__(self, parser: Any) -> None:
        self._parser = parser
        self._length = bytearray()
        self._frame: Frame | None = None
        self._pieces = memoryview(bytearray(_PIECE_BYTES))

    def room(self) -> memoryview:
        """Where the next bytes are to be received: in the answer itself, if much of it is still to come."""
        if self._frame is None or self._frame.missing < _PIECE_BYTES:
            return self._pieces
        return self._frame.room()[:_READ_BYTES]

    def receive(self, data: bytes | memoryview) -> list[tuple[int, Any]]:
        view = memoryview(data)
        answers: list[tuple[int, Any]] = []
        while view.nbytes:
            if self._frame is None:
                missing = _LENGTH_BYTES - len(self._length)
                self._length += view[:missing]
                view = view[missing:]
                if len(self._length) < _LENGTH_BYTES:
                    break
                size_bytes = int.from_bytes(self._length, "big", signed=True)
                self._length.clear()
                self._parser._validate_frame_size(size_bytes)  # noqa: SLF001
                self._frame = Frame(size_bytes)
            view = view[self._frame.take(view) :]
            if not self._frame.missing:
                frame, self._frame = self._frame, None
                answers.append(self._decoded(frame))
        return answers

    def _decoded(self, frame: Frame) -> tuple[int, Any]:
        waiting = self._parser.in_flight_requests
        head = waiting[0] if waiting else None
        if isinstance(head, RequestHeader) and _is_fetch(head):
            waiting[0] = Awaited(head.correlation_id, FetchAnswers)
        answer: tuple[int, Any] = self._parser._process_response(frame)  # noqa: SLF001
        return answer


def _is_fetch(head: RequestHeader) -> bool:
    return (head.request_api_key, head.request_api_version) == (FETCH, VERSION)


class _LeanTransport(KafkaTCPTransport):  # type: ignore[misc]
    async def _read_from_sock(self) -> None:
        # The connection has made its parser by now, and no answer can have come yet.
        parser = self._protocol.parser
        self._frames = FrameReader(parser)
        parser.receive_bytes = self._frames.receive
        await super()._read_from_sock()

    def write(self, data: Any) -> None:
        """Sent at once as far as the socket takes it, if nothing waits before it."""
        data = memoryview(data)  # what a send leaves over is cut off without a copy, also by the library
        if self._write and not self._closed and not self._writing:
            # Not now, or broken: the way through the buffer waits, or meets it again and ends the connection.
            with contextlib.suppress(OSError):
                data = data[self._sock.send(data) :]
            if not data.nbytes:
                self.last_write = time.monotonic()
                return
        super().write(data)


class LeanTcpTransport(_LeanTransport):
    def _sock_recv(self) -> tuple[memoryview, Exception | None]:
        room = self._frames.room()
        try:
            data = room[: self._sock.recv_into(room)]
        except _NOT_NOW:
            return room[:0], None
        except OSError as cause:
            return room[:0], kafka_errors.KafkaConnectionError(cause)
        return data, None if data else kafka_errors.KafkaConnectionError("socket disconnected")


class LeanTlsTransport(_LeanTransport, KafkaSSLTransport):  # type: ignore[misc]
    """Reads until nothing is left: what TLS has already decrypted no selector tells of."""

    def _sock_recv(self) -> tuple[bytes, Exception | None]:
        pieces: list[bytes] = []
        try:
            while piece := self._sock.recv(_READ_BYTES):
                pieces.append(piece)
        except _NOT_NOW:
            return b"".join(pieces), None
        except OSError as cause:
            return b"".join(pieces), kafka_errors.KafkaConnectionError(cause)
        return b"".join(pieces), kafka_errors.KafkaConnectionError("socket disconnected")


class LeanConnectionManager(KafkaConnectionManager):  # type: ignore[misc]
    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> Any:
        sock = await create_connection(
            self._net,
            node.host,
            node.port,
            self.config["socket_options"],
            proxy_url=self.config["proxy_url"],
            timeout_at=timeout_at,
        )
        if self.ssl_enabled:
            tls = {key: value for key, value in self.config.items() if key.startswith("ssl_")}
            transport: Any = LeanTlsTransport(self._net, sock, host=node.host, **tls)
        else:
            transport = LeanTcpTransport(self._net, sock, host=node.host)
        try:
            await transport.handshake()
        except (OSError, kafka_errors.KafkaError) as cause:  # TLS trouble is an OSError
            raise kafka_errors.KafkaConnectionError(f"Handshake failed: {cause}") from cause
        return transport
