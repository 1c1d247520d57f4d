"""The server: reads requests, asks its behaviour what to do, and does it on time."""

import asyncio
import contextlib
import socket
import ssl
import struct
import threading
import time
from array import array
from collections import deque
from collections.abc import Iterator
from types import TracebackType
from typing import Self

import httptools
import msgspec

from nodeproof.bench.testing.script import Behaviour, End, Received, Script, Served, Step

__all__ = ["ScriptServer"]

_START_S = 10.0
_LOG_PATH = "/nodeproof/log"
_monotonic = time.monotonic


class ScriptServer:
    """A server on loopback with a thread of its own. ``with`` starts and stops it."""

    def __init__(
        self, behaviour: Behaviour, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1", port: int = 0
    ) -> None:
        self.behaviour = behaviour
        self.served: list[Served] = []
        """Every request so far, in the order in which they were read."""
        self.connections = 0
        """Connections accepted so far."""
        self.keep_log = True
        """Whether :attr:`served` is kept; a run of a million requests does without."""
        self.waiting: deque[_Player] = deque()
        self.running = 0
        self._tls = tls
        self._host, self._port = host, port
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._started = threading.Event()
        self._error: BaseException | None = None
        self._number = 0

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._port

    @property
    def url(self) -> str:
        """Its base address."""
        return f"{'https' if self._tls else 'http'}://{self._host}:{self._port}"

    def start(self) -> None:
        """Begin to listen. Raises OSError."""
        self._thread = threading.Thread(target=self._run, name="script-server", daemon=True)
        self._thread.start()
        self._started.wait(_START_S)
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """End, with all that is under way."""
        if self._loop is not None and self._stop is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stop.set)
        if self._thread is not None:
            self._thread.join(_START_S)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def wait(self) -> None:
        """Until it is stopped."""
        if self._thread is not None:
            self._thread.join()

    def number(self) -> int:
        """Of the next request."""
        self._number += 1
        return self._number - 1

    def log_document(self) -> bytes:
        """Writes of every answer by its number, as JSON."""
        rows = {str(served.request.number): served.writes.tolist() for served in self.served}
        return msgspec.json.encode(rows)

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except OSError as error:
            self._error = error
        finally:
            self._started.set()

    async def _main(self) -> None:
        loop = asyncio.get_running_loop()
        self._loop, self._stop = loop, asyncio.Event()
        connections: set[_Connection] = set()
        listener = socket.create_server((self._host, self._port), backlog=4096)
        server = await loop.create_server(lambda: _Connection(self, connections), sock=listener, ssl=self._tls)
        self._port = server.sockets[0].getsockname()[1]
        self._started.set()
        try:
            await self._stop.wait()
        finally:
            server.close()
            for connection in list(connections):
                connection.abort()
            await server.wait_closed()

    def next_turn(self) -> None:
        """Give a slot that came free to who waits longest."""
        slots = self.behaviour.slots
        while self.waiting and (slots is None or self.running < slots):
            player = self.waiting.popleft()
            if not player.gone:
                self.running += 1
                player.begin()


class _Connection(asyncio.Protocol):
    """One connection; answers one request after the other."""

    def __init__(self, server: ScriptServer, all_of_them: "set[_Connection]") -> None:
        self._server = server
        self._all = all_of_them
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._url = b""
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._queue: deque[Received] = deque()
        self._player: _Player | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # a stream's
        self._server.connections += 1
        self._all.add(self)
        sock = transport.get_extra_info("socket")
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._all.discard(self)
        if self._player is not None:
            self._player.lost()
            self._player = None

    def abort(self) -> None:
        """Reset the connection."""
        if self._transport is None:
            return
        sock = self._transport.get_extra_info("socket")
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    # Called by the parser

    def on_message_begin(self) -> None:
        self._url, self._headers, self._body = b"", {}, []

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        request = Received(
            number=self._server.number(),
            method=self._parser.get_method().decode(),
            path=self._url.decode("latin-1"),
            headers=self._headers,
            body=b"".join(self._body),
            at_s=_monotonic(),
        )
        self._queue.append(request)
        self._next()

    def _next(self) -> None:
        if self._player is not None or not self._queue:
            return
        request = self._queue.popleft()
        if request.path == _LOG_PATH:
            script = Script(steps=[Step(0.0, self._server.log_document())], content_type="application/json", chunked=False)
        else:
            script = self._server.behaviour(request)
        served = Served(request, array("d"))
        if self._server.keep_log and request.path != _LOG_PATH:
            self._server.served.append(served)
        assert self._transport is not None  # noqa: S101 - made before data came
        player = self._player = _Player(self._server, self, self._transport, script, served)
        if script.slot:
            self._server.waiting.append(player)
            self._server.next_turn()
        else:
            player.begin()

    def ended(self, end: End) -> None:
        """The answer is out."""
        self._player = None
        if end is End.CLEAN:
            self._next()
        elif end is End.CLOSE and self._transport is not None:
            self._transport.close()
        elif end is End.ABORT:
            self.abort()


