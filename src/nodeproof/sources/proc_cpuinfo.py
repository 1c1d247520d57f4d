"""``/proc/cpuinfo``: blocks of ``model name : AMD EPYC 7763 64-Core Processor``, one a processor (arch/*/kernel/cpu*.c).

Which names there are is up to the architecture: arm64 has no model name, only ``CPU implementer`` and ``CPU part`` (MIDR_EL1).
"""

from typing import NamedTuple

from nodeproof.errors import ParseError

__all__ = ["CpuInfo", "arm_name", "parse"]


class CpuInfo(NamedTuple):
    """What the file says of the processors; of the first one where all are alike. Empty or None = not said."""

    architecture: str
    """``x86_64``, ``aarch64``, ``ppc64le``, ``s390x``, ``riscv64``; empty when none of them is recognised."""
    processors: int
    vendor: str
    model_name: str
    cores_per_socket: int | None
    cache_size: str
    """As printed: ``512 KB``. On x86 it is the cache of a core beside the last level."""
    hypervisor: bool | None
    """x86 only: the hypervisor bit of CPUID, set in virtual machines."""
    microcodes: tuple[str, ...]
    """Every different microcode version, in order; a sound machine has one."""
    arm_parts: tuple[tuple[int, int], ...]
    """arm64 only: every different (implementer, part)."""


_MODEL_KEYS = (b"model name", b"cpu", b"uarch")
"""x86, ppc64 and riscv."""
_ARCHITECTURE_KEYS = (
    (b"flags", "x86_64"),
    (b"CPU implementer", "aarch64"),
    (b"isa", "riscv64"),
    (b"timebase", "ppc64le"),
    (b"max thread id", "s390x"),
)

_IMPLEMENTERS = {
    0x41: "Arm",
    0x42: "Broadcom",
    0x43: "Cavium",
    0x46: "Fujitsu",
    0x48: "HiSilicon",
    0x4E: "NVIDIA",
    0x50: "APM",
    0x51: "Qualcomm",
    0x61: "Apple",
    0x6D: "Microsoft",
    0x70: "Phytium",
    0xC0: "Ampere",
}
_PARTS = {
    (0x41, 0xD03): "Cortex-A53",
    (0x41, 0xD05): "Cortex-A55",
    (0x41, 0xD07): "Cortex-A57",
    (0x41, 0xD08): "Cortex-A72",
    (0x41, 0xD0B): "Cortex-A76",
    (0x41, 0xD0C): "Neoverse-N1",
    (0x41, 0xD40): "Neoverse-V1",
    (0x41, 0xD49): "Neoverse-N2",
    (0x41, 0xD4A): "Neoverse-E1",
    (0x41, 0xD4F): "Neoverse-V2",
    (0x41, 0xD84): "Neoverse-V3",
    (0x41, 0xD8E): "Neoverse-N3",
    (0x43, 0x0A1): "ThunderX",
    (0x43, 0x0AF): "ThunderX2",
    (0x46, 0x001): "A64FX",
    (0x48, 0xD01): "TSV110 (Kunpeng 920)",
    (0x48, 0xD02): "HIP09",
    (0x48, 0xD06): "HIP12",
    (0x4E, 0x004): "Carmel",
    (0x50, 0x000): "X-Gene",
    (0x51, 0xC00): "Falkor",
    (0x6D, 0xD49): "Azure Cobalt 100",
    (0x70, 0x662): "FTC662",
    (0x70, 0x663): "FTC663",
    (0xC0, 0xAC3): "Ampere-1",
    (0xC0, 0xAC4): "Ampere-1a",
}
"""Names by MIDR numbers (arch/arm64/include/asm/cputype.h)."""


def arm_name(implementer: int, part: int, /) -> str:
    """Name of an arm64 core; the numbers themselves where it is not in the table."""
    vendor = _IMPLEMENTERS.get(implementer, f"implementer {implementer:#04x}")
    return f"{vendor} {_PARTS.get((implementer, part), f'part {part:#05x}')}"


def parse(raw: bytes, /) -> CpuInfo:
    """Read all blocks. Raises ParseError when there is no line of the form ``name : value``."""
    first: dict[bytes, bytes] = {}
    processors = 0
    microcodes: dict[bytes, None] = {}
    arm_parts: dict[tuple[int, int], None] = {}
    implementer: int | None = None
    for line in raw.split(b"\n"):
        name, colon, value = line.partition(b":")
        if not colon:
            continue
        key, value = name.strip(), value.strip()
        first.setdefault(key, value)
        if key == b"processor" or key.startswith(b"processor "):
            processors += 1
        elif key == b"microcode":
            microcodes[value] = None
        elif key == b"CPU implementer":
            implementer = _hexadecimal(value)
        elif key == b"CPU part" and implementer is not None and (part := _hexadecimal(value)) is not None:
            arm_parts[implementer, part] = None
    if not first:
        raise ParseError("/proc/cpuinfo", 0, raw[:80].decode("utf-8", "replace"), "lines of the form name : value")
    return _info(first, processors, tuple(map(_text, microcodes)), tuple(arm_parts))


def _info(
    first: dict[bytes, bytes], processors: int, microcodes: tuple[str, ...], arm_parts: tuple[tuple[int, int], ...]
) -> CpuInfo:
    architecture = next((name for key, name in _ARCHITECTURE_KEYS if key in first), "")
    model_name = next((_text(first[key]) for key in _MODEL_KEYS if first.get(key)), "")
    if not model_name and arm_parts:
        model_name = " + ".join(arm_name(*part) for part in arm_parts)
    vendor = _text(first.get(b"vendor_id", b""))
    if not vendor and arm_parts:
        vendor = _IMPLEMENTERS.get(arm_parts[0][0], "")
    cores = first.get(b"cpu cores", b"")
    return CpuInfo(
        architecture,
        processors,
        vendor,
        model_name,
        int(cores) if cores.isdigit() and len(cores) < 6 and int(cores) else None,
        _text(first.get(b"cache size", b"")),
        b"hypervisor" in first[b"flags"].split() if b"flags" in first else None,
        microcodes,
        arm_parts,
    )


def _hexadecimal(value: bytes) -> int | None:
    try:
        return int(value, 16)
    except ValueError:
        return None


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
