"""Addresses to listen on: how they are written, bound, and who has them when they are taken."""

import errno
import os
import socket

from nodeproof.errors import AddressInUseError, UsageError
from nodeproof.host.dead_socket import clear_dead_socket
from nodeproof.host.socket_holder import holder_of_port, peer_of_socket

__all__ = ["LOOPBACK_NAMES", "bind", "is_ip", "is_loopback", "parse_address"]

LOOPBACK_NAMES = frozenset({"localhost", "localhost."})
_BACKLOG = 64
_EXAMPLE = "127.0.0.1:19320, [::1]:19320 or unix:/run/nodeproof/metrics.sock"
_SOCKET_MODE = 0o660


def parse_address(text: str, example: str = _EXAMPLE) -> tuple[str, int] | str:
    """``127.0.0.1:19320``, ``[::1]:19320`` or ``:19320`` as host and port; ``unix:/path`` as a path.

    Raises UsageError, with the ``example`` of what the program that listens would take.
    """
    if text.startswith("unix:"):
        path = text.removeprefix("unix:")
        if not path.startswith("/"):
            raise UsageError(f"{text!r}: the path of a Unix socket begins with a slash")
        return path
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise UsageError(f"{text!r} is no address; write {example}")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise UsageError(f"{text!r}: an IPv6 address stands in brackets, [{host}]:{port}")
    return host, int(port)


def bind(address: tuple[str, int] | str, remedy: str) -> socket.socket:
    """A listening socket on what :func:`parse_address` gave.

    Raises AddressInUseError, naming the holder, when it is taken; UsageError when it cannot be had. ``remedy`` ends each message.
    """
    return _bind_path(address, remedy) if isinstance(address, str) else _bind_port(*address, remedy)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach ``host``."""
    return host.lower() in LOOPBACK_NAMES or host == "::1" or (host.startswith("127.") and is_ip(host))


def is_ip(name: str) -> bool:
    """Whether ``name`` is an IP address, in brackets or not."""
    family = socket.AF_INET6 if ":" in name else socket.AF_INET
    try:
        socket.inet_pton(family, name.removeprefix("[").removesuffix("]"))
    except (OSError, ValueError):
        return False
    return True


def _bind_port(host: str, port: int, remedy: str) -> socket.socket:
    shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        family, kind, protocol, _, target = socket.getaddrinfo(
            # As bytes: Python looks a text up in its tables for international names, which cost 0.4 MiB.
            (host or "0.0.0.0").encode(),  # noqa: S104 - an empty host is how its owner asks for all interfaces
            port,
            type=socket.SOCK_STREAM,
            flags=socket.AI_PASSIVE,
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise UsageError(f"cannot listen on {shown}: {error.strerror or error}; {remedy}") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((str(target[0]).encode(), *target[1:]))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise AddressInUseError(shown, holder_of_port(port), remedy) from None
        raise UsageError(f"cannot listen on {shown}: {error.strerror or error}; {remedy}") from None
    return listener


def _bind_path(path: str, remedy: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if clear_dead_socket(path):
            listener.bind(path)
            os.chmod(path, _SOCKET_MODE)
            listener.listen(_BACKLOG)
            return listener
    except OSError as error:
        listener.close()
        raise UsageError(f"cannot listen on unix:{path}: {error.strerror or error}; {remedy}") from None
    listener.close()
    raise AddressInUseError(f"unix:{path}", peer_of_socket(path) or "a process that answers nobody", remedy)
