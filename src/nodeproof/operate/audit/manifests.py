"""Manifests of built and deployed things: their form, and whether the files that they name are still those files."""

import os
import re
import stat
from collections.abc import Iterator, Mapping
from typing import cast

import msgspec

from nodeproof.operate.assets.manifest import sha256_of
from nodeproof.operate.audit.checks import Check, Result

__all__ = ["audit_manifest"]

_MAX_BYTES = 4 << 20
_SHA256 = re.compile(r"[0-9a-f]{64}")


def audit_manifest(kind: str, path: str, *, required: bool) -> Check:
    """The manifest at ``path``: a positive schema version, and each file that it names with a hash as it says."""
    name = f"{kind} manifest"
    if not path:
        return Check(name, Result.FAILED if required else Result.NOT_CHECKED, "none was given")
    try:
        with open(path, "rb") as file:
            tree = msgspec.json.decode(file.read(_MAX_BYTES))
    except OSError as error:
        return Check(name, Result.FAILED, f"{path}: {error.strerror}")
    except (msgspec.MsgspecError, RecursionError) as error:
        return Check(name, Result.FAILED, f"{path}: {error}")
    if not isinstance(tree, dict):
        return Check(name, Result.FAILED, f"{path}: no JSON object")
    problems = _schema(tree)
    named = [*_files(tree), *_tables(tree, os.path.dirname(os.path.abspath(path)))]
    if not named and not problems:
        nothing = Result.FAILED if required else Result.NOT_CHECKED
        return Check(name, nothing, f"{path}: names no file with its hash, so it vouches for nothing")
    for where, sha256 in named:
        problems += _file(where, sha256)
    return Check(name, Result.FAILED if problems else Result.OK, "; ".join(problems) or f"{len(named)} files as it says")


def _schema(tree: Mapping[str, object]) -> list[str]:
    """A positive number, or the digits of one, as the reference writes it."""
    version = tree.get("schema_version", tree.get("schema"))
    number = int(version) if isinstance(version, str) and version.isdigit() else version
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        return [f"schema_version is {version!r}, expected a positive number"]
    return []


def _files(value: object) -> Iterator[tuple[str, str]]:
    """Every object with a ``path`` and a ``sha256``, however deep."""
    if isinstance(value, dict):
        tree = cast("dict[str, object]", value)
        path, sha256 = tree.get("path"), tree.get("sha256")
        if isinstance(path, str) and isinstance(sha256, str):
            yield path, sha256
        for inner in tree.values():
            yield from _files(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _files(inner)


def _tables(tree: Mapping[str, object], folder: str) -> Iterator[tuple[str, str]]:
    """As a deployment writes them: ``files`` beside the manifest, ``inputs`` by their whole path."""
    for key, where in (("files", folder), ("inputs", "")):
        table = tree.get(key)
        if isinstance(table, dict):
            for path, sha256 in cast("dict[str, object]", table).items():
                if isinstance(sha256, str):
                    yield os.path.join(where, path), sha256


def _file(path: str, sha256: str) -> list[str]:
    if _SHA256.fullmatch(sha256) is None:
        return [f"{path}: {sha256[:20]!r} is no SHA-256"]
    if not os.path.isabs(path):
        return [f"{path} is no absolute path"]
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return [f"{path} is no plain file"]
        found = sha256_of(path)
    except OSError as error:
        return [f"{path}: {error.strerror}"]
    return [] if found == sha256 else [f"{path}: it is {found[:16]}..., the manifest says {sha256[:16]}..."]
