"""What a process inherits from whoever started it, put right before anything relies on it."""

import contextlib
import os
import resource
import signal

__all__ = ["put_right"]

_ENOUGH_DESCRIPTORS = 1024
_STANDARD = (0, 1, 2)
_NEEDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)


def put_right() -> None:
    """Open standard descriptors that are closed, take signals that are blocked or ignored, and allow more open files.

    A closed descriptor 1 would be given to the next file that is opened, and whatever is printed would be written into it. With
    SIGCHLD ignored the kernel throws away how a child ended. A signal that is blocked never comes. For the main thread only.
    """
    for fd in _STANDARD:
        try:
            os.fstat(fd)
        except OSError:
            # The lowest free number is given: this one, since those below it are open by now.
            os.open(os.devnull, os.O_RDWR)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _NEEDED)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(_ENOUGH_DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
