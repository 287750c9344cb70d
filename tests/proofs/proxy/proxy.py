"""A TCP proxy between clients and one broker that does one chosen wrong to one chosen request.

It changes nothing that it passes on, but for the broker's own address where the broker tells it: clients
that came through the proxy stay with it, and everybody else stays direct.

Invariants
    A. What TCP promises is kept: a connection that lost a request or a response loses all that comes after
       it in that direction, one that holds something back holds all after it back.
    B. The fault is reported (`on_fired`) before anything that follows from it can reach the client.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from tests.proofs.proxy.heads import Api, Request, correlation_of, parse_head, read_frame

T = TypeVar("T")
HOST = "127.0.0.1"
_TELL_ADDRESSES = {Api.METADATA, Api.FIND_COORDINATOR, Api.DESCRIBE_CLUSTER}
_ANSWER_SECONDS = 30.0
_BUFFER_BYTES = 1 << 20


class Fault(StrEnum):
    REQUEST_LOST = "request lost"
    RESPONSE_LOST = "response lost"
    REQUEST_LATE = "request late"
    RESPONSE_LATE = "response late"
    REQUEST_RESET = "reset in the request"
    RESPONSE_RESET = "reset in the response"
    REPEATED = "repeated"


LATE = frozenset({Fault.REQUEST_LATE, Fault.RESPONSE_LATE})
Chooses = Callable[[Request], bool]


@dataclass(slots=True)
class Injection:
    """One fault, once: on the nth request that `chooses` says yes to."""

    fault: Fault
    chooses: Chooses
    nth: int = 1
    on_fired: Callable[[], None] = lambda: None
    release_before: Chooses = lambda _: False
    """What was late comes before the first such request after the fault."""
    fired: threading.Event = field(default_factory=threading.Event)
    released: bool = False
    _seen: int = 0

    def hits(self, request: Request) -> bool:
        if not self.chooses(request):
            return False
        self._seen += 1
        return self._seen == self.nth

    def fire(self) -> None:
        self.on_fired()
        self.fired.set()


class ProxyThread:
    """One event loop for any number of proxies."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxies", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    @contextmanager
    def proxy(self, broker_port: int) -> Iterator[Proxy]:
        made = Proxy(self, broker_port)
        self.run(made.open())
        try:
            yield made
        finally:
            self.run(made.close())

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Proxy:
    """Between clients and one broker on this machine."""

    def __init__(self, thread: ProxyThread, broker_port: int) -> None:
        self._thread, self.broker_port = thread, broker_port
        self.port = 0
        self.injection: Injection | None = None
        self.requests: list[Request] = []
        """All that came through, in order."""
        self._connections: set[_Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._accept, HOST, 0, limit=_BUFFER_BYTES)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        self._server.close()
        for connection in self._connections:
            connection.close()
        await asyncio.gather(*self._tasks)

    def release(self) -> None:
        """What was held back goes on its way; back when the broker has answered what it got."""
        self._thread.run(self.release_held())

    async def release_held(self) -> None:
        if self.injection is not None:
            self.injection.released = True
        for connection in list(self._connections):
            await connection.release()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            broker = await asyncio.open_connection(HOST, self.broker_port, limit=_BUFFER_BYTES)
        except OSError:
            writer.transport.abort()
            return
        connection = _Connection(self, (reader, writer), broker)
        self._connections.add(connection)
        try:
            await connection.serve()
        finally:
            connection.close()
            self._connections.discard(connection)

    def readdressed(self, api_key: int, response: bytes) -> bytes:
        if api_key not in _TELL_ADDRESSES:
            return response
        before, after = (HOST.encode() + struct.pack(">i", port) for port in (self.broker_port, self.port))
        return response.replace(before, after)


@dataclass(slots=True)
class _Expected:
    """A response that is still to come."""

    request: Request
    fault: Fault | None = None
    is_copy: bool = False


