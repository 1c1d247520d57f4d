"""``/proc/net/dev``: ``  eth0: 86659181 2391 0 1 0 0 0 0 169087 1480 0 0 0 0 0 0`` (proc_pid_net(5), net/core/net-procfs.c).

The second header line names the columns, receive and transmit divided by ``|``. The kernel has already added other causes of loss
into some of them: ``drop`` holds missed frames too, ``frame`` all length, overrun, CRC and alignment errors, ``carrier`` all
carrier, abort, window and heartbeat errors.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from nodeproof.errors import ParseError

__all__ = ["NetDevice", "parse"]

_SOURCE = "/proc/net/dev"
_MAX_COUNT = 2**64 - 1
_RX = (b"bytes", b"packets", b"errs", b"drop", b"fifo", b"frame")
_TX = (b"bytes", b"packets", b"errs", b"drop", b"fifo", b"colls", b"carrier")


class NetDevice(NamedTuple):
    """Counters of one interface since it was made, or since its driver last started."""

    rx_bytes: int
    rx_packets: int
    rx_errs: int
    rx_drop: int
    rx_fifo: int
    rx_frame: int
    tx_bytes: int
    tx_packets: int
    tx_errs: int
    tx_drop: int
    tx_fifo: int
    tx_colls: int
    tx_carrier: int


def parse(raw: bytes, /, keep: Callable[[str], bool] = bool) -> dict[str, NetDevice]:
    """Counters by interface, of those whose name ``keep`` accepts, in the file's order.

    A damaged line is passed over. Raises ParseError when the header is missing, or when there are lines and none is whole.
    """
    lines = raw.split(b"\n")
    if len(lines) < 2:
        raise ParseError(_SOURCE, 0, raw[:40].decode("utf-8", "replace"), "two header lines")
    columns = _columns(lines[1])
    devices: dict[str, NetDevice] = {}
    damaged = ""
    for line in lines[2:]:
        # Alias names of old kernels have a colon themselves (eth0:1), and counters may touch it: the last one is the border.
        name_bytes, colon, rest = line.rpartition(b":")
        name = name_bytes.strip().decode("utf-8", "replace")
        if not colon or not keep(name):
            continue
        device = _device(rest.split(), columns)
        if device is None:
            damaged = line.decode("utf-8", "replace")
        else:
            devices[name] = device
    if damaged and not devices:
        raise ParseError(_SOURCE, 0, damaged, "a name, a colon and 16 counters")
    return devices


def _device(fields: list[bytes], columns: tuple[int, ...]) -> NetDevice | None:
    try:
        numbers = list(map(int, fields))
        device = NetDevice(*[numbers[column] for column in columns])
    except (ValueError, IndexError):
        return None
    return device if min(device) >= 0 and max(device) <= _MAX_COUNT else None


@lru_cache(maxsize=4)
def _columns(header: bytes) -> tuple[int, ...]:
    """Place of each field of NetDevice behind the colon, from ``face |bytes packets ...|bytes packets ...``."""
    parts = [part.split() for part in header.split(b"|")]
    try:
        _, rx, tx = parts
        return tuple([rx.index(name) for name in _RX] + [len(rx) + tx.index(name) for name in _TX])
    except ValueError:
        raise ParseError(_SOURCE, 2, header.decode("utf-8", "replace"), "column names of receive and transmit") from None
