"""``aer_dev_correctable`` and its sisters below ``/sys/bus/pci/devices``: ``BadTLP 3`` ... ``TOTAL_ERR_COR 5``.

A line an error, and their sum last (Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats, drivers/pci/pcie/aer.c).
"""

from nodeproof.errors import ParseError
from nodeproof.sources.unsigned import unsigned

__all__ = ["total"]


def total(raw: bytes, /) -> int:
    """Errors since the device was found: the file's own sum, or ours where it has none. Raises ParseError."""
    text = raw.decode("utf-8", "replace")
    summed, seen = 0, False
    for line in text.splitlines():
        name, _, number = line.rpartition(" ")
        count = unsigned(number)
        if not name or count is None:
            continue
        if name.startswith("TOTAL_ERR"):
            return count
        summed, seen = summed + count, True
    if not seen:
        raise ParseError("aer_dev_*", 0, text[:40], "lines such as TOTAL_ERR_COR 0")
    return summed
