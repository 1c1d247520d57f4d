"""The page beside a daemon in one process: begun with the first configuration, kept through reloads."""

import argparse
import logging
from typing import TYPE_CHECKING

from nodeproof.config.schema import Config
from nodeproof.web.light import load_asyncio

if TYPE_CHECKING:
    from nodeproof.web.server import WebServer

__all__ = ["Page"]

_log = logging.getLogger(__name__)


class Page:
    """The web server of ``nodeproof up``."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._server: WebServer | None = None
        self._config: Config | None = None

    @property
    def url(self) -> str:
        """Where it is; empty when it is switched off."""
        return "" if self._server is None else self._server.url

    def follow(self, config: Config) -> None:
        """Begin by the first configuration. Raises AddressInUseError or UsageError when it cannot listen.

        A later one that asks for something else is told of: the page moves with the next start.
        """
        if self._config is not None:
            if (config.web, config.snapshot.dir) != (self._config.web, self._config.snapshot.dir):
                _log.warning("web and snapshot.dir of the page take effect with the next start")
            return
        if config.web.enabled and config.snapshot.enabled:
            load_asyncio(with_tls=bool(config.web.tls_cert))
            from nodeproof.cli.web_makers import makers_of  # noqa: PLC0415 - asyncio and Starlette only where there is a page
            from nodeproof.web.server import WebServer  # noqa: PLC0415

            self._server = WebServer(config.snapshot.dir, config.web, makers_of(self._options, config))
            self._server.start()
        elif config.web.enabled:
            _log.warning("no page: it is made of snapshots, and snapshot.enabled is false")
        self._config = config

    def close(self) -> None:
        """End it."""
        if self._server is not None:
            self._server.stop()
