"""The web server on a thread of its own; asyncio, Starlette and uvicorn are loaded with this module and nowhere else."""

import asyncio
import socket
import threading
from collections.abc import Collection

import uvicorn

from nodeproof.errors import UsageError
from nodeproof.host import allocator, listen
from nodeproof.web.application import make_application
from nodeproof.web.feed import Feed

__all__ = ["WebServer"]

_REMEDY = "stop that process, or set web.address to another one"
_STOP_S = 3.0
_MAX_CONNECTIONS = 512
_MAX_HEAD_BYTES = 16 * 1024


class WebServer:
    """Serves the snapshots of ``directory`` at ``address`` from :meth:`start` to :meth:`stop`."""

    def __init__(self, directory: str, address: str, allowed_hosts: Collection[str] = ()) -> None:
        """Binds. Raises AddressInUseError, naming the holder; UsageError for an address that others can reach."""
        bound = listen.parse_address(address)
        if isinstance(bound, str) or not listen.is_loopback(bound[0]):
            raise UsageError(
                f"will not listen on {address}: others can reach it, and this version has neither token nor TLS for them; "
                "listen on 127.0.0.1 and come through ssh -L"
            )
        allocator.return_large_blocks()
        self._socket = listen.bind(bound, _REMEDY)
        self.feed = Feed(directory)
        self._server = uvicorn.Server(
            uvicorn.Config(
                make_application(self.feed, lambda: self._server.should_exit, (bound[0], *allowed_hosts)),
                loop="asyncio",
                http="h11",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                limit_concurrency=_MAX_CONNECTIONS,
                h11_max_incomplete_event_size=_MAX_HEAD_BYTES,
                timeout_graceful_shutdown=1,
            )
        )
        self._thread = threading.Thread(target=self._run, name="web", daemon=True)

    @property
    def url(self) -> str:
        """Where the page is."""
        host, port = self._socket.getsockname()[:2]
        return f"http://[{host}]:{port}/" if self._socket.family == socket.AF_INET6 else f"http://{host}:{port}/"

    def start(self) -> None:
        """Serve from now on."""
        self._thread.start()

    def stop(self) -> None:
        """End streams and connections, and give the port back; safe to call again."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(_STOP_S)
        self._socket.close()

    def _run(self) -> None:
        asyncio.run(self._server.serve(sockets=[self._socket]))
