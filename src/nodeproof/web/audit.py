"""``web-audit.jsonl``: who started, cancelled or was refused what from the page, a line each.

::

    {"at":"2026-12-01T02:14:05+00:00","who":"alice","peer":"10.0.0.7","role":"operator","action":"stress.start","status":202,
     "job_id":"3f0c5d6e8a9b0c1d","detail":"stream,hpl plan quick"}

On the disk before the answer goes out (fsync(2)). At a megabyte the file becomes ``web-audit.jsonl.1``, and what was called so
goes: the log never takes more than two.
"""

import contextlib
import logging
import os
import threading

import msgspec

from nodeproof.errors import WriteError
from nodeproof.host.append import AppendFile

__all__ = ["AuditEntry", "AuditLog"]

_log = logging.getLogger(__name__)
_MAX_BYTES = 1 << 20
_MAX_TEXT = 200


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One act."""

    at: str
    """RFC 3339."""
    who: str
    """Name of the token, else the local user, else the address."""
    peer: str
    role: str
    action: str
    """``stress.start``, ``stress.cancel``, ``session.open``."""
    status: int
    """Of the answer."""
    job_id: str = ""
    detail: str = ""


class AuditLog:
    """The log at ``path``. May be used from any thread."""

    def __init__(self, path: str, max_bytes: int = _MAX_BYTES) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self._lock = threading.Lock()

    def add(self, entry: AuditEntry) -> None:
        """Put it down. Raises WriteError: what cannot be put down must not be done."""
        bounded = msgspec.structs.replace(entry, detail=entry.detail[:_MAX_TEXT], who=entry.who[:_MAX_TEXT])
        with self._lock:
            file = AppendFile(self.path)
            try:
                file.append(msgspec.json.encode(bounded) + b"\n")
                file.sync()
                full = file.size >= self._max_bytes
            finally:
                file.close()
            if full:
                with contextlib.suppress(OSError):
                    os.replace(self.path, f"{self.path}.1")

    def note(self, entry: AuditEntry) -> None:
        """Put it down; a disk that does not take it is logged: the act itself is over already."""
        try:
            self.add(entry)
        except WriteError as error:
            _log.warning("the audit log lacks %s of %s: %s", entry.action, entry.who, error)

    def newest(self, limit: int) -> list[AuditEntry]:
        """At most ``limit`` entries, newest first; lines that cannot be understood are passed over."""
        found: list[AuditEntry] = []
        decoder = msgspec.json.Decoder(AuditEntry)
        for path in (self.path, f"{self.path}.1"):
            with contextlib.suppress(OSError), open(path, "rb") as file:
                for line in reversed(file.read(2 * self._max_bytes).splitlines()):
                    with contextlib.suppress(msgspec.MsgspecError):
                        found.append(decoder.decode(line))
                    if len(found) >= limit:
                        return found
        return found
