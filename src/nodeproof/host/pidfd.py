"""Signals that cannot hit a stranger.

Between the look at a process and the signal its number may pass to another. A descriptor of the process (pidfd_open(2), Linux
5.3) is bound to one process for good: it is opened first, then number and start are compared, then the signal goes through the
descriptor. On older kernels, and where a sandbox forbids the call, the comparison is made right before kill(2).
"""

import errno
import os
import signal
from enum import StrEnum

from nodeproof.host.process_tree import Identity, ProcessTree

__all__ = ["Sent", "open_process", "send_signal"]

_NO_SUCH_CALL = {errno.ENOSYS, errno.EPERM}
"""EPERM: sandboxes answer so to calls they do not know; pidfd_open itself never does."""


class Sent(StrEnum):
    """What became of a signal."""

    SENT = "sent"
    GONE = "gone"
    DENIED = "denied"
    """The process belongs to somebody whose processes we may not signal."""


def open_process(pid: int) -> int:
    """Descriptor that becomes readable when ``pid`` ends; -1 where the kernel has none. Raises ProcessLookupError."""
    try:
        return os.pidfd_open(pid)
    except OSError as error:
        if error.errno in _NO_SUCH_CALL:
            return -1
        raise


def send_signal(target: Identity, number: signal.Signals, tree: ProcessTree) -> Sent:
    """Send ``number`` to exactly that process."""
    try:
        fd = open_process(target.pid)
    except OSError:
        return Sent.GONE
    try:
        stat = tree.stat(target.pid)
        if stat is None or stat.identity != target:
            return Sent.GONE
        if fd >= 0:
            signal.pidfd_send_signal(fd, number)
        else:
            os.kill(target.pid, number)
    except ProcessLookupError:
        return Sent.GONE
    except PermissionError:
        return Sent.DENIED
    finally:
        if fd >= 0:
            os.close(fd)
    return Sent.SENT
