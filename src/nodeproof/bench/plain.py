"""Small requests beside the measured ones: lists, counts, health."""

import time
from array import array
from typing import TYPE_CHECKING

from nodeproof.bench.ask import Api
from nodeproof.bench.connection import ConnectError
from nodeproof.bench.exchange import Exchange
from nodeproof.bench.response import ResponseReader

if TYPE_CHECKING:
    from nodeproof.bench.client import Client

__all__ = ["fetch"]

_MAX_BYTES = 1 << 20


class _PlainReader(ResponseReader):
    """Keeps the body, whatever it is."""

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange, Api.CHAT, None)
        self.pieces: list[bytes] = []
        self.size = 0

    def _take_bodies(self, bodies: list[bytes], stamps: "array[float] | None") -> None:
        """Pieces of the body; what goes over the limit is dropped."""
        del stamps
        for body in bodies:
            if self.size < _MAX_BYTES:
                self.pieces.append(body)
                self.size += len(body)

    def _finish(self) -> None:
        """Nothing to judge."""


async def fetch(client: "Client", request: bytes) -> tuple[int, bytes]:
    """Status and body; status 0 and the reason when no whole answer came."""
    for fresh in (False, True):
        exchange = Exchange(time.monotonic())
        try:
            connection = await client.take(exchange, fresh=fresh)
        except ConnectError as error:
            return 0, str(error).encode()
        reader = _PlainReader(exchange)
        await client.carry(connection, request, exchange, reader)
        if exchange.first_byte_s or not exchange.reused:
            break
    if exchange.detail or not exchange.status:
        return 0, exchange.detail.encode()
    return exchange.status, b"".join(reader.pieces)[:_MAX_BYTES]
