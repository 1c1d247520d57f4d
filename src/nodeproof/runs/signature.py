"""``signature.json`` of a stored run: who stored it, so that others can see that nothing in it was changed since.

A DSSE envelope whose payload is a statement about the run; the manifest that it names holds the hash of every other file, so the
signature covers all of them::

    {"schema": 1, "run_id": "run-1764541241123456789", "benchmark_id": "load", "recorded_at": 1764541270.5,
     "fingerprint": "5f...", "record_sha256": "2c...", "manifest_sha256": "60303..."}

It proves that run and statement are what the holder of the key signed. It does not prove what the holder did.
"""

import os
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from nodeproof.host import atomic
from nodeproof.host.signing_key import PublicKey
from nodeproof.model.run import RunRecord
from nodeproof.runs.dsse import MAX_BYTES, Signer, open_envelope, seal_envelope
from nodeproof.runs.manifest import SIGNATURE, Manifest, open_plain, read_manifest
from nodeproof.runs.open_run import RECORD

__all__ = ["PAYLOAD_TYPE", "Signature", "Statement", "check_signature", "sign_run"]

PAYLOAD_TYPE = "application/vnd.nodeproof.run+json"


class Statement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is signed."""

    schema: int = 1
    run_id: str
    benchmark_id: str
    recorded_at: float
    fingerprint: str
    record_sha256: str
    manifest_sha256: str


class Signature(NamedTuple):
    """What there is to say about the signature of a run."""

    key_id: str
    """Empty = it is not signed."""
    problem: str
    """Why it proves nothing; empty = a trusted key signed exactly this run."""


def sign_run(directory: str, record: RunRecord, manifest: Manifest, manifest_sha256: str, signer: Signer) -> None:
    """Put the signature into ``directory``. Raises RecordError, WriteError."""
    payload = msgspec.json.encode(_statement(record, manifest, manifest_sha256))
    atomic.store_file(os.path.join(directory, SIGNATURE), seal_envelope(PAYLOAD_TYPE, payload, signer))


def check_signature(directory: str, record: RunRecord, trusted: Mapping[str, PublicKey]) -> Signature:
    """Whether the run in ``directory``, whose files are as its manifest has them, was signed with one of ``trusted``, by id.

    Raises RecordError when no signature can be checked here at all.
    """
    path = os.path.join(directory, SIGNATURE)
    try:
        with open(open_plain(path), "rb") as file:
            data = file.read(MAX_BYTES)
        manifest, manifest_sha256 = read_manifest(directory)
    except FileNotFoundError:
        return Signature("", "it is not signed")
    except OSError as error:
        return Signature("", f"{error.filename}: {os.strerror(error.errno or 0)}")
    opened = open_envelope(data, PAYLOAD_TYPE, path, trusted)
    if opened.problem:
        return Signature(opened.key_id, opened.problem)
    return Signature(opened.key_id, _other(path, opened.payload, _statement(record, manifest, manifest_sha256)))


def _other(path: str, payload: bytes, expected: Statement) -> str:
    """In what a statement that was signed is about something else than this run; empty when it is about it."""
    try:
        told = msgspec.json.decode(payload, type=Statement)
    except msgspec.MsgspecError as error:
        return f"{path} holds a statement that cannot be understood: {error}"
    for name in Statement.__struct_fields__:
        ours, theirs = getattr(expected, name), getattr(told, name)
        if ours != theirs:
            return f"the run was changed or replaced after it was signed: {name} is {ours}, signed was {theirs}"
    return ""


def _statement(record: RunRecord, manifest: Manifest, manifest_sha256: str) -> Statement:
    entry = manifest.files.get(RECORD)
    return Statement(
        run_id=record.run_id,
        benchmark_id=record.benchmark_id,
        recorded_at=record.recorded_at,
        fingerprint=record.fingerprint,
        record_sha256="" if entry is None else entry.sha256,
        manifest_sha256=manifest_sha256,
    )
