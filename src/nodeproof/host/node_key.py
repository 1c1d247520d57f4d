r"""The secret by which this node knows its own files again: ``<home>/identity/node.key``, 32 random bytes, mode 0600.

A checksum tells a file that was damaged; it does not tell one that was changed on purpose, because whoever changes the bytes
makes a new checksum, too. What is signed here (HMAC-SHA256) can only be made by who may read the key. It vouches to this node
alone; signatures that others are to check need a key pair (beside this file).

Each kind of file signs under a domain of its own, so that one cannot be passed off as another::

    mac = HMAC-SHA256(key, b"nodeproof/" + domain + b"\0" + message)
"""

import hashlib
import hmac
import os
import secrets
import stat

from nodeproof.errors import RecordError
from nodeproof.host.atomic import make_directory, write_error

__all__ = ["NodeKey"]

_FOLDER = "identity"
_NAME = "node.key"
_BYTES = 32
_KEY_MODE = 0o600
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_ID_CHARS = 16


class NodeKey:
    """The key of the node whose state directory is ``home``; read, and made, when it is first needed."""

    def __init__(self, home: str) -> None:
        self.path = os.path.join(home, _FOLDER, _NAME)
        self._key = b""

    def sign(self, domain: str, message: bytes) -> str:
        """Signature in hexadecimal digits. Raises RecordError when the key is of no use, WriteError when none can be made."""
        return hmac.new(self._load(), _framed(domain, message), hashlib.sha256).hexdigest()

    def vouches(self, domain: str, message: bytes, signature: str) -> bool:
        """Whether ``signature`` was made with this key. Raises as :meth:`sign`."""
        return hmac.compare_digest(self.sign(domain, message).encode(), signature.encode("utf-8", "replace"))

    @property
    def key_id(self) -> str:
        """Tells keys apart and nothing of their content. Raises as :meth:`sign`."""
        return self.sign("key id", b"")[:_ID_CHARS]

    def _load(self) -> bytes:
        if not self._key:
            try:
                self._key = self._read()
            except FileNotFoundError:
                self._key = self._make()
            except OSError as error:
                raise RecordError(f"{self.path}: {os.strerror(error.errno or 0)}") from None
        return self._key

    def _read(self) -> bytes:
        fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        with open(fd, "rb") as file:
            mode = os.fstat(fd).st_mode
            key = file.read(_BYTES + 1)
        if mode & _OTHERS:
            raise RecordError(f"{self.path} may be read or changed by others: chmod 600 it, or remove it and begin anew")
        if len(key) != _BYTES:
            raise RecordError(f"{self.path} holds {len(key)} bytes where {_BYTES} belong: remove it and begin anew")
        return key

    def _make(self) -> bytes:
        """A new key; of two processes that make one at the same time both get the first one's."""
        key = secrets.token_bytes(_BYTES)
        folder = os.path.dirname(self.path)
        make_directory(folder)
        draft = os.path.join(folder, f".{_NAME}.{os.getpid()}-{secrets.token_hex(4)}")
        try:
            fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _KEY_MODE)
            try:
                os.write(fd, key)
                os.fsync(fd)
            finally:
                os.close(fd)
            try:
                os.link(draft, self.path)
            except FileExistsError:
                return self._read()
            finally:
                os.unlink(draft)
        except OSError as error:
            raise write_error(self.path, error) from None
        return key


def _framed(domain: str, message: bytes) -> bytes:
    return b"nodeproof/" + domain.encode() + b"\0" + message
