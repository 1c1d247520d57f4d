"""``hccn_tool -i PHY -bandwidth|-link|-speed|-stat -g``: the network port of one Ascend chip.

::

    Bandwidth TX: 12.5 MB/sec      (older: Net TX: 12.5, PCIe TX: 3.0)
    link status: UP                (older: Link: ACTIVE)
    Speed: 200000 Mb/s             (older: Speed: 100Gbps)
    mac_tx_mac_pause_num:0

An answer may hold half of what was asked; what is not in it is absent and never 0, and a word that is not known is not DOWN.
"""

import re
from collections.abc import Mapping

from nodeproof.errors import Absence, NoData, ParseError
from nodeproof.sources.npu_cells import Reading, number

__all__ = ["LINK_WORDS", "STATISTICS", "bandwidth", "link", "speed", "statistics"]

_MOST_LINES = 1024
_RATE = re.compile(r"^\s*(?:Bandwidth|(Net|PCIe))\s+(TX|RX)\s*:\s*(\S+)", re.IGNORECASE)
_LINK = re.compile(r"^\s*link(?:\s+status)?\s*:\s*(\S.*?)\s*$", re.IGNORECASE | re.MULTILINE)
_SPEED = re.compile(r"^\s*speed\s*:\s*(\S.*?)\s*$", re.IGNORECASE | re.MULTILINE)
_COUNT = re.compile(r"^\s*([a-z][a-z0-9_]{2,60})\s*:\s*(\d{1,20})\s*$", re.ASCII)

LINK_WORDS: Mapping[str, bool] = {"up": True, "active": True, "down": False, "inactive": False}
"""Words that say whether a link is up, in small letters."""

_PER_PRIORITY = tuple(f"mac_{way}_pfc_pri{queue}_pkt_num" for way in ("tx", "rx") for queue in range(8))
STATISTICS: tuple[str, ...] = (
    "mac_tx_mac_pause_num",
    "mac_rx_mac_pause_num",
    "mac_tx_pfc_pkt_num",
    *_PER_PRIORITY[:8],
    "mac_rx_pfc_pkt_num",
    *_PER_PRIORITY[8:],
    "mac_tx_total_pkt_num",
    "mac_tx_total_oct_num",
    "mac_tx_bad_pkt_num",
    "mac_tx_bad_oct_num",
    "mac_rx_total_pkt_num",
    "mac_rx_total_oct_num",
    "mac_rx_bad_pkt_num",
    "mac_rx_bad_oct_num",
    "roce_rx_rc_pkt_num",
    "roce_rx_all_pkt_num",
    "roce_rx_err_pkt_num",
    "roce_tx_rc_pkt_num",
    "roce_tx_all_pkt_num",
    "roce_tx_err_pkt_num",
    "roce_cqe_num",
    "roce_rx_cnp_pkt_num",
    "roce_tx_cnp_pkt_num",
    "roce_unexpected_ack_num",
    "roce_out_of_order_num",
    "roce_verification_err_num",
    "roce_qp_status_err_num",
    "roce_new_pkt_rty",
    "nic_tx_all_pkg_num",
    "nic_tx_all_oct_num",
    "nic_rx_all_pkg_num",
    "nic_rx_all_oct_num",
)
"""The counters of ``-stat``, by their own names."""

_ALIASES: Mapping[str, str] = {
    "roce_new_pkt_rty_num": "roce_new_pkt_rty",
    "roce_retrans_pkt_num": "roce_new_pkt_rty",
    "roce_rx_retrans_pkt_num": "roce_new_pkt_rty",
    "roce_out_of_order_pkt_num": "roce_out_of_order_num",
}
"""Names that other versions print for the same counter."""


def bandwidth(raw: bytes, /) -> dict[str, Reading]:
    """MB/s by ``net_tx``, ``net_rx``, ``pcie_tx`` and ``pcie_rx``, as answered. Raises ParseError when it has none."""
    text = raw.decode("utf-8", "replace")
    found: dict[str, Reading] = {}
    for line in text.splitlines()[:_MOST_LINES]:
        if match := _RATE.match(line):
            name = f"{(match[1] or 'net').lower()}_{match[2].lower()}"
            found[name] = number(match[3], "MB/s", name)
    if not found:
        raise _nothing("bandwidth", text, "Bandwidth TX: and RX:")
    return found


def link(raw: bytes, /) -> str:
    """The word that tells the link's state, as printed. Raises ParseError when there is none."""
    text = raw.decode("utf-8", "replace")
    found = _LINK.search(text)
    if found is None:
        raise _nothing("link", text, "link status:")
    return found[1][:40]


def speed(raw: bytes, /) -> str:
    """The rate as printed, ``200000 Mb/s``. Raises ParseError when there is none, NoData when the port does not know it."""
    text = raw.decode("utf-8", "replace")
    found = _SPEED.search(text)
    if found is None:
        raise _nothing("speed", text, "Speed:")
    if "unknown" in found[1].lower():
        raise NoData(Absence.UNKNOWN, "the port does not know its speed: there is no link")
    return found[1][:40]


def statistics(raw: bytes, /) -> dict[str, float]:
    """Counters by name, those that the answer holds. Raises ParseError when it holds none."""
    text = raw.decode("utf-8", "replace")
    found: dict[str, float] = {}
    for line in text.splitlines()[:_MOST_LINES]:
        if match := _COUNT.match(line):
            name = _ALIASES.get(match[1], match[1])
            if name in _KNOWN:
                found.setdefault(name, float(match[2]))
    if not found:
        raise _nothing("stat", text, "lines of counter:number")
    return found


_KNOWN = frozenset(STATISTICS)


def _nothing(option: str, text: str, expected: str) -> ParseError:
    return ParseError(f"hccn_tool -{option} -g", 0, text.strip()[:120], expected)
