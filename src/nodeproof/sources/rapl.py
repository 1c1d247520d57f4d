"""``/sys/class/powercap/intel-rapl:0``: ``name`` holds ``package-0``, ``energy_uj`` ``262143328850`` (kernel: power/powercap).

Intel and AMD alike. A counter begins anew after ``max_energy_range_uj``: a busy package gets there in twenty minutes.
"""

from typing import NamedTuple

from nodeproof.errors import ParseError

__all__ = ["ZoneName", "energy_used_j", "parse_energy_uj", "zone_name"]

_MICROJOULE_J = 1e-6
_MAX_DIGITS = 19
_MAX_POWER_W = 2_000.0
"""More than any package or board draws: a larger increase is no use of energy but a counter that was set anew."""


class ZoneName(NamedTuple):
    """What a zone counts."""

    package: str
    """Number of the package; empty for the whole platform."""
    domain: str
    """``package``, ``core``, ``uncore``, ``dram``, ``psys`` ..."""


def zone_name(name: str, parent: str, /) -> ZoneName:
    """The zone called ``name`` below the zone called ``parent`` (empty for a zone at the top).

    A package of several dies is called ``package-0-die-1``: its domain is ``package-die-1``, so that no two are confused.
    """
    head, _, rest = name.partition("-")
    number, _, die = rest.partition("-")
    if head == "package" and number.isdecimal():
        return ZoneName(number, f"package-{die}" if die else "package")
    if not parent:
        return ZoneName("", name)
    package, domain = zone_name(parent, "")
    return ZoneName(package, f"{domain.removeprefix('package-')}-{name}" if domain.startswith("package-") else name)


def parse_energy_uj(raw: bytes, path: str, /) -> int:
    """A counter or its range, in microjoules. Raises ParseError."""
    text = raw.decode("utf-8", "replace").strip()
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS):
        raise ParseError(path, 1, text, "a number of microjoules")
    return int(text)


def energy_used_j(before_uj: int, now_uj: int, range_uj: int, elapsed_s: float, /) -> float | None:
    """Joules used between two readings, over the end of the counter's range if need be; None when that cannot be told.

    It cannot when the readings are so far apart that the counter may have gone round more often than it shows.
    """
    most_j = _MAX_POWER_W * elapsed_s
    if elapsed_s <= 0 or (range_uj and range_uj * _MICROJOULE_J < most_j):
        return None
    used_uj = now_uj - before_uj if now_uj >= before_uj else now_uj + range_uj - before_uj
    used_j = used_uj * _MICROJOULE_J
    return used_j if 0 <= used_j <= most_j else None
