"""Whether what a dispatcher says of files on this host is so: a description is a claim, and a claim about a file can be checked.

Only files that it says it runs from here are looked at; what lies inside a container cannot be.
"""

import os
import stat

from nodeproof.model.job import AssetCheck, CheckStatus, ExecutionProfile
from nodeproof.stress.profile import sha256_of_file

__all__ = ["false_claim", "requested_devices"]

_ON_HOST = frozenset({"host_local", "local", "native"})
_BACKENDS = ("execution_backend", "backend")
_MAX_HASHED_BYTES = 1 << 30


def false_claim(profile: ExecutionProfile) -> str:
    """The first asset that is not what the description says; empty when none is known to be."""
    backends = {entry.value for entry in profile.parameters if entry.key in _BACKENDS}
    if not backends <= _ON_HOST or any(asset.kind == "container" for asset in profile.assets):
        return ""
    claims = (_fault(asset) for asset in profile.assets if asset.status is CheckStatus.PASS and os.path.isabs(asset.path))
    return next((fault for fault in claims if fault), "")


def requested_devices(profile: ExecutionProfile) -> frozenset[int] | None:
    """Devices that a run will be asked to test, by parameter ``devices``; None where that cannot be told."""
    told = {entry.key: entry.value for entry in profile.parameters}
    listed = told.get("devices", "")
    if listed == "all":
        listed = told.get("available_devices", "")
    words = [word.strip() for word in listed.split(",")]
    return frozenset(map(int, words)) if all(word.isascii() and word.isdigit() for word in words) else None


def _fault(asset: AssetCheck) -> str:
    name = f"asset {asset.name[:80]!r} ({asset.path[:200]})"
    try:
        facts = os.stat(asset.path)
    except (OSError, ValueError) as error:
        return f"{name} is said to be there: {getattr(error, 'strerror', None) or error}"
    if asset.kind == "directory" and not stat.S_ISDIR(facts.st_mode):
        return f"{name} is said to be a directory and is none"
    if asset.kind == "executable" and not (stat.S_ISREG(facts.st_mode) and facts.st_mode & 0o111):
        return f"{name} is said to be a program and is none"
    if asset.sha256 and stat.S_ISREG(facts.st_mode) and facts.st_size <= _MAX_HASHED_BYTES:
        try:
            found = sha256_of_file(asset.path)
        except OSError:  # readable for the dispatcher, perhaps, and not for us
            return ""
        if found != asset.sha256.lower():
            return f"{name} has sha256 {found}, it is said to be {asset.sha256.lower()}"
    return ""
