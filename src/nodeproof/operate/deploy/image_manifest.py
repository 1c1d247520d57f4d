"""Manifests of images that ``nodeproof assets image`` built: out of what, and which image that was."""

import os
from typing import Any

import msgspec

from nodeproof.operate.deploy.problems import DeployError

__all__ = ["ImageManifest", "load_image", "read_image_manifest"]

_MAX_BYTES = 4 * 1024 * 1024


class ImageManifest(msgspec.Struct, frozen=True, kw_only=True):
    """What any of them says; each kind says more."""

    schema_version: int | str
    """A positive number; that of NPU Burn's is a text, as the reference has it."""
    kind: str
    """``control``, ``cpu-runner`` or ``npu-burn``."""
    generated_at: str
    image: str
    image_id: str
    benchmarks: list[str] = []
    hpl_processes: list[int] = []
    """Processes of each grid of the administrator's ``HPL.dat`` in it; empty = it has none."""
    details: dict[str, Any] = {}


def load_image(image_flag: str, image: str, manifest_flag: str, path: str) -> ImageManifest:
    """The manifest of an image that is to be deployed. Raises DeployError when it is of another."""
    found = read_image_manifest(manifest_flag, path)
    if found.image != image:
        raise DeployError(f"{image_flag} {image}: {path} is of {found.image[:120]}; give the manifest that belongs to the image")
    return found


def read_image_manifest(flag: str, path: str) -> ImageManifest:
    """Raises DeployError for a file that is none."""
    try:
        with open(path, "rb") as file:
            data = file.read(_MAX_BYTES)
    except OSError as error:
        text = os.strerror(error.errno or 0)
        raise DeployError(f"{flag} {path}: {text}; nodeproof assets image writes it") from None
    try:
        found = msgspec.json.decode(data, type=ImageManifest)
    except msgspec.DecodeError as error:
        raise DeployError(f"{flag} {path}: {error}; build the image anew") from None
    version = str(found.schema_version)
    if not (version.isascii() and version.isdigit() and int(version[:9]) > 0):
        raise DeployError(f"{flag} {path}: schema_version {version[:40]!r} is no positive number; build the image anew")
    return found