class _Player:
    """Plays one script."""

    def __init__(
        self, server: ScriptServer, connection: _Connection, transport: asyncio.Transport, script: Script, served: Served
    ) -> None:
        self.gone = False
        self._server = server
        self._connection = connection
        self._transport = transport
        self._script = script
        self._served = served
        self._steps: Iterator[Step] = iter(())
        self._step: Step | None = None
        self._base_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._head_out = False
        self._held = False

    def begin(self) -> None:
        """Its turn has come."""
        script = self._script
        self._held = script.slot
        self._served.started_s = self._base_s = _monotonic()
        steps = script.steps
        if not script.chunked and not script.until_close:
            steps = list(steps)
        self._length = sum(len(step.data) for step in steps) if isinstance(steps, list) else 0
        self._steps = iter(steps)
        self._step = next(self._steps, None)
        if script.head_at_s is not None:
            self._timer = self._loop.call_at(self._base_s + script.head_at_s, self._send_head)
        self._wait()

    def lost(self) -> None:
        """The client went away."""
        self.gone = True
        self._served.disconnected = True
        if self._timer is not None:
            self._timer.cancel()
        self._over()

    def _wait(self) -> None:
        if self._step is None:
            self._finish()
        else:
            self._timer = self._loop.call_at(self._base_s + self._step.at_s, self._play)

    def _play(self) -> None:
        script, writes = self._script, self._served.writes
        step = self._step
        while step is not None:
            head = b"" if self._head_out else self._head()
            data = b"%x\r\n%b\r\n" % (len(step.data), step.data) if script.chunked and step.data else step.data
            writes.append(_monotonic())
            self._transport.write(head + data)
            step = self._step = next(self._steps, None)
            if step is not None and self._base_s + step.at_s > _monotonic():
                self._timer = self._loop.call_at(self._base_s + step.at_s, self._play)
                return
        self._finish()

    def _finish(self) -> None:
        script = self._script
        if script.end is End.CLEAN:
            head = b"" if self._head_out else self._head()
            self._transport.write(head + (b"0\r\n\r\n" if script.chunked else b""))
        if script.end is not End.HANG:
            self._over()
            self._connection.ended(End.CLOSE if script.until_close and script.end is End.CLEAN else script.end)

    def _over(self) -> None:
        self._served.ended_s = _monotonic()
        self._server.behaviour.ended(self._served)
        if self._held:
            self._held = False
            self._server.running -= 1
            self._server.next_turn()

    def _send_head(self) -> None:
        if not self._head_out:
            self._transport.write(self._head())

    def _head(self) -> bytes:
        self._head_out = True
        script = self._script
        lines = [f"HTTP/1.1 {script.status} {'OK' if script.status == 200 else 'Status'}", f"Content-Type: {script.content_type}"]
        lines += [f"{name}: {value}" for name, value in script.headers.items()]
        if script.chunked:
            lines.append("Transfer-Encoding: chunked")
        elif not script.until_close:
            lines.append(f"Content-Length: {self._length}")
        return "\r\n".join([*lines, "", ""]).encode("latin-1")
