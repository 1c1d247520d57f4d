"""``nodeproof reader``: what only root may read, for the daemon; started by systemd through its socket."""

import argparse
import signal
import threading

from nodeproof import log
from nodeproof.errors import UsageError
from nodeproof.host.reader.rights import SOCKET
from nodeproof.host.reader.server import ReaderServer, listening_socket
from nodeproof.host.signals import Signals
from nodeproof.host.users import user_number

__all__ = ["run"]

_WAIT_S = 3600.0


def run(options: argparse.Namespace) -> int:
    """Serve until told to end. Raises UsageError for a user that there is none of, and where it cannot listen."""
    log.setup("info", journal="JOURNAL_STREAM" in options.environ)
    try:
        users = [user_number(name) for name in options.user]
    except UsageError as error:
        raise UsageError(f"--user {error}") from None
    server = ReaderServer(listening_socket(options.socket or SOCKET, options.environ), users)
    with Signals(signal.SIGTERM, signal.SIGINT) as signals:
        threading.Thread(target=server.serve, name="reader-accept", daemon=True).start()
        while not signals.wait(_WAIT_S):
            pass
        server.close()
    return 0
