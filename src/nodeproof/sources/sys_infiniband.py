"""Files of ``/sys/class/infiniband/<device>/ports/<port>/`` (Documentation/ABI/stable/sysfs-class-infiniband).

``state`` = ``4: ACTIVE``, ``phys_state`` = ``5: LinkUp``, ``rate`` = ``100 Gb/sec (4X EDR)``, one number in each file of
``counters/`` and ``hw_counters/``.

The classic counters (InfiniBand Architecture Specification, PortCounters; drivers/infiniband/core/sysfs.c) are 4 to 32 bits wide
and *stop* at their greatest value. A counter found there says nothing but "at least so many": it is saturated until somebody
resets it.
"""

from typing import NamedTuple

from nodeproof.errors import ParseError
from nodeproof.sources.unsigned import unsigned

__all__ = [
    "DATA_WORD_BYTES",
    "ERROR_COUNTERS",
    "HW_COUNTERS",
    "PortRate",
    "PortState",
    "is_saturated",
    "parse_counter",
    "parse_rate",
    "parse_state",
]

DATA_WORD_BYTES = 4
"""``port_xmit_data`` and ``port_rcv_data`` count 32-bit words."""

ERROR_COUNTERS: dict[str, int] = {
    "symbol_error": 16,
    "link_error_recovery": 8,
    "link_downed": 8,
    "port_rcv_errors": 16,
    "port_rcv_remote_physical_errors": 16,
    "port_rcv_switch_relay_errors": 16,
    "port_rcv_constraint_errors": 8,
    "port_xmit_discards": 16,
    "port_xmit_constraint_errors": 8,
    "local_link_integrity_errors": 4,
    "excessive_buffer_overrun_errors": 4,
    "VL15_dropped": 16,
}
"""Width in bits by name."""

_TRAFFIC_BITS = 32
"""Width of the data, packet and wait counters; data and packets are 64 bits wide where the adapter has the extended set."""

HW_COUNTERS = (
    "duplicate_request",
    "implied_nak_seq_err",
    "local_ack_timeout_err",
    "np_cnp_sent",
    "np_ecn_marked_roce_packets",
    "out_of_buffer",
    "out_of_sequence",
    "packet_seq_err",
    "req_cqe_error",
    "req_remote_access_errors",
    "resp_cqe_error",
    "rnr_nak_retry_err",
    "roce_adp_retrans",
    "roce_adp_retrans_to",
    "roce_slow_restart",
    "rp_cnp_handled",
    "rp_cnp_ignored",
    "rx_icrc_encapsulated",
    "max_retry_exceeded",
    "seq_err_naks_rcvd",
    "to_retransmits",
    "oos_drop_count",
    "retrans_segs",
    "tcp_retrans_segs",
)
"""Drivers' own counters that tell of loss and congestion (mlx5, bnxt_re, irdma)."""


class PortState(NamedTuple):
    """``4: ACTIVE``."""

    code: int
    name: str


class PortRate(NamedTuple):
    """``100 Gb/sec (4X EDR)``."""

    speed_mbps: float
    lanes: int | None
    """None when the kernel does not say."""
    generation: str
    """``SDR``, ``QDR``, ``EDR``, ``NDR`` ...; empty when the kernel does not say."""


def parse_state(raw: bytes, /) -> PortState:
    """``state`` or ``phys_state``. Raises ParseError."""
    text = raw.decode("utf-8", "replace").strip()
    digits, _, name = text.partition(":")
    code = unsigned(digits)
    if code is None or not name.strip():
        raise ParseError("/sys/class/infiniband state", 1, text, "a number, a colon and a word")
    return PortState(code, name.strip())


def parse_rate(raw: bytes, /) -> PortRate:
    """``rate``: ``2.5 Gb/sec (1X SDR)``. Raises ParseError."""
    text = raw.decode("utf-8", "replace").strip()
    number, _, rest = text.partition(" ")
    unit, _, inside = rest.partition("(")
    try:
        speed_mbps = float(number) * 1000.0
    except ValueError:
        speed_mbps = 0.0
    # Not finite and absurd values fail the comparison as well.
    if unit.strip() != "Gb/sec" or not 0 < speed_mbps <= 1e7:
        raise ParseError("/sys/class/infiniband rate", 1, text, "a rate in Gb/sec")
    width, _, generation = inside.rstrip(")").partition(" ")
    lanes = unsigned(width[:-1]) if width.endswith("X") else None
    return PortRate(speed_mbps, lanes, generation.strip())


def parse_counter(raw: bytes, /) -> int:
    """The one number of a counter's file. Raises ParseError (``N/A (no PMA)`` where the adapter has none)."""
    text = raw.decode("utf-8", "replace").strip()
    number = unsigned(text)
    if number is None:
        raise ParseError("/sys/class/infiniband counter", 1, text, "a number that is not negative")
    return number


def is_saturated(name: str, value: int) -> bool:
    """Whether counter ``name`` stands at the greatest value of its width, or at 64 bits of ones, a driver's word for failure."""
    return value in {2 ** ERROR_COUNTERS.get(name, _TRAFFIC_BITS) - 1, 2**64 - 1}
