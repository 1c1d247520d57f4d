"""DSSE envelopes: a signed statement with its kind, so that one kind is never taken for another.

::

    {"payloadType": "application/vnd.nodeproof.run+json", "payload": "eyJzY2hlbWEi...",
     "signatures": [{"keyid": "9f86d081884c7d65", "sig": "k3Yb..."}]}
"""

import base64
import binascii
from collections.abc import Mapping
from typing import NamedTuple, Protocol

import msgspec

from nodeproof.host.signing_key import PublicKey

__all__ = ["MAX_BYTES", "Opened", "Signer", "open_envelope", "seal_envelope"]

MAX_BYTES = 1 << 20


class Signer(Protocol):
    """What signs for this node."""

    def sign(self, kind: str, message: bytes) -> bytes:
        """The signature. Raises RecordError, WriteError."""
        ...

    @property
    def public(self) -> PublicKey:
        """Whose it is. Raises as :meth:`sign`."""
        ...


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    keyid: str
    sig: str


class _Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    payload_type: str = msgspec.field(name="payloadType")
    payload: str
    signatures: tuple[_Entry, ...]


class Opened(NamedTuple):
    """What an envelope holds."""

    payload: bytes
    """Empty where :attr:`problem` says why it is not to be believed."""
    key_id: str
    """Of the key that signed; of an envelope that is not believed, the one that it names."""
    problem: str


def seal_envelope(kind: str, payload: bytes, signer: Signer) -> bytes:
    """``payload`` signed, one line of JSON. Raises RecordError, WriteError."""
    entry = _Entry(signer.public.key_id, base64.b64encode(signer.sign(kind, payload)).decode())
    return msgspec.json.encode(_Envelope(kind, base64.b64encode(payload).decode(), (entry,))) + b"\n"


def open_envelope(data: bytes, kind: str, source: str, trusted: Mapping[str, PublicKey]) -> Opened:
    """What ``data``, the bytes of ``source``, holds, if one of ``trusted`` signed it as a document of this ``kind``.

    Raises RecordError when no signature can be checked here at all.
    """
    try:
        envelope = msgspec.json.decode(data, type=_Envelope)
    except (msgspec.MsgspecError, RecursionError) as error:
        return Opened(b"", "", f"{source} cannot be understood: {error}")
    named = ", ".join(entry.keyid for entry in envelope.signatures)
    entry = next((entry for entry in envelope.signatures if entry.keyid in trusted), None)
    if entry is None:
        return Opened(b"", named, f"it is signed with key {named or '(none)'}, which is not trusted here")
    try:
        payload, signature = (base64.b64decode(text, validate=True) for text in (envelope.payload, entry.sig))
    except (binascii.Error, ValueError):
        return Opened(b"", entry.keyid, f"{source} was changed: it holds something else than base64")
    if not trusted[entry.keyid].verifies(envelope.payload_type, payload, signature):
        return Opened(b"", entry.keyid, f"{source} was changed: what it says is not what key {entry.keyid} signed")
    if envelope.payload_type != kind:
        return Opened(b"", entry.keyid, f"{source} is signed as a document of another kind: {envelope.payload_type[:80]}")
    return Opened(payload, entry.keyid, "")
