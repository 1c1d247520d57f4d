"""``stress-deployment-manifest.json``: what was generated, out of what, for which images (schema 1).

It vouches for what was asked and written. What was built is the build manifest's word, what is on the node now is ``describe``'s
and the doctor's.
"""

import hashlib
import os

import msgspec

from nodeproof.operate.assets.manifest import sha256_of
from nodeproof.operate.deploy.inputs import Inputs
from nodeproof.operate.deploy.problems import DeployError

__all__ = [
    "NAME",
    "SCHEMA_VERSION",
    "Deployment",
    "DeploymentManifest",
    "ImageRecord",
    "changed_inputs",
    "load",
    "sha256",
]

NAME = "stress-deployment-manifest.json"
SCHEMA_VERSION = 1
_MAX_BYTES = 4 * 1024 * 1024


class ImageRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An image that the deployment runs."""

    name: str
    id: str = ""
    """As its own manifest has it; empty = only the name is known."""


class DeploymentManifest(msgspec.Struct, frozen=True, kw_only=True):
    """All of one directory."""

    schema_version: int = SCHEMA_VERSION
    generated_at: str
    generator: str
    architecture: str
    profile: str
    """``host``, ``monitoring``, ``cpu-stress`` or ``ascend``: what the files are enough for."""
    items: list[str]
    project: str
    files: dict[str, str]
    """SHA-256 of each file beside this one."""
    inputs: dict[str, str]
    """SHA-256 of each file that was read, by its path."""
    images: dict[str, ImageRecord]
    settings: Inputs
    """As they were given."""
    sizes: dict[str, int]
    """Processes and threads, as given or chosen."""


class Deployment(msgspec.Struct, frozen=True, kw_only=True):
    """A directory that was read: manifest and files are one."""

    directory: str
    manifest: DeploymentManifest
    files: dict[str, bytes]


def load(directory: str) -> Deployment:
    """Read the whole, and see that every file is as it was written. Raises DeployError."""
    path = os.path.join(directory, NAME)
    manifest = _manifest(path, _read(path))
    if manifest.schema_version != SCHEMA_VERSION:
        raise DeployError(f"{path}: schema {manifest.schema_version}; this nodeproof knows {SCHEMA_VERSION}: generate it anew")
    files = {}
    for name, digest in manifest.files.items():
        if "/" in name or name.startswith("."):
            raise DeployError(f"{path}: {name[:80]!r} is no name of a file beside it")
        files[name] = _read(os.path.join(directory, name))
        if sha256(files[name]) != digest:
            raise DeployError(
                f"{os.path.join(directory, name)} was changed since it was generated; put the change into the options of"
                " nodeproof deploy generate --force"
            )
    return Deployment(directory=os.path.abspath(directory), manifest=manifest, files=files)


def changed_inputs(manifest: DeploymentManifest) -> list[str]:
    """Files that were read when it was generated, and are others now; each with what that means."""
    found = []
    for path, digest in manifest.inputs.items():
        try:
            now = sha256_of(path)
        except OSError as error:
            found.append(f"{path}: {os.strerror(error.errno or 0)}")
            continue
        if now != digest:
            found.append(f"{path} is another since the deployment was generated; generate it anew")
    return found


def sha256(data: bytes) -> str:
    """In hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def _manifest(path: str, data: bytes) -> DeploymentManifest:
    try:
        return msgspec.json.decode(data, type=DeploymentManifest)
    except msgspec.DecodeError as error:
        raise DeployError(f"{path}: {error}; generate it anew") from None


def _read(path: str) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            return file.read(_MAX_BYTES)
    except OSError as error:
        raise DeployError(f"{path}: {os.strerror(error.errno or 0)}; nodeproof deploy generate makes it") from None
