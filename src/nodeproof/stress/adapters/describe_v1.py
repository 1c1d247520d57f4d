"""The answer of a dispatcher to ``describe NAME``, protocol version 1 (stress.md 3.2), read strictly.

Exactly one JSON object with the fields of the protocol and no others; types are not converted; what contradicts itself is no
answer. There is no half-believed profile.
"""

import re
from typing import Any

import msgspec

from nodeproof.model.job import (
    AssetCheck,
    CheckStatus,
    ExecutionProfile,
    MPICheck,
    PreflightResult,
    ProfileParameter,
    ResourceProfile,
)
from nodeproof.stress.adapters.base import DescribeError

__all__ = ["read_description"]

_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_TOP = {
    "protocol_version", "benchmark", "executor", "container", "plugin", "runtime_identity", "parameters", "resources", "assets",
    "mpi", "preflight", "timeout_seconds", "result_directory", "script_sha256", "configuration_sha256",
}  # fmt: skip
_PARTS: tuple[tuple[str, type[msgspec.Struct], bool], ...] = (
    ("parameters", ProfileParameter, True),
    ("resources", ResourceProfile, False),
    ("assets", AssetCheck, True),
    ("mpi", MPICheck, False),
    ("preflight", PreflightResult, False),
)
_MOST_ENTRIES = 1000


def read_description(raw: bytes, benchmark: str) -> ExecutionProfile:
    """The profile in ``raw``. Raises DescribeError that says what is wrong with it."""
    try:
        tree = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _wrong(benchmark, f"it is not exactly one JSON object: {error}") from None
    if not isinstance(tree, dict):
        raise _wrong(benchmark, "it is no JSON object")
    _check_keys(benchmark, tree)
    tree.pop("runtime_identity", None)
    try:
        profile = msgspec.convert(tree, ExecutionProfile, strict=True)
    except msgspec.ValidationError as error:
        raise _wrong(benchmark, str(error)) from None
    fault = _fault(profile, benchmark)
    if fault:
        raise _wrong(benchmark, fault)
    return msgspec.structs.replace(profile, timeout_seconds=0, result_directory="", script_sha256="", configuration_sha256="")


def _check_keys(benchmark: str, tree: dict[str, Any]) -> None:
    unknown = sorted(set(tree) - _TOP)
    if unknown:
        raise _wrong(benchmark, f"unknown field {unknown[0][:80]!r}")
    for key, struct, listed in _PARTS:
        part = tree.get(key)
        entries = part if listed and isinstance(part, list) else [part]
        if len(entries) > _MOST_ENTRIES:
            raise _wrong(benchmark, f"{key} has {len(entries)} entries")
        known = set(struct.__struct_fields__)
        for entry in entries:
            extra = sorted(set(entry) - known) if isinstance(entry, dict) else []
            if extra:
                raise _wrong(benchmark, f"unknown field {extra[0][:80]!r} in {key}")


def _fault(profile: ExecutionProfile, benchmark: str) -> str:
    """The first thing that a sound answer does not say; empty for a sound one."""
    if profile.protocol_version != 1:
        return f"protocol version {profile.protocol_version}, 1 is understood"
    if profile.benchmark != benchmark:
        return f"it describes {profile.benchmark[:80]!r}"
    return _parameter_fault(profile) or _resource_fault(profile.resources) or _asset_fault(profile) or _check_fault(profile)


def _parameter_fault(profile: ExecutionProfile) -> str:
    seen: set[str] = set()
    for parameter in profile.parameters:
        if not parameter.key.strip() or not parameter.label.strip():
            return "a parameter without key or label"
        if parameter.key in seen:
            return f"parameter {parameter.key[:80]!r} twice"
        seen.add(parameter.key)
    return ""


def _resource_fault(resources: ResourceProfile) -> str:
    counts = (resources.mpi_processes, resources.threads_per_process, resources.total_workers, resources.runtime_seconds)
    if min(counts) < 0:
        return "a negative number of resources"
    product = resources.mpi_processes * resources.threads_per_process
    if product and resources.total_workers != product:
        return (
            f"{resources.mpi_processes} processes of {resources.threads_per_process} threads, "
            f"and {resources.total_workers} workers in all"
        )
    return ""


def _asset_fault(profile: ExecutionProfile) -> str:
    for asset in profile.assets:
        if not asset.name.strip() or not asset.path.strip():
            return "an asset without name or path"
        if asset.status is CheckStatus.UNSUPPORTED:
            return f"asset {asset.name[:80]!r} says unsupported"
        if asset.sha256 and _SHA256.fullmatch(asset.sha256) is None:
            return f"asset {asset.name[:80]!r} has a hash that is none"
    return ""


def _check_fault(profile: ExecutionProfile) -> str:
    mpi, preflight = profile.mpi, profile.preflight
    if not mpi.implementation.strip() or not mpi.executable_abi.strip():
        return "MPI without implementation or ABI"
    if CheckStatus.UNSUPPORTED in {mpi.status, preflight.status}:
        return "a check says unsupported"
    failed = [asset.name for asset in profile.assets if asset.required and asset.status is CheckStatus.FAIL]
    if mpi.status is CheckStatus.FAIL:
        failed.append("MPI")
    if failed and preflight.status is not CheckStatus.FAIL:
        return f"{failed[0][:80]} fails, and the preflight does not"
    return ""


def _wrong(benchmark: str, what: str) -> DescribeError:
    return DescribeError(f"describe {benchmark}: the answer cannot be believed: {what}")
