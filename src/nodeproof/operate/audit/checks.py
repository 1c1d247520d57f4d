"""One check of an audit, and the audit of a source tree."""

import hashlib
import os
import re
import tomllib
from collections.abc import Callable
from enum import StrEnum

import msgspec

__all__ = ["Check", "Result", "Vendored", "audit_tree", "vendored"]

_LICENCE_HEAD = ("Apache License", "Version 2.0, January 2004")
_SPDX = "Apache-2.0"
_VENDOR = "src/nodeproof/web/static/vendor"
_ROW = re.compile(
    r"^\|\s*(?P<file>[\w.-]+)\s*\|\s*(?P<package>[\w.@/-]+)\s*\|\s*(?P<version>[\w.-]+)\s*\|\s*(?P<inside>[\w./-]+)\s*"
    r"\|\s*(?P<licence>[\w.-]+)\s*\|\s*`(?P<sha256>[0-9a-f]{64})`\s*\|\s*$",
    re.MULTILINE,
)
_LOCKED = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)(?P<rest>(?:[^\n]*\\\n)*[^\n]*)", re.MULTILINE)
_ADDRESS = re.compile(r"https?://|--(?:extra-)?index-url|--find-links")
_VERSION = re.compile(r'^__version__ = "([^"]+)"', re.MULTILINE)
_KEY = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----|\bAKIA[A-Z0-9]{16}\b|\bghp_[A-Za-z0-9]{36}\b")
_NOT_VENDORED = re.compile(r"README\.md|LICENSE\..+|.+\.d\.ts")
_MAX_BYTES = 64 << 20


class Result(StrEnum):
    """How a check came out."""

    OK = "ok"
    FAILED = "failed"
    NOT_CHECKED = "not_checked"
    """It could not be told; never the same as ok."""


class Check(msgspec.Struct, frozen=True):
    """One check."""

    name: str
    result: Result
    detail: str


class Vendored(msgspec.Struct, frozen=True):
    """One file of somebody else's that ships inside the package."""

    file: str
    package: str
    version: str
    licence: str
    sha256: str


def audit_tree(root: str) -> list[Check]:
    """Every check of the source tree below ``root``."""
    checks: tuple[Callable[[str], tuple[list[str], str]], ...] = (
        _licence,
        _notices,
        _vendored_files,
        _vendored_licences,
        _lock,
        _version,
        _documents,
        _no_keys,
    )
    return [_made(check, root) for check in checks]


def _made(check: Callable[[str], tuple[list[str], str]], root: str) -> Check:
    name = str(getattr(check, "__name__", "check")).strip("_").replace("_", " ")
    try:
        problems, detail = check(root)
    except (OSError, ValueError) as error:
        return Check(name, Result.FAILED, str(error))
    return Check(name, Result.FAILED if problems else Result.OK, "; ".join(problems) or detail)


def _text(root: str, name: str) -> str:
    with open(os.path.join(root, name), encoding="utf-8") as file:
        return file.read(_MAX_BYTES)


def _licence(root: str) -> tuple[list[str], str]:
    text = _text(root, "LICENSE")
    problems = [f"LICENSE does not say {line!r}" for line in _LICENCE_HEAD if line not in text[:500]]
    declared = tomllib.loads(_text(root, "pyproject.toml")).get("project", {}).get("license", "")
    if declared != _SPDX:
        problems.append(f"pyproject.toml declares {declared!r}, and LICENSE is {_SPDX}")
    return problems, _SPDX


def vendored(folder: str) -> list[Vendored]:
    """The files that the table of the vendored libraries in ``folder`` lists. Raises OSError."""
    text = _text(folder, "README.md")
    return [Vendored(row["file"], row["package"], row["version"], row["licence"], row["sha256"]) for row in _ROW.finditer(text)]


def _notices(root: str) -> tuple[list[str], str]:
    """Each vendored package stands in THIRD_PARTY.md with this version and licence."""
    text = _text(root, "THIRD_PARTY.md")
    packages = {(one.package, one.version, one.licence) for one in vendored(os.path.join(root, _VENDOR))}
    rows = [line.lower() for line in text.splitlines() if line.startswith("|")]
    problems = [
        f"THIRD_PARTY.md does not name {package} {version} with licence {licence}"
        for package, version, licence in sorted(packages)
        if not any(package.lower() in row and f" {version} " in row and f" {licence.lower()} " in row for row in rows)
    ]
    return problems, f"{len(packages)} packages named"


def _vendored_files(root: str) -> tuple[list[str], str]:
    """Each has the sum that the table says, and nothing lies there that it does not list."""
    listed = {one.file: one.sha256 for one in vendored(os.path.join(root, _VENDOR))}
    there = {name for name in os.listdir(os.path.join(root, _VENDOR)) if not _NOT_VENDORED.fullmatch(name)}
    problems = [f"{name} is not in the table" for name in sorted(there - listed.keys())]
    problems += [f"{name} is in the table and not there" for name in sorted(listed.keys() - there)]
    for name in sorted(there & listed.keys()):
        found = _sha256(os.path.join(root, _VENDOR, name))
        if found != listed[name]:
            problems.append(f"{name} has SHA-256 {found[:16]}..., the table says {listed[name][:16]}...")
    if not listed:
        problems.append("the table lists nothing")
    return problems, f"{len(listed)} files as listed"


def _vendored_licences(root: str) -> tuple[list[str], str]:
    packages = sorted({one.package for one in vendored(os.path.join(root, _VENDOR))})
    texts = [f"LICENSE.{package.lower()}" for package in packages]
    there = {name.lower() for name in os.listdir(os.path.join(root, _VENDOR))}
    problems = [f"{name} is missing" for name in texts if name.lower() not in there]
    return problems, f"{len(texts)} texts"


def _lock(root: str) -> tuple[list[str], str]:
    """Every tool is locked with a hash, and no address of an index stands in the lock."""
    text = _text(root, "requirements/dev.lock")
    entries = list(_LOCKED.finditer(text))
    problems = [f"{entry['name']} has no hash" for entry in entries if "--hash=sha256:" not in entry["rest"]]
    problems += ["an address of an index stands in it"] if _ADDRESS.search(text) else []
    problems += [] if entries else ["it locks nothing"]
    return problems, f"{len(entries)} tools locked with hashes"


def _version(root: str) -> tuple[list[str], str]:
    found = _VERSION.search(_text(root, "src/nodeproof/__init__.py"))
    version = found[1] if found else ""
    first = re.search(r"^## (\S+)", _text(root, "CHANGELOG.md"), re.MULTILINE)
    newest = first[1] if first else ""
    return ([] if version and version == newest else [f"__version__ is {version!r}, the changelog's newest {newest!r}"]), version


def _documents(root: str) -> tuple[list[str], str]:
    names = ("docs/release-audit.md", "docs/security.md", "docs/verification.md", "CHANGELOG.md", "README.md")
    missing = [name for name in names if not os.path.isfile(os.path.join(root, name))]
    return [f"{name} is missing" for name in missing], f"{len(names)} documents"


def _no_keys(root: str) -> tuple[list[str], str]:
    """Nothing that ships looks like a private key or a token."""
    problems, count = [], 0
    for folder, _, names in os.walk(os.path.join(root, "src")):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                content = file.read(_MAX_BYTES)
            count += 1
            if _KEY.search(content) and not name.endswith((".pyc", "redact.py", "checks.py")):
                problems.append(f"{os.path.relpath(path, root)} holds what looks like a key")
    return problems or ([] if count else ["there are no files below src"]), f"{count} files"


def _sha256(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
