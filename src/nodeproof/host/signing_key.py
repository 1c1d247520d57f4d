r"""The key pair of this node: what it signs, anybody can check who has the public half.

``<home>/identity/ed25519.pem`` is the private key, PKCS #8 in PEM without a passphrase, mode 0600, made when it is first needed.
A public key is written as one word, ``ed25519:`` and 32 bytes in base64; its id is the first 16 hexadecimal digits of the SHA-256
of these bytes.

What is signed is never the bare message but, as DSSE 1.0 has it, its type and length before it, so that a signature of one kind
of document is none of another::

    signed = b"DSSEv1 " + len(type) + b" " + type + b" " + len(message) + b" " + message
"""

import base64
import binascii
import hashlib
import os
from typing import TYPE_CHECKING, NamedTuple

from nodeproof.errors import RecordError
from nodeproof.host.secret_file import read_or_make

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

__all__ = ["PublicKey", "SigningKey", "framed"]

_FOLDER = "identity"
_NAME = "ed25519.pem"
_KIND = "ed25519"
_KEY_BYTES = 32
_ID_CHARS = 16
_MAX_FILE_BYTES = 4096
_MISSING = "cryptography is not installed; signatures need the extra: pip install 'nodeproof[bench]'"


class PublicKey(NamedTuple):
    """The half of a key that everybody may have."""

    raw: bytes

    @classmethod
    def parse(cls, text: str) -> "PublicKey":
        """Of the written form. Raises ValueError that says what was expected."""
        kind, _, encoded = text.strip().partition(":")
        try:
            raw = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            raw = b""
        if kind != _KIND or len(raw) != _KEY_BYTES:
            raise ValueError(f"{text[:80]!r} is no public key: expected {_KIND}: and {_KEY_BYTES} bytes in base64")
        return cls(raw)

    @property
    def key_id(self) -> str:
        """Tells keys apart."""
        return hashlib.sha256(self.raw).hexdigest()[:_ID_CHARS]

    def __str__(self) -> str:
        return f"{_KIND}:{base64.b64encode(self.raw).decode()}"

    def verifies(self, kind: str, message: bytes, signature: bytes) -> bool:
        """Whether ``signature`` is of this ``message`` as a document of this ``kind``. Raises RecordError without the library."""
        try:
            from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - an extra
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415
        except ModuleNotFoundError:
            raise RecordError(_MISSING) from None
        try:
            Ed25519PublicKey.from_public_bytes(self.raw).verify(signature, framed(kind, message))
        except (InvalidSignature, ValueError):
            return False
        return True


class SigningKey:
    """The private half of the node whose state directory is ``home``; read, and made, when it is first needed."""

    def __init__(self, home: str) -> None:
        self.path = os.path.join(home, _FOLDER, _NAME)
        self._key: Ed25519PrivateKey | None = None

    def sign(self, kind: str, message: bytes) -> bytes:
        """64 bytes. Raises RecordError when the key or the library is of no use, WriteError when no key can be made."""
        return self._load().sign(framed(kind, message))

    @property
    def public(self) -> PublicKey:
        """The other half. Raises as :meth:`sign`."""
        return PublicKey(self._load().public_key().public_bytes_raw())

    def _load(self) -> "Ed25519PrivateKey":
        if self._key is None:
            try:
                from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415 - an extra
                from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415
            except ModuleNotFoundError:
                raise RecordError(_MISSING) from None
            content = read_or_make(self.path, _new_key, _MAX_FILE_BYTES)
            try:
                key = load_pem_private_key(content, None)
            except (ValueError, TypeError):
                key = None
            if not isinstance(key, Ed25519PrivateKey):
                raise RecordError(f"{self.path} holds no Ed25519 private key in PEM: remove it and begin anew")
            self._key = key
        return self._key


def framed(kind: str, message: bytes) -> bytes:
    """The bytes that are signed: the pre-authentication encoding of DSSE 1.0."""
    name = kind.encode()
    return b"DSSEv1 %d %s %d %s" % (len(name), name, len(message), message)


def _new_key() -> bytes:
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - an extra
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415

    return Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
