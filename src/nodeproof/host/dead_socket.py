"""Sockets in the file system that outlived whoever listened on them."""

import errno
import os
import socket
import stat

__all__ = ["clear_dead_socket"]


def clear_dead_socket(path: str, kind: int = socket.SOCK_STREAM) -> bool:
    """Remove the socket at ``path`` if nobody listens on it; whether the way is free now.

    Only a refusal proves that nobody does: a backlog that is full, or no right to connect, does not. Raises FileExistsError for
    what is no socket, which stays, and OSError.
    """
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return True
    if not stat.S_ISSOCK(mode):
        raise FileExistsError(errno.EEXIST, "there is a file that is no socket", path)
    with socket.socket(socket.AF_UNIX, kind) as probe:
        probe.setblocking(False)  # connect(2) to a Unix socket waits for room in the backlog, and for nothing else
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return True
        except FileNotFoundError:
            return True
        except OSError:
            return False
    return False
