"""``nodeproof runner``: own stress jobs for whoever may ask; ``describe`` and ``run`` are the client that an adapter calls."""

import argparse
import signal
import sys

import msgspec

from nodeproof import log
from nodeproof.cli.options import load_config
from nodeproof.cli.state_lease import working_state
from nodeproof.cli.stress_manager import manager_of
from nodeproof.cli.table import printable_lines
from nodeproof.errors import UsageError
from nodeproof.host.notify import Notifier
from nodeproof.host.signals import Signals
from nodeproof.host.unix_http import UnixHttpServer
from nodeproof.host.unix_listener import UnixListener
from nodeproof.stress.runner.access import Access
from nodeproof.stress.runner.client import RunnerClient
from nodeproof.stress.runner.place import DEFAULT_SOCKET, SOCKET_VARIABLE
from nodeproof.stress.runner.routes import V1_BENCHMARKS, Routes
from nodeproof.stress.runner.service import RunnerService
from nodeproof.stress.runner.wire import V1Run

__all__ = ["run"]

_WAIT_S = 3600.0
_HEALTH_S = 8.0
_OK = 300


def run(options: argparse.Namespace) -> int:
    """Serve, or ask."""
    path = options.socket or options.environ.get(SOCKET_VARIABLE) or DEFAULT_SOCKET
    if options.action == "serve":
        return _serve(options, path)
    if options.action == "health":
        return _ask(options, path)
    if options.name not in V1_BENCHMARKS:
        raise UsageError(f"{options.name!r}: expected one of {', '.join(V1_BENCHMARKS)}")
    return _ask(options, path)


def _serve(options: argparse.Namespace, path: str) -> int:
    notifier = Notifier()
    log.setup("info", journal="JOURNAL_STREAM" in options.environ)
    access = Access(
        options.operators.split(",") if options.operators else (), options.viewers.split(",") if options.viewers else ()
    )
    service = RunnerService(manager_of(load_config(options), options.environ))
    listener = UnixListener(path, mode=_mode(options.socket_mode))
    with working_state(options), Signals(signal.SIGTERM, signal.SIGINT) as signals:
        server = UnixHttpServer(Routes(service, access))
        server.start(listener.open())
        try:
            notifier.send("READY=1", "STATUS=waiting for jobs")
            print(f"Running stress jobs for those who ask at {path}. Ctrl-C ends.", flush=True)
            while not signals.wait(_WAIT_S):
                pass
        finally:
            notifier.send("STOPPING=1")
            service.shutdown()  # first: a caller that waits for the end of its job gets it
            server.stop()
            listener.close()
    return 0


def _ask(options: argparse.Namespace, path: str) -> int:
    """Print the answer as it is, as the reference's client does."""
    client = RunnerClient(path)
    if options.action == "health":
        status, data = client.ask("GET", "/v1/healthz", answer_s=_HEALTH_S)
    elif options.action == "describe":
        status, data = client.ask("GET", f"/v1/benchmarks/{options.name}")
    else:
        status, data = client.ask("POST", "/v1/runs", msgspec.json.encode(V1Run(options.name)), answer_s=None)
    if status >= _OK:
        print(printable_lines(data.decode("utf-8", "replace")), file=sys.stderr)
        return 1
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
    return 0


def _mode(text: str) -> int:
    """Raises UsageError for what is no octal number."""
    try:
        return int(text, 8)
    except ValueError:
        raise UsageError(f"--socket-mode {text}: expected an octal number, such as 0660") from None
