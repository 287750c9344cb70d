"""kafka-python's connections, with fewer system calls and copies on the way of the bytes.

The library reads four kilobytes at a time, copies each answer several times before it is parsed, and
gives every request a task that waits for a socket which nearly always takes it at once. Here an answer is
read into one buffer and parsed where it lies, and a request is written at once as far as the socket takes it.

Overrides what the library doesn't promise to keep: its version is pinned, and the contract suite on real
brokers, plain and by TLS, runs over this.
"""

from __future__ import annotations

import contextlib
import ssl
import time
from typing import Any

from kafka import errors as kafka_errors
from kafka.net import KafkaConnectionManager
from kafka.net.inet import create_connection
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport
from kafka.protocol.frame import KafkaBytes

_READ_BYTES = 1 << 20
_LENGTH_BYTES = 4
_NOT_NOW = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Frame(KafkaBytes):  # type: ignore[misc]
    """One answer as it arrives; what the library reads of it last, it reads without a copy."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(size_bytes)
        self.missing = size_bytes

    def take(self, data: memoryview) -> int:
        """:returns: how many of these bytes belong to this answer."""
        count = min(self.missing, len(data))
        start = len(self) - self.missing
        memoryview(self)[start : start + count] = data[:count]
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

    def receive(self, data: bytes) -> list[tuple[int, Any]]:
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
                answers.append(self._parser._process_response(frame))  # noqa: SLF001
        return answers


class _LeanTransport(KafkaTCPTransport):  # type: ignore[misc]
    async def _read_from_sock(self) -> None:
        # The connection has made its parser by now, and no answer can have come yet.
        parser = self._protocol.parser
        parser.receive_bytes = FrameReader(parser).receive
        await super()._read_from_sock()

    def write(self, data: Any) -> None:
        """Sent at once as far as the socket takes it, if nothing waits in front of it."""
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
    def _sock_recv(self) -> tuple[bytes, Exception | None]:
        try:
            data = self._sock.recv(_READ_BYTES)
        except _NOT_NOW:
            return b"", None
        except OSError as cause:
            return b"", kafka_errors.KafkaConnectionError(cause)
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
