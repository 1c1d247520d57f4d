"""Files of ``/sys/class/net/<interface>/`` (Documentation/ABI/testing/sysfs-class-net), one small value each."""

from nodeproof.errors import ParseError

__all__ = ["is_up", "is_virtual", "parse_count", "parse_flag", "parse_flags", "parse_speed", "parse_word"]

_IFF_UP = 0x1
_SPEED_UNKNOWN = frozenset({0, 0xFFFF, 0xFFFFFFFF})
"""What drivers and kernels say for "not known" beside negative numbers: none, 16 bits of ones, 32 bits of ones."""
_MAX_SPEED_MBPS = 10_000_000
_VIRTUAL_PREFIXES = ("cali", "cni", "veth", "br-", "virbr", "flannel", "ovs-system", "dummy", "endvnic")


def is_virtual(interface: str) -> bool:
    """Whether an interface is loopback or plumbing of containers and switches, which the reference (0.3.5) leaves out.

    Loopback is matched as ``lo`` itself and its aliases, not as a prefix: ``lom1`` is a port on the main board.
    """
    return interface.startswith(_VIRTUAL_PREFIXES) or interface == "lo" or interface.startswith("lo:")


def is_up(operstate: str, *, admin_up: bool | None, carrier: bool | None) -> bool | None:
    """Whether an interface can pass traffic; None when that cannot be told.

    Drivers that do not follow RFC 2863 (tun, loopback, some virtual ones) stand at ``unknown``: their carrier decides.
    """
    if operstate != "unknown":
        return operstate == "up"
    return False if admin_up is False else carrier


def parse_speed(raw: bytes, /) -> int | None:
    """Mb/s of ``speed`` (``100000``); None for the sentinels of "not known" and for what no port can do. Raises ParseError."""
    speed = _integer("speed", raw)
    return speed if 0 < speed <= _MAX_SPEED_MBPS and speed not in _SPEED_UNKNOWN else None


def parse_flags(raw: bytes, /) -> bool:
    """Whether ``flags`` (``0x1003``) has IFF_UP: an administrator has switched the interface on. Raises ParseError."""
    return bool(_integer("flags", raw, base=16) & _IFF_UP)


def parse_flag(raw: bytes, /) -> bool:
    """A file that holds 0 or 1, such as ``carrier``. Raises ParseError."""
    return _integer("carrier", raw) != 0


def parse_count(raw: bytes, /) -> int:
    """A file that holds a number which is never negative, such as ``mtu`` or ``carrier_changes``. Raises ParseError."""
    count = _integer("count", raw)
    if count < 0:
        raise ParseError("/sys/class/net count", 1, str(count), "a number that is not negative")
    return count


def parse_word(raw: bytes, /) -> str:
    """A file that holds one word, such as ``operstate`` or ``duplex``; empty when it holds none."""
    words = raw[:64].decode("utf-8", "replace").split()
    return words[0] if words else ""


def _integer(name: str, raw: bytes, base: int = 10) -> int:
    try:
        return int(raw[:64], base)
    except ValueError:
        raise ParseError(f"/sys/class/net {name}", 1, raw.decode("utf-8", "replace"), "an integer") from None
