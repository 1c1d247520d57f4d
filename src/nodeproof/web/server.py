"""The web server on a thread of its own; asyncio and Starlette are loaded with this module and nowhere else."""

import asyncio
import contextlib
import logging
import socket
import threading
from typing import TYPE_CHECKING

from nodeproof.config.schema import WebConfig
from nodeproof.errors import UsageError
from nodeproof.host import allocator, listen
from nodeproof.web.access import Access
from nodeproof.web.application import make_application
from nodeproof.web.backstage import Backstage, Makers
from nodeproof.web.connection import Connection, Limits
from nodeproof.web.feed import Feed
from nodeproof.web.reach import tls_files

if TYPE_CHECKING:
    import ssl

    from nodeproof.web.tokens import TokenFile

__all__ = ["WebServer"]

_log = logging.getLogger(__name__)
_REMEDY = "stop that process, or set web.address to another one"
_STOP_S = 3.0
_JOB_STOP_S = 15.0
_BACKLOG = 512
_EXAMPLE = "127.0.0.1:9527 or [::1]:9527"
_ENDING_S = 1.0
_ENDING_LOOK_S = 0.02
_HANDSHAKE_S = 10.0
_TLS_ENDING_S = 2.0


class WebServer:
    """Serves the snapshots of ``directory`` as ``web`` says, from :meth:`start` to :meth:`stop`."""

    def __init__(self, directory: str, web: WebConfig, makers: Makers | None = None, limits: Limits | None = None) -> None:
        """Binds. Raises AddressInUseError, naming the holder; UsageError for what cannot be, or would let others in."""
        bound = listen.parse_address(web.address, _EXAMPLE)
        if isinstance(bound, str):
            raise UsageError(f"web.address {web.address}: a browser reaches no Unix socket; write {_EXAMPLE}")
        loopback = listen.is_loopback(bound[0])
        self._tls = _tls(web, loopback=loopback)
        tokens = _tokens(web)
        allocator.return_large_blocks()
        self._socket = listen.bind(bound, _REMEDY)
        self.feed = Feed(directory)
        self._backstage = Backstage(makers or Makers())
        self._limits = limits or Limits()
        self._access = Access(tokens, loopback=loopback, secure=self._tls is not None)
        self._names = (bound[0], *web.allowed_hosts)
        self._connections: set[Connection] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._begun = threading.Event()
        self._thread = threading.Thread(target=self._run, name="web", daemon=True)

    @property
    def url(self) -> str:
        """Where the page is."""
        host, port = self._socket.getsockname()[:2]
        scheme = "http" if self._tls is None else "https"
        return f"{scheme}://[{host}]:{port}/" if self._socket.family == socket.AF_INET6 else f"{scheme}://{host}:{port}/"

    def start(self) -> None:
        """Serve from now on."""
        self._thread.start()
        self._begun.wait(_STOP_S)

    def stop(self) -> None:
        """End streams and connections, give the port back, and end a stress job of this process; safe to call again."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stop.set)
        if self._thread.is_alive():
            self._thread.join(_STOP_S)
        self._socket.close()
        self._backstage.close(_JOB_STOP_S)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception:  # noqa: BLE001 - the daemon goes on without its page
            _log.exception("the page ends")
        finally:
            self._begun.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        application = make_application(self.feed, self._backstage, self._access, self._stop.is_set, self._names)
        secure = self._tls is not None
        server = await self._loop.create_server(
            lambda: Connection(application, self._connections, self._limits, secure=secure),
            sock=self._socket,
            ssl=self._tls,
            backlog=_BACKLOG,
            ssl_handshake_timeout=_HANDSHAKE_S if secure else None,
            ssl_shutdown_timeout=_TLS_ENDING_S if secure else None,
        )
        self._begun.set()
        await self._stop.wait()
        # A client that was accepted in this turn gets its transport in the next one, for which the server must not be closed yet:
        # asyncio would lose the socket (`Server._attach`).
        self._loop.remove_reader(self._socket)
        await asyncio.sleep(0)
        server.close()
        await self._end_connections()

    async def _end_connections(self) -> None:
        """Let answers that are on their way go out, for a moment."""
        ends_s = asyncio.get_running_loop().time() + _ENDING_S
        await asyncio.sleep(_ENDING_LOOK_S)  # those that were being accepted
        while self._connections and asyncio.get_running_loop().time() < ends_s:
            for connection in list(self._connections):
                connection.close()
            await asyncio.sleep(_ENDING_LOOK_S)
        for connection in list(self._connections):
            connection.abort()
        await asyncio.sleep(_ENDING_LOOK_S)  # a transport closes its socket at the next turn


def _tls(web: WebConfig, *, loopback: bool) -> "ssl.SSLContext | None":
    """What encrypts; loaded only where something does. Raises UsageError."""
    if not tls_files(web, loopback=loopback):
        return None
    from nodeproof.web.tls import tls_context  # noqa: PLC0415 - OpenSSL, only where it is wanted

    return tls_context(web)


def _tokens(web: WebConfig) -> "TokenFile | None":
    """Who is let in; None for everybody on this machine. Raises UsageError."""
    if not web.token_file:
        return None
    from nodeproof.web.tokens import TokenFile  # noqa: PLC0415 - hashes come with OpenSSL

    return TokenFile(web.token_file)
