"""``nodeproof web``: the page alone, from the files that a daemon writes."""

import argparse
import signal

from nodeproof import log
from nodeproof.cli.options import load_config
from nodeproof.host.allocator import share_one_arena
from nodeproof.host.signals import Signals

__all__ = ["run"]

_WAIT_S = 3600.0


def run(options: argparse.Namespace) -> int:
    """Serve until told to end. Needs no daemon: without one it says so."""
    from nodeproof.web.server import WebServer  # noqa: PLC0415 - asyncio and Starlette, after the options are known to be good

    share_one_arena()
    log.setup("warning")
    config = load_config(options)
    directory = options.snapshot_dir or config.snapshot.dir
    with Signals(signal.SIGTERM, signal.SIGINT) as signals:
        server = WebServer(directory, options.address or config.web.address, config.web.allowed_hosts)
        server.start()
        print(f"Serving the snapshots in {directory} at {server.url}. Ctrl-C ends.", flush=True)
        try:
            while not signals.wait(_WAIT_S):
                pass
        finally:
            server.stop()
    return 0
