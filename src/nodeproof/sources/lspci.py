"""``lspci -D``: ``0000:4b:00.0 Ethernet controller: Example Corporation ConnectX-6 (rev 01)`` (lspci(8), pciutils)."""

from nodeproof.errors import ParseError

__all__ = ["parse"]


def parse(raw: bytes, /) -> dict[str, str]:
    """Description by address with its domain; other lines are passed over. Raises ParseError when there is none."""
    devices: dict[str, str] = {}
    for line in raw.decode("utf-8", "replace").split("\n"):
        address, _, rest = line.partition(" ")
        _, colon, description = rest.partition(": ")
        if address.count(":") == 2 and colon and description.strip():
            devices[address] = description.strip()
    if not devices:
        raise ParseError("lspci -D", 0, raw[:40].decode("utf-8", "replace"), "lines of an address, a class and a description")
    return devices
