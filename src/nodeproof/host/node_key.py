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

from nodeproof.errors import RecordError
from nodeproof.host.secret_file import read_or_make

__all__ = ["NodeKey"]

_FOLDER = "identity"
_NAME = "node.key"
_BYTES = 32
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
            key = read_or_make(self.path, lambda: secrets.token_bytes(_BYTES), _BYTES)
            if len(key) != _BYTES:
                raise RecordError(f"{self.path} holds {len(key)} bytes where {_BYTES} belong: remove it and begin anew")
            self._key = key
        return self._key


def _framed(domain: str, message: bytes) -> bytes:
    return b"nodeproof/" + domain.encode() + b"\0" + message
