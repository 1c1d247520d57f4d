"""Telling systemd how we are (sd_notify(3)): ready, reloading, stopping, alive."""

import os
import socket
import time
from collections.abc import Mapping, Sequence

__all__ = ["Notifier"]

_PATIENCE_S = 2.0
"""For what a service manager waits for: that we are ready, or ending."""


class Notifier:
    """Sends states to the socket of ``NOTIFY_SOCKET``; without one, nothing.

    The variables are taken out of the environment, so that no child can speak in our name.
    """

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        source = os.environ if environ is None else environ
        self._address = source.get("NOTIFY_SOCKET", "")
        usec = source.get("WATCHDOG_USEC", "")
        own = source.get("WATCHDOG_PID", "") in {"", str(os.getpid())}
        self.watchdog_s = int(usec) / 1e6 if usec.isdecimal() and own else None
        """Systemd expects a sign of life this often; None = it does not."""
        for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"):
            os.environ.pop(name, None)

    @property
    def active(self) -> bool:
        """Whether a service manager listens."""
        return bool(self._address)

    def reloading(self) -> bool:
        """Say that the configuration is being loaded anew, and since when: systemd compares with its own CLOCK_MONOTONIC."""
        return self.send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def alive(self, status: str) -> bool:
        """Send a sign of life. Never waits: a service manager that does not read must not keep us from our work."""
        return self._send(("WATCHDOG=1", f"STATUS={status}"), 0.0)

    def send(self, *states: str) -> bool:
        """Send states such as ``READY=1``; False when nobody could be told, within two seconds."""
        return self._send(states, _PATIENCE_S)

    def _send(self, states: Sequence[str], patience_s: float) -> bool:
        if not self._address:
            return False
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                # Its queue is short (net.unix.max_dgram_qlen, 10): when it is full, sending would wait for the reader.
                sender.settimeout(patience_s)
                sender.sendto("\n".join(states).encode(), address)
        except OSError:
            return False
        return True
