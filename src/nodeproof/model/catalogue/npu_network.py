"""Metrics of component npu (observe.md 1.6): the network port of each chip, through ``hccn_tool`` and DCMI."""

from nodeproof.model.catalogue.spec import Kind, MetricSpec

__all__ = ["METRICS", "NETWORK_PERIOD_S"]

NETWORK_PERIOD_S = 30.0
"""``hccn_tool`` takes a second and more a chip."""

_CHIP = ("npu_id", "chip_id")


def _port(name: str, unit: str, kind: Kind, text: str, option: str, *labels: str) -> MetricSpec:
    source = f"hccn_tool -i PHY -{option} -g"
    return MetricSpec("npu", name, unit, kind, text, source, (*_CHIP, *labels), period_s=NETWORK_PERIOD_S, reference=True)


def _rate(name: str, text: str) -> MetricSpec:
    return _port(name, "MB/s", Kind.GAUGE, text, "bandwidth", "direction")


_STATES = (
    _port("roce_link_status", "", Kind.STATE, "1 = the link is up, 0 = it is down.", "link", "status"),
    _port("roce_link_health", "", Kind.INFO, "1 = up, 0 = down; the link's word is a label.", "link", "roce_link"),
    _port("roce_speed_status", "", Kind.INFO, "1; the rate that the port runs at is a label.", "speed", "roce_speed"),
    _port(
        "network_health", "", Kind.STATE, "Code of the driver's own check of the chip's network; 0 = well.", "net_health"
    )._replace(source="libdcmi.so", reference=False),
)

_RATES = (
    _rate("net_tx_bandwidth", "Sent by the chip's network port."),
    _rate("net_rx_bandwidth", "Received by the chip's network port."),
    _rate("pcie_tx_bandwidth", "Sent by the chip over PCIe."),
    _rate("pcie_rx_bandwidth", "Received by the chip over PCIe."),
)

_QUEUES = tuple(range(8))

_COUNTERS: tuple[tuple[str, str], ...] = (
    ("mac_tx_mac_pause_num", "Pause frames sent."),
    ("mac_rx_mac_pause_num", "Pause frames received."),
    ("mac_tx_pfc_pkt_num", "Frames of priority flow control sent."),
    *((f"mac_tx_pfc_pri{queue}_pkt_num", f"Frames of priority flow control sent for queue {queue}.") for queue in _QUEUES),
    ("mac_rx_pfc_pkt_num", "Frames of priority flow control received."),
    *((f"mac_rx_pfc_pri{queue}_pkt_num", f"Frames of priority flow control received for queue {queue}.") for queue in _QUEUES),
    ("mac_tx_total_pkt_num", "Frames sent."),
    ("mac_tx_total_oct_num", "Bytes sent."),
    ("mac_tx_bad_pkt_num", "Bad frames sent."),
    ("mac_tx_bad_oct_num", "Bytes in bad frames sent."),
    ("mac_rx_total_pkt_num", "Frames received."),
    ("mac_rx_total_oct_num", "Bytes received."),
    ("mac_rx_bad_pkt_num", "Bad frames received."),
    ("mac_rx_bad_oct_num", "Bytes in bad frames received."),
    ("roce_rx_rc_pkt_num", "RoCE packets of reliable connections received."),
    ("roce_rx_all_pkt_num", "RoCE packets received."),
    ("roce_rx_err_pkt_num", "Bad RoCE packets received."),
    ("roce_tx_rc_pkt_num", "RoCE packets of reliable connections sent."),
    ("roce_tx_all_pkt_num", "RoCE packets sent."),
    ("roce_tx_err_pkt_num", "Bad RoCE packets sent."),
    ("roce_cqe_num", "Completions of RoCE requests."),
    ("roce_rx_cnp_pkt_num", "Congestion notifications received."),
    ("roce_tx_cnp_pkt_num", "Congestion notifications sent."),
    ("roce_unexpected_ack_num", "Acknowledgements received that nobody waited for."),
    ("roce_out_of_order_num", "RoCE packets received out of order or twice."),
    ("roce_verification_err_num", "RoCE packets that failed their check."),
    ("roce_qp_status_err_num", "RoCE packets for a queue pair in a wrong state."),
    ("roce_new_pkt_rty", "RoCE packets sent again."),
    ("nic_tx_all_pkg_num", "Packets sent by the port."),
    ("nic_tx_all_oct_num", "Bytes sent by the port."),
    ("nic_rx_all_pkg_num", "Packets received by the port."),
    ("nic_rx_all_oct_num", "Bytes received by the port."),
)

METRICS: tuple[MetricSpec, ...] = (
    *_STATES,
    *_RATES,
    *(_port(name, "bytes" if "_oct_" in name else "count", Kind.COUNTER, text, "stat") for name, text in _COUNTERS),
)
