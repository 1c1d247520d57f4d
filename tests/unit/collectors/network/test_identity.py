"""Identity of the interfaces."""

from pathlib import Path

from nodeproof.collectors.network.collector import identity
from nodeproof.host.recorded import recorded_machine
from nodeproof.model.catalogue import CATALOGUE
from support import tree
from support.hosts import KEPT

_LSPCI = b"0000:41:00.0 Infiniband controller: Example Networks ConnectX-6\n"


def test_net_info_has_the_references_labels() -> None:
    machine = recorded_machine(str(KEPT / "ib-hca"), {"lspci -D": _LSPCI})
    lost, ib0 = identity(machine)
    assert (ib0.component, ib0.name, ib0.value, ib0.unit) == ("network", "net_info", 1.0, "")
    assert ib0.labels == {
        "interface": "ib0",
        "mac": "80:00:00:00:00:00:00:00",
        "mtu": "2044",
        "speed": "100000",
        "driver": "mlx5_core",
        "pci_addr": "0000:41:00.0",
        "pci_device": "Example Networks ConnectX-6",
    }
    # Nothing describes the other adapter in words; a speed that is not known is the reference's -1.
    assert lost.labels is not None
    assert (lost.labels["interface"], lost.labels["speed"], lost.labels["pci_device"]) == ("ens2f0np0", "-1", "15b3:101b")
    assert CATALOGUE["network", "net_info"].labels == tuple(ib0.labels)


def test_virtio_is_its_pci_parent_and_a_bridge_has_none() -> None:
    docker, eth0, tap = identity(recorded_machine(str(KEPT / "vm-2cpu")))
    assert eth0.labels is not None
    assert (eth0.labels["pci_addr"], eth0.labels["driver"]) == ("0000:00:03.0", "virtio_net")
    assert docker.labels == {"interface": "docker0", "mac": "02:00:00:00:00:03", "mtu": "1500", "speed": "-1"}
    assert tap.labels is not None
    assert tap.labels["speed"] == "-1"


def test_a_usb_adapter_is_not_its_controller(tmp_path: Path) -> None:
    root = str(tmp_path)
    tree.write(root, "/sys/devices/pci0000:00/0000:00:14.0/usb1/1-2/1-2:1.0/net/enx0/mtu", 1500)
    tree.link(root, "/sys/class/net/enx0", "../../devices/pci0000:00/0000:00:14.0/usb1/1-2/1-2:1.0/net/enx0")
    tree.link(root, "/sys/class/net/odd0", "odd")
    tree.link(root, "/sys/class/net/odd1", "../virtio0/net/odd1")
    tree.link(root, "/sys/class/net/ens9", "../../devices/pci0000:00/0000:00:19.0/net/ens9")
    found = [metric.labels or {} for metric in identity(recorded_machine(root))]
    assert [labels.get("pci_addr") for labels in found] == ["0000:00:19.0", None, None, None]
    assert "pci_device" not in found[0]


def test_no_interfaces_no_identity(tmp_path: Path) -> None:
    assert identity(recorded_machine(str(tmp_path))) == []
