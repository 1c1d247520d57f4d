"""The list of parts as CycloneDX 1.6: the same bytes from the same environment, whenever and wherever it is made."""

import hashlib
import uuid
from collections.abc import Sequence

import msgspec

from nodeproof.operate.audit.checks import Vendored
from nodeproof.operate.audit.environment import Installed

__all__ = ["sbom"]

_SPEC = "1.6"
_OURS = "nodeproof"
_SPACE = uuid.UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")
"""Namespace of addresses (RFC 9562, appendix A)."""


def sbom(parts: Sequence[Installed], vendored: Sequence[Vendored], timestamp: str = "") -> bytes:
    """The document. ``timestamp`` is RFC 3339; without one it tells no time, and is the same tomorrow."""
    ours = next((one for one in parts if one.name == _OURS), None)
    components = [_component(one) for one in parts if one.name != _OURS]
    packages = sorted({(one.package, one.version, one.licence) for one in vendored})
    components += [_vendored(package, version, licence, vendored) for package, version, licence in packages]
    dependencies = [
        {"ref": _purl(one), "dependsOn": sorted(_purl(other) for other in parts if other.name in one.requires)} for one in parts
    ]
    for entry in dependencies:
        if ours is not None and entry["ref"] == _purl(ours):
            entry["dependsOn"] = sorted([*entry["dependsOn"], *(_npm(package, version) for package, version, _ in packages)])
    dependencies += [{"ref": _npm(package, version), "dependsOn": []} for package, version, _ in packages]
    body = {
        "bomFormat": "CycloneDX",
        "specVersion": _SPEC,
        "version": 1,
        "metadata": {
            **({"timestamp": timestamp} if timestamp else {}),
            "component": _component(ours) if ours is not None else {"type": "application", "name": _OURS, "bom-ref": _OURS},
        },
        "components": components,
        "dependencies": dependencies,
    }
    content = msgspec.json.encode(body)
    serial = uuid.uuid5(_SPACE, hashlib.sha256(content).hexdigest())
    whole = {"$schema": f"http://cyclonedx.org/schema/bom-{_SPEC}.schema.json", "serialNumber": f"urn:uuid:{serial}", **body}
    return msgspec.json.format(msgspec.json.encode(whole), indent=2) + b"\n"


def _component(one: Installed) -> dict[str, object]:
    component: dict[str, object] = {
        "type": "application" if one.name == _OURS else "library",
        "bom-ref": _purl(one),
        "name": one.name,
        "version": one.version,
        "purl": _purl(one),
        "licenses": _licences(one.licence),
    }
    if one.record_sha256:
        component["properties"] = [{"name": "nodeproof:record-sha256", "value": one.record_sha256}]
    return component


def _vendored(package: str, version: str, licence: str, vendored: Sequence[Vendored]) -> dict[str, object]:
    files = [
        {"type": "file", "name": one.file, "hashes": [{"alg": "SHA-256", "content": one.sha256}]}
        for one in sorted(vendored, key=lambda one: one.file)
        if (one.package, one.version) == (package, version)
    ]
    return {
        "type": "library",
        "bom-ref": _npm(package, version),
        "name": package,
        "version": version,
        "purl": _npm(package, version),
        "licenses": _licences(licence),
        "components": files,
    }


def _licences(licence: str) -> list[dict[str, object]]:
    if not licence:
        return []
    if " " in licence:
        spdx = any(word in f" {licence} " for word in (" AND ", " OR ", " WITH "))
        return [{"expression": licence}] if spdx else [{"license": {"name": licence}}]
    return [{"license": {"name": licence}}] if licence.startswith("LicenseRef") else [{"license": {"id": licence}}]


def _purl(one: Installed) -> str:
    return f"pkg:pypi/{one.name}@{one.version}"


def _npm(package: str, version: str) -> str:
    return f"pkg:npm/{package}@{version}"
