"""``cpu-build-manifest.json``: what was built out of what, with which tools and flags (stress.md 8.2; schema 1)."""

import hashlib
import os

import msgspec

from nodeproof.errors import RecordError
from nodeproof.host.atomic import make_directory, store_file

__all__ = [
    "SCHEMA_VERSION",
    "BuiltFile",
    "BuiltItem",
    "Manifest",
    "Toolchain",
    "load",
    "manifest_path",
    "save",
    "sha256_of",
    "verify",
]

SCHEMA_VERSION = 1
_MAX_BYTES = 4 * 1024 * 1024
_CHUNK_BYTES = 1 << 20


class Toolchain(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Path and first line of ``--version`` of each tool."""

    cc: str = ""
    cxx: str = ""
    mpicc: str = ""
    mpicxx: str = ""
    mpirun: str = ""
    openblas: str = ""
    """Its library, with the digest of it."""


class BuiltFile(msgspec.Struct, kw_only=True):
    """One file that was installed."""

    path: str
    sha256: str


class BuiltItem(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One benchmark."""

    binary: BuiltFile
    config: BuiltFile | None = None
    """``HPL.dat`` or ``hpcg.dat``."""
    source: str
    """As it was given."""
    source_sha256: str
    """Of every file of it, in order of their names."""
    patch: str = ""
    """What was changed in it."""
    flags: str
    file: str = ""
    """What ``file`` says of the binary."""
    ldd: str = ""
    smoke: str = ""
    """What a short run proved; empty = it was not run."""


class Manifest(msgspec.Struct, kw_only=True):
    """All of one runtime directory."""

    schema_version: int = SCHEMA_VERSION
    generated_at: str
    architecture: str
    output_root: str
    build_root: str
    last_selection: list[str]
    toolchain: Toolchain
    benchmarks: dict[str, BuiltItem] = {}


def manifest_path(output_root: str) -> str:
    """``manifests/cpu-build-manifest.json`` beside the runtime directory."""
    return os.path.join(os.path.dirname(output_root.rstrip("/")), "manifests", "cpu-build-manifest.json")


def load(path: str) -> Manifest | None:
    """None when there is none. Raises RecordError."""
    try:
        with open(path, "rb") as file:
            data = file.read(_MAX_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RecordError(f"{path}: {os.strerror(error.errno or 0)}") from None
    try:
        found = msgspec.json.decode(data, type=Manifest)
    except msgspec.DecodeError as error:
        raise RecordError(f"{path}: {error}; move it away, and build anew with --force") from None
    if found.schema_version != SCHEMA_VERSION:
        raise RecordError(f"{path}: schema {found.schema_version}; this nodeproof knows {SCHEMA_VERSION}")
    return found


def save(path: str, manifest: Manifest) -> None:
    """Raises WriteError."""
    make_directory(os.path.dirname(path), 0o755)
    store_file(path, msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n", mode=0o644)


def verify(manifest: Manifest) -> dict[str, list[str]]:
    """By benchmark: what is no longer as it was built, each naming its file; empty lists where all is well."""
    return {
        name: [problem for file in (item.binary, item.config) if file is not None and (problem := _problem(file))]
        for name, item in sorted(manifest.benchmarks.items())
    }


def sha256_of(path: str) -> str:
    """Of a file. Raises OSError."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _problem(file: BuiltFile) -> str:
    try:
        now = sha256_of(file.path)
    except OSError as error:
        return f"{file.path}: {os.strerror(error.errno or 0)}"
    return "" if now == file.sha256 else f"{file.path}: it is {now[:16]}..., and {file.sha256[:16]}... was built"