class _Connection:
    def __init__(
        self,
        proxy: Proxy,
        client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        broker: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        self._proxy = proxy
        self._from_client, self._to_client = client
        self._from_broker, self._to_broker = broker
        self._expected: deque[_Expected] = deque()
        self._all_answered = asyncio.Event()
        self._loses_requests = self._loses_responses = False
        self._held_requests: list[Request] | None = None
        self._held_responses: list[bytes] | None = None
        self._releases = False
        """The broker is owed its late requests now: a client that goes meanwhile takes none of them back."""
        self._first_answer = b""

    async def serve(self) -> None:
        """Until both sides have gone; a broker whose client has gone may still be owed a late request."""
        responses = asyncio.create_task(self._pass_responses())
        try:
            await self._pass_requests()
            if self._held_requests is None and not self._releases:
                self._to_broker.close()
            await responses
        finally:
            responses.cancel()

    # client to broker

    async def _pass_requests(self) -> None:
        while (frame := await read_frame(self._from_client)) is not None:
            request = Request(parse_head(frame), frame)
            self._proxy.requests.append(request)
            injection = self._proxy.injection
            if injection is None:
                await self._pass(request)
            elif injection.fired.is_set():
                if not injection.released and injection.release_before(request):
                    await self._proxy.release_held()
                await self._pass(request)
            elif injection.hits(request):
                await self._spoil(request, injection)
            else:
                await self._pass(request)

    async def _pass(self, request: Request, fault: Fault | None = None) -> None:
        if self._loses_requests:
            return
        if self._held_requests is not None:
            self._held_requests.append(request)
            return
        await self._send(_Expected(request, fault))

    async def _send(self, *expected: _Expected) -> None:
        self._all_answered.clear()
        self._expected.extend(expected)
        for each in expected:
            self._to_broker.write(each.request.frame)
        await _drain(self._to_broker)

    async def _spoil(self, request: Request, injection: Injection) -> None:
        match injection.fault:
            case Fault.REQUEST_LOST:
                self._loses_requests = True
                injection.fire()
            case Fault.REQUEST_LATE:
                self._held_requests = [request]
                injection.fire()
            case Fault.REQUEST_RESET:
                self._to_broker.write(request.frame[: len(request.frame) // 2])
                await _drain(self._to_broker)
                injection.fire()
                self.reset()
            case Fault.REPEATED:
                await self._send(
                    _Expected(request, injection.fault), _Expected(request, injection.fault, is_copy=True)
                )
            case _:
                await self._send(_Expected(request, injection.fault))

    # broker to client

    async def _pass_responses(self) -> None:
        while (frame := await read_frame(self._from_broker)) is not None:
            expected = self._expected.popleft()
            assert correlation_of(frame) == expected.request.head.correlation_id
            frame = self._proxy.readdressed(expected.request.head.api_key, frame)
            if expected.fault is None:
                await self._answer(frame)
            else:
                await self._spoil_answer(frame, expected)
            if not self._expected:
                self._all_answered.set()
        self._all_answered.set()
        self._to_client.close()

    async def _answer(self, frame: bytes) -> None:
        if self._loses_responses:
            return
        if self._held_responses is not None:
            self._held_responses.append(frame)
            return
        self._to_client.write(frame)
        await _drain(self._to_client)

    async def _spoil_answer(self, frame: bytes, expected: _Expected) -> None:
        injection = self._proxy.injection
        assert injection is not None
        match expected.fault:
            case Fault.RESPONSE_LOST:
                self._loses_responses = True
                injection.fire()
            case Fault.RESPONSE_LATE:
                self._held_responses = [frame]
                injection.fire()
            case Fault.RESPONSE_RESET:
                injection.fire()
                self._to_client.write(frame[: len(frame) // 2])
                await _drain(self._to_client)
                self.reset()
            case _ if expected.is_copy:
                injection.fire()
                await self._answer(self._first_answer)
            case _:
                self._first_answer = frame  # passed on when the copy has been answered too

    # late, and the end

    async def release(self) -> None:
        requests, self._held_requests = self._held_requests, None
        responses, self._held_responses = self._held_responses, None
        if requests:
            self._releases = True
            await self._send(*map(_Expected, requests))
            await asyncio.wait_for(self._all_answered.wait(), _ANSWER_SECONDS)
            self._releases = False
            if self._from_client.at_eof():
                self._to_broker.close()
        for response in responses or ():
            await self._answer(response)

    def reset(self) -> None:
        """RST to both sides."""
        for writer in (self._to_client, self._to_broker):
            raw = writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    def close(self) -> None:
        for writer in (self._to_client, self._to_broker):
            writer.transport.abort()


async def _drain(writer: asyncio.StreamWriter) -> None:
    """Whoever has gone needs no answer any more: the reading side finds that out."""
    try:
        await writer.drain()
    except ConnectionError:
        return
