"""Files of ``/sys/bus/pci/devices/<address>/`` (Documentation/ABI/testing/sysfs-bus-pci).

``class`` = ``0x030200``, ``vendor`` = ``0x10de``, ``current_link_speed`` = ``16.0 GT/s PCIe``, ``current_link_width`` = ``16``.
"""

from nodeproof.errors import ParseError
from nodeproof.sources.unsigned import unsigned

__all__ = ["ACCELERATOR_CLASSES", "accelerator_kind", "parse_id", "parse_link_speed", "parse_link_width"]

_DISPLAY_CLASSES = frozenset({0x0300, 0x0302, 0x0380})
_PROCESSING_CLASS = 0x1200
ACCELERATOR_CLASSES = _DISPLAY_CLASSES | {_PROCESSING_CLASS}
"""Base class and subclass: VGA, 3D and other display controllers, and processing accelerators (PCI Code and ID Assignment)."""

_GPU_VENDORS = {0x10DE: "nvidia", 0x1002: "amd"}
_NPU_VENDORS = {0x19E5: "huawei"}
_MAX_LANES = 32
_MAX_GT_S = 1000.0


def accelerator_kind(vendor: int, device_class: int) -> tuple[str, str] | None:
    """Component (``gpu`` or ``npu``) and vendor name of a card; None for anything else.

    ``device_class`` has three bytes, as in ``class``. The vendors' network chips, switches and management displays are no cards.
    """
    kind = device_class >> 8
    if kind in ACCELERATOR_CLASSES and vendor in _GPU_VENDORS:
        return "gpu", _GPU_VENDORS[vendor]
    if kind == _PROCESSING_CLASS and vendor in _NPU_VENDORS:
        return "npu", _NPU_VENDORS[vendor]
    return None


def parse_id(raw: bytes, /) -> int:
    """``class``, ``vendor`` or ``device``: a number in hexadecimal. Raises ParseError."""
    try:
        number = int(raw, 16)
    except ValueError:
        number = -1
    if number < 0:
        raise ParseError("/sys/bus/pci/devices", 1, raw.decode("utf-8", "replace"), "a number in hexadecimal")
    return number


def parse_link_speed(raw: bytes, /) -> float | None:
    """GT/s of ``current_link_speed`` or ``max_link_speed``; None for ``Unknown`` (virtual functions). Raises ParseError."""
    words = raw.decode("utf-8", "replace").split()
    if words[:1] == ["Unknown"]:
        return None
    try:
        speed = float(words[0])
    except (IndexError, ValueError):
        speed = 0.0
    if not 0 < speed <= _MAX_GT_S or words[1:2] != ["GT/s"]:
        raise ParseError("PCIe link speed", 1, " ".join(words), "a rate in GT/s")
    return speed


def parse_link_width(raw: bytes, /) -> int | None:
    """Lanes of ``current_link_width`` or ``max_link_width``; None for 0 and 255, which stand for "no link". Raises ParseError."""
    text = raw.decode("utf-8", "replace")
    lanes = unsigned(text)
    if lanes is None:
        raise ParseError("PCIe link width", 1, text, "a number of lanes")
    return lanes if 0 < lanes <= _MAX_LANES else None
