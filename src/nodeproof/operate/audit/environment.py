"""What is installed beside nodeproof: each distribution it leads to, its licence, and whether its files are as they were."""

import base64
import hashlib
import os
import re
from importlib import metadata

import msgspec

from nodeproof.operate.audit.checks import Check, Result

__all__ = ["Installed", "audit_environment", "installed"]

_OURS = "nodeproof"
_NAME = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)")
_EXTRA = re.compile(r"""extra\s*==\s*["']([\w-]+)["']""")
_LEFT_OUT_EXTRAS = frozenset({"dev", "test", "tests", "docs", "doc"})
_KNOWN = (
    ("Apache", "Apache-2.0"),
    ("BSD", "BSD-3-Clause"),
    ("MIT", "MIT"),
    ("MPL", "MPL-2.0"),
    ("Mozilla Public License", "MPL-2.0"),
    ("Python Software Foundation", "PSF-2.0"),
    ("PSF", "PSF-2.0"),
    ("ISC", "ISC"),
    ("Zlib", "Zlib"),
)
_MAY_SHIP_BESIDE = re.compile(
    r"(?:Apache-2\.0|BSD-[23]-Clause|0BSD|MIT|MIT-0|MPL-2\.0|PSF-2\.0|ISC|Zlib|CC0-1\.0|Unlicense|LicenseRef-NVIDIA[\w-]*"
    r"|Apache-2\.0 WITH LLVM-exception|BSL-1\.0|GPL-3\.0-\w+ WITH GCC-exception-3\.1|LGPL-2\.1-\w+|Python-2\.0(?:\.1)?)"
)


class Installed(msgspec.Struct, frozen=True, kw_only=True):
    """One distribution."""

    name: str
    """Normalised, as package indexes write it."""
    version: str
    licence: str
    """SPDX expression, or the words of the distribution; empty = it tells none."""
    requires: tuple[str, ...]
    """Names of the installed distributions that it asks for."""
    changed: tuple[str, ...]
    """Files that are not as they were installed."""
    hashed: int
    """Files that were compared."""
    record_sha256: str
    """Of its own list of files with their hashes (RECORD); empty when it has none."""


def installed(root: str = _OURS) -> list[Installed]:
    """``root`` and every installed distribution that it leads to, by name; extras count when their packages are there."""
    found: dict[str, Installed] = {}
    waiting = [root]
    while waiting:
        name = _normal(waiting.pop())
        if name in found:
            continue
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        found[name] = _told(distribution)
        waiting += found[name].requires
    return [found[name] for name in sorted(found)]


def audit_environment(parts: list[Installed]) -> list[Check]:
    """Licences and files of what is installed."""
    others = [one for one in parts if one.name != _OURS]
    unknown = [f"{one.name} {one.version}" for one in others if not one.licence]
    odd = [f"{one.name} {one.version}: {one.licence}" for one in others if one.licence and not _may(one.licence)]
    changed = [f"{one.name}: {', '.join(one.changed[:3])}" for one in parts if one.changed]
    unhashed = [one.name for one in parts if not one.hashed]
    licences = f"{len(others)} distributions, {', '.join(sorted({one.licence for one in others})) or 'none'}"
    checks = [
        _check("licences of what is installed", [*odd, *(f"{name} tells no licence" for name in unknown)], licences),
        _check("files of what is installed", changed, f"{sum(one.hashed for one in parts)} files as installed"),
    ]
    if unhashed:
        detail = f"no list of files with hashes: {', '.join(unhashed)} (an editable install has none)"
        checks.append(Check("files of these", Result.NOT_CHECKED, detail))
    return checks


def _check(name: str, problems: list[str], detail: str) -> Check:
    return Check(name, Result.FAILED if problems else Result.OK, "; ".join(problems) or detail)


def _may(expression: str) -> bool:
    """Whether every licence of an ``AND``, or one of an ``OR``, is one that may be installed beside an Apache-2.0 program."""
    bare = expression.replace("(", " ").replace(")", " ")
    return all(any(_MAY_SHIP_BESIDE.fullmatch(one.strip()) for one in part.split(" OR ")) for part in bare.split(" AND "))


def _told(distribution: metadata.Distribution) -> Installed:
    changed, hashed = _files(distribution)
    record = distribution.read_text("RECORD")
    return Installed(
        name=_normal(distribution.metadata["Name"]),
        version=distribution.version,
        licence=_licence(distribution),
        requires=_requires(distribution),
        changed=tuple(changed),
        hashed=hashed,
        record_sha256=hashlib.sha256(record.encode()).hexdigest() if record else "",
    )


def _requires(distribution: metadata.Distribution) -> tuple[str, ...]:
    names = set()
    for requirement in distribution.requires or ():
        extras = set(_EXTRA.findall(requirement))
        match = _NAME.match(requirement)
        if match is None or extras & _LEFT_OUT_EXTRAS:
            continue
        if extras and _normal(distribution.metadata["Name"]) != _OURS:
            continue
        name = _normal(match[1])
        try:
            metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        names.add(name)
    return tuple(sorted(names))


def _licence(distribution: metadata.Distribution) -> str:
    told = distribution.metadata
    for expression in told.get_all("License-Expression") or ():
        return str(expression)
    classes = [text.rpartition(" :: ")[2] for text in told.get_all("Classifier") or () if text.startswith("License ::")]
    words = [*classes, *(str(text).strip().partition("\n")[0] for text in told.get_all("License") or ())]
    for text in words:
        for word, spdx in _KNOWN:
            if word.lower() in text.lower():
                return spdx
    return next((text[:80] for text in words if text and text.lower() != "unknown"), "")


def _files(distribution: metadata.Distribution) -> tuple[list[str], int]:
    """Files that differ from RECORD, and how many were compared; those outside its own folders are left out."""
    changed, hashed = [], 0
    for path in distribution.files or ():
        if path.hash is None or path.suffix == ".pyc" or ".." in path.parts:
            continue
        hashed += 1
        try:
            with open(os.fspath(path.locate()), "rb") as file:
                digest = hashlib.file_digest(file, path.hash.mode).digest()
        except (OSError, ValueError) as error:
            changed.append(f"{path} ({error.__class__.__name__})")
            continue
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != path.hash.value:
            changed.append(str(path))
    return changed, hashed


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
