"""Hashes over a profile: what exactly was run, told apart from where.

Three of them. ``configuration_sha256`` is the reference's: over the whole profile, its messages and time limit included
(stress.md 3.6). The **identity hash** covers only what decides a number: program, inputs, resources and settings, so that numbers
with the same one compare. The **environment fingerprint** is that of the box and its software; it changes with a kernel or a
microcode update, which is worth knowing and no reason to forget a baseline's name.
"""

import hashlib
import platform

import msgspec

from nodeproof.errors import NoData, ParseError
from nodeproof.host.machine import Machine
from nodeproof.model.job import AssetCheck, BenchmarkResult, ExecutionProfile
from nodeproof.sources import proc_cpuinfo

__all__ = ["SIZE_NOW", "configuration_hash", "environment_fingerprint", "identity_hash", "report_hash", "sha256_of_file"]

_GO_ESCAPES = (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029"))
"""The reference hashes what Go's encoder writes."""
SIZE_NOW = "size_now"
"""Parameter that tells of a size which moves with free memory, as long as the rule for it is the same."""
_DISPLAY_ONLY = frozenset({"execution_backend", SIZE_NOW})
_CHUNK_BYTES = 1 << 20


def configuration_hash(profile: ExecutionProfile) -> str:
    """SHA-256 of the compact JSON of ``profile`` with this field empty."""
    blank = msgspec.structs.replace(profile, configuration_sha256="")
    return _sha256(_go_json(msgspec.json.encode(blank)))


def report_hash(items: list[BenchmarkResult]) -> str:
    """SHA-256 over names and configuration hashes of the items of a job, sorted by name; empty when no item has one."""
    known = [item for item in items if item.profile is not None]
    listed = [
        {"name": item.name, "sha256": item.profile.configuration_sha256}
        for item in sorted(known, key=lambda item: item.name)
        if item.profile is not None
    ]
    return _sha256(_go_json(msgspec.json.encode(listed))) if listed else ""


def identity_hash(profile: ExecutionProfile, plan: str = "") -> str:
    """SHA-256 over what decides a number: neither messages nor states, neither paths nor the time limit count."""
    parts = {
        "benchmark": profile.benchmark,
        "executor": profile.executor,
        "plan": plan,
        "parameters": sorted((p.key, p.value) for p in profile.parameters if p.key not in _DISPLAY_ONLY and "/" not in p.value),
        "resources": msgspec.to_builtins(profile.resources),
        "assets": sorted((asset.name, mark) for asset in profile.assets if (mark := _mark(asset))),
        "mpi": (profile.mpi.implementation, profile.mpi.version),
        "script": profile.script_sha256,
    }
    return _sha256(msgspec.json.encode(parts, order="sorted"))


def _mark(asset: AssetCheck) -> str:
    """What tells one content from another; of a library its version, which is all that its message is."""
    return asset.sha256 or (asset.message if asset.kind == "library" else "")


def environment_fingerprint(machine: Machine) -> str:
    """SHA-256 over processor model, kernel and machine architecture."""
    try:
        model = proc_cpuinfo.parse(machine.files.read("/proc/cpuinfo")).model_name
    except (NoData, ParseError):
        model = ""
    system = platform.uname()
    return _sha256(msgspec.json.encode([model, system.system, system.release, system.version, system.machine]))


def sha256_of_file(path: str) -> str:
    """SHA-256 of the bytes of ``path``, read piece by piece. Raises OSError."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _go_json(data: bytes) -> bytes:
    text = data.decode("utf-8")
    for char, escape in _GO_ESCAPES:
        text = text.replace(char, escape)
    return text.encode("utf-8")


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
