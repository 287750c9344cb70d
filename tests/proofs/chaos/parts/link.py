"""One link of the network: what a client sends to LISTEN goes to BROKER, and back.

    python -m tests.proofs.chaos.parts.link LISTEN BROKER '{"BROKER": LISTEN, ...}'

Where a broker tells addresses, those of the given brokers become those of their links, in answers of any
kind: so a client that came through a link stays with links, wherever leaders go. A port is as long as
another, so answers keep their length. No record of a campaign holds an address; if one did, its CRC would
tell.

A link is a process of its own, so that it can be frozen (silence: what is on its way arrives late, new
connections get no answer) and killed (every connection is reset, new ones are refused).
"""

from __future__ import annotations

import asyncio
import json
import struct
import sys
from collections.abc import Mapping

from tests.proofs.proxy.heads import read_frame

HOST = "127.0.0.1"
_CHUNK_BYTES = 1 << 18


def address(port: int) -> bytes:
    """As Kafka's protocol writes it, after the length of the host's name."""
    return HOST.encode() + struct.pack(">i", port)


class Link:
    def __init__(self, broker_port: int, links: Mapping[int, int]) -> None:
        self._broker_port = broker_port
        self._readdressed = [(address(broker), address(link)) for broker, link in links.items()]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            from_broker, to_broker = await asyncio.open_connection(
                HOST, self._broker_port, limit=_CHUNK_BYTES
            )
        except OSError:
            writer.transport.abort()
            return
        ways = [
            asyncio.create_task(self._requests(reader, to_broker)),
            asyncio.create_task(self._answers(from_broker, writer)),
        ]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for each in (writer, to_broker):
            each.transport.abort()
        await asyncio.gather(*ways)

    async def _requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while chunk := await reader.read(_CHUNK_BYTES):
                writer.write(chunk)
                await writer.drain()
        except ConnectionError:
            return

    async def _answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (frame := await read_frame(reader)) is not None:
                for told, instead in self._readdressed:
                    frame = frame.replace(told, instead)
                writer.write(frame)
                await writer.drain()
        except ConnectionError:
            return


async def main(listen: int, broker: int, links: Mapping[int, int]) -> None:
    link = Link(broker, links)
    server = await asyncio.start_server(link.serve, HOST, listen, limit=_CHUNK_BYTES)
    print("listening", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    _links = {int(port): link for port, link in json.loads(sys.argv[3]).items()}
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), _links))
