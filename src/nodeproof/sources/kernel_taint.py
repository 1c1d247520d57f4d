"""``/proc/sys/kernel/tainted``: ``4097`` (Documentation/admin-guide/tainted-kernels.rst): a set of bits, 0 = untainted."""

from nodeproof.errors import ParseError
from nodeproof.sources.unsigned import unsigned

__all__ = ["TAINTS", "parse", "words"]

TAINTS = (
    "proprietary_module",
    "forced_module",
    "cpu_out_of_spec",
    "forced_unload",
    "machine_check",
    "bad_page",
    "by_user",
    "oops",
    "acpi_override",
    "warning",
    "staging_driver",
    "firmware_workaround",
    "out_of_tree_module",
    "unsigned_module",
    "soft_lockup",
    "live_patch",
    "auxiliary",
    "randomised_struct",
    "test",
    "fwctl",
)
"""Meaning of each bit, from bit 0."""


def parse(raw: bytes, /) -> int:
    """The number. Raises ParseError."""
    text = raw.decode("utf-8", "replace").strip()
    number = unsigned(text)
    if number is None:
        raise ParseError("/proc/sys/kernel/tainted", 1, text[:40], "a number")
    return number


def words(taint: int) -> list[str]:
    """The bits of ``taint`` in words; a bit we do not know is ``bitN``."""
    bits = (bit for bit in range(taint.bit_length()) if taint >> bit & 1)
    return [TAINTS[bit] if bit < len(TAINTS) else f"bit{bit}" for bit in bits]
