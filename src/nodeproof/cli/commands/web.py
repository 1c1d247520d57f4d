"""``nodeproof web``: the page alone, from the files that a daemon writes."""

import argparse
import signal

import msgspec

from nodeproof import log
from nodeproof.cli.options import load_config
from nodeproof.cli.state_lease import working_state
from nodeproof.host.allocator import share_one_arena
from nodeproof.host.signals import Signals
from nodeproof.web.light import load_asyncio

__all__ = ["run"]

_WAIT_S = 3600.0


def run(options: argparse.Namespace) -> int:
    """Serve until told to end. Needs no daemon: without one it says so."""
    share_one_arena()
    log.setup("warning")
    config = load_config(options)
    load_asyncio(with_tls=bool(config.web.tls_cert))
    from nodeproof.cli.web_makers import makers_of  # noqa: PLC0415 - asyncio and Starlette, after the options are known to be good
    from nodeproof.web.server import WebServer  # noqa: PLC0415

    directory = options.snapshot_dir or config.snapshot.dir
    with working_state(options), Signals(signal.SIGTERM, signal.SIGINT) as signals:
        web = msgspec.structs.replace(config.web, address=options.address or config.web.address)
        server = WebServer(directory, web, makers_of(options, config))
        server.start()
        print(f"Serving the snapshots in {directory} at {server.url}. Ctrl-C ends.", flush=True)
        try:
            while not signals.wait(_WAIT_S):
                pass
        finally:
            server.stop()
    return 0
