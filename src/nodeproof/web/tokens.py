"""The token file: who may come from other machines, and as what.

::

    # role     name    token
    operator   alice   3f0c5d6e...                    at least 20 characters without blanks
    viewer     wall    sha256:9f86d081884c7d65...     or the SHA-256 of one, so that the file gives nothing away

The file is read again when it changes: a line that goes takes its rights along at once. A file that can no longer be read or
understood lets nobody in.
"""

import hashlib
import hmac
import logging
import os
import re
import stat

from nodeproof.errors import UsageError
from nodeproof.web.roles import Role, TokenHolder

__all__ = ["TokenFile"]

_log = logging.getLogger(__name__)
_MAX_BYTES = 256 * 1024
_MIN_CHARS = 20
_HASHED = re.compile(r"sha256:([0-9a-fA-F]{64})")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")


_Stamp = tuple[int, int, int]


class TokenFile:
    """The file at ``path``, looked at again whenever it has changed."""

    def __init__(self, path: str) -> None:
        """Raises UsageError, naming place and remedy."""
        self.path = path
        self._stamp: _Stamp | None = None
        self._holders: dict[bytes, TokenHolder] = {}
        self._read()

    def digest_of(self, token: str) -> bytes:
        """What stands for ``token`` in memory and in sessions."""
        return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()

    def holder(self, digest: bytes) -> TokenHolder | None:
        """Whose token has this digest; None when nobody's. Every line is compared, each in constant time."""
        self._follow()
        found = None
        for known, holder in self._holders.items():
            if hmac.compare_digest(known, digest):
                found = holder
        return found

    def _follow(self) -> None:
        try:
            if _stamp(os.stat(self.path)) == self._stamp:
                return
            self._read()
        except (OSError, UsageError) as error:
            if self._holders:
                _log.error("nobody is let in from now on: %s", error)
            self._holders = {}
            self._stamp = None

    def _read(self) -> None:
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                about = os.fstat(fd)
                content = os.read(fd, _MAX_BYTES + 1) if stat.S_ISREG(about.st_mode) else b""
            finally:
                os.close(fd)
        except OSError as error:
            raise self._fault(f"{os.strerror(error.errno or 0)}", "name a file that this user can read") from None
        if not stat.S_ISREG(about.st_mode) or len(content) > _MAX_BYTES:
            raise self._fault("is no regular file of at most 256 KiB", "name another file")
        if about.st_mode & (stat.S_IRWXO | stat.S_IWGRP):
            raise self._fault("others may read or change it", f"chmod 600 {self.path}")
        self._holders = self._parse(content)
        self._stamp = _stamp(about)

    def _parse(self, content: bytes) -> dict[bytes, TokenHolder]:
        holders: dict[bytes, TokenHolder] = {}
        for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
            fields = line.split()
            if not fields or fields[0].startswith("#"):
                continue
            if len(fields) != 3:
                raise self._fault(f"line {number} has {len(fields)} fields", "write: operator|viewer NAME TOKEN")
            role, name, token = fields
            if role not in {Role.VIEWER, Role.OPERATOR}:
                raise self._fault(f"line {number}: {role[:40]!r} is no role", "write operator or viewer")
            if not _NAME.fullmatch(name):
                raise self._fault(f"line {number}: the name is none", "write up to 64 letters, digits and . _ @ -")
            hashed = _HASHED.fullmatch(token)
            if hashed is None and (len(token) < _MIN_CHARS or token.startswith("sha256:")):
                raise self._fault(f"line {number}: the token is too short", "make one with: openssl rand -hex 32")
            digest = bytes.fromhex(hashed[1]) if hashed is not None else self.digest_of(token)
            if digest in holders:
                raise self._fault(f"line {number}: the token of {holders[digest].name} stands there again", "remove one")
            holders[digest] = TokenHolder(name, Role(role))
        if not holders:
            raise self._fault("holds no token", "add a line: operator NAME TOKEN")
        return holders

    def _fault(self, problem: str, remedy: str) -> UsageError:
        return UsageError(f"web.token_file {self.path}: {problem}; {remedy}")


def _stamp(about: os.stat_result) -> _Stamp:
    return (about.st_ino, about.st_size, about.st_mtime_ns)
