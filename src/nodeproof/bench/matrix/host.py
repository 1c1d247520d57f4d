"""Servers that the roster starts: contained, waited for, and gone before the next one."""

import os
import time
from collections.abc import Callable

from nodeproof.bench.address import Address
from nodeproof.bench.matrix.roster import Entry
from nodeproof.errors import CommandError, RunError
from nodeproof.host.containment import Contained, Containment
from nodeproof.host.job_environment import allowed_environment
from nodeproof.host.socket_holder import holder_of_port, pids_of_port
from nodeproof.model.process import Limits

__all__ = ["boot", "restore"]

_LOOK_S = 0.1
_RESTORE_S = 600.0
_GRACE_S = 10.0


def boot(
    entry: Entry,
    url: str,
    output_path: str,
    answers: Callable[[], bool],
    should_stop: Callable[[], bool],
    keep_fds: tuple[int, ...],
) -> Contained:
    """Start the server of ``entry`` and wait until it ``answers``. Raises RunError with the end of what it printed."""
    port = Address.of(url).port
    if pids_of_port(port):
        raise RunError(f"port {port} has an owner already, {holder_of_port(port)}: its server would be measured; end it first")
    try:
        server = Containment().start(
            entry.start,
            cwd=os.getcwd(),
            output_path=output_path,
            environment=allowed_environment(os.environ),
            limits=Limits(grace_s=_GRACE_S),
            keep_fds=keep_fds,
        )
    except CommandError as error:
        raise RunError(f"the server of {entry.model} cannot be started: {error}") from None
    ends_s = time.monotonic() + entry.ready_s
    while not answers():
        ended = server.wait(_LOOK_S)
        if ended is not None or should_stop() or time.monotonic() > ends_s:
            tail = " ".join(server.tail().decode("utf-8", "replace").split())[-200:]
            server.close()
            why = ended.reason if ended is not None else f"it does not answer within {entry.ready_s:g} s"
            raise RunError(f"the server of {entry.model} did not come up: {why}: {tail}")
    return server


def restore(argv: tuple[str, ...], output_path: str) -> str:
    """Run the command that brings back what served before; what went wrong, empty when nothing did."""
    try:
        job = Containment().start(
            argv,
            cwd=os.getcwd(),
            output_path=output_path,
            environment=allowed_environment(os.environ),
            limits=Limits(duration_s=_RESTORE_S),
        )
    except CommandError as error:
        return str(error)
    with job:
        ended = job.wait(_RESTORE_S + 60.0)
        if ended is None or not ended.succeeded:
            return "it did not end" if ended is None else ended.reason
    return ""
