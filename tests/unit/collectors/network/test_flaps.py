"""Links that went down within the last hour."""

from collections.abc import Callable
from pathlib import Path
from typing import get_type_hints

import msgspec

from nodeproof.collectors.base import GroupCollector
from nodeproof.collectors.network.flaps import Flaps
from nodeproof.collectors.network.links import Links
from nodeproof.collectors.services.kernel_log import KernelCounts, KernelLog, LinkChange
from nodeproof.errors import Absence, NoData
from support.network import Everything, Host, missing_of, readings

_NET = "/sys/class/net"
_QUIET = msgspec.convert(
    {
        name: {} if "dict" in str(kind) else [0, 0] if "Pair" in str(kind) else 0
        for name, kind in get_type_hints(KernelCounts).items()
    }
    | {"boot_id": "", "complete": True, "since_s": 0.0},
    KernelCounts,
)
"""A log that holds everything since boot, and nothing happened."""


class _Log:
    """A kernel log of which a test says what it holds."""

    def __init__(self) -> None:
        self.answer: KernelCounts | NoData = NoData(Absence.NO_PERMISSION, "/dev/kmsg: no", remedy="run as root")

    def counts(self) -> KernelCounts:
        if isinstance(self.answer, NoData):
            raise self.answer
        return self.answer


def _interface(name: str, **files: int) -> dict[str, str | bytes | float]:
    return {f"{_NET}/{name}/{file}": value for file, value in ({"operstate": "up"} | files).items()}


def _flaps(host: Host, log: _Log) -> Callable[[float], dict[str, float | Absence]]:
    """Asks a Flaps of its own, at the second since boot that is given."""
    host.machine._shared[KernelLog] = log
    links = Links(host.machine)
    flaps = Flaps(host.machine, links.states)
    collector = GroupCollector("network", (*links.groups(), *flaps.groups()), host.machine, Everything())

    def ask(mono_s: float) -> dict[str, float | Absence]:
        host.clock.mono_s = mono_s
        collector.forget()
        collector.collect()
        host.machine.settle(5)
        collector.forget()
        batch = collector.collect()
        found: dict[str, float | Absence] = {key[0]: value for key, value in readings(batch, "link_flaps").items()}
        for entry in missing_of(batch, "link_flaps"):
            found |= dict.fromkeys(entry.reason.rpartition(": ")[2].split(", "), entry.state)
        return found

    return ask


def test_case_20_three_flaps_are_counted_and_clear_by_themselves(tmp_path: Path) -> None:
    log = _Log()
    times = ((500.1, False), (503.9, True), (620.0, False), (622.5, True), (900.0, False), (901.0, True))
    changes = {"enp75s0np0": tuple(LinkChange(at_s, up) for at_s, up in times)}
    log.answer = msgspec.structs.replace(_QUIET, link_changes=changes)
    host = Host(tmp_path)
    host.write(_interface("enp75s0np0") | _interface("quiet0"))
    flaps = _flaps(host, log)
    assert flaps(950.0) == {"enp75s0np0": 3, "quiet0": 0}
    assert flaps(4100.2)["enp75s0np0"] == 2  # 3600 s after the first
    assert flaps(4500.5) == {"enp75s0np0": 0, "quiet0": 0}


def test_flaps_without_the_kernel_log_are_seen_by_the_carrier_counter(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.write(_interface("eth0", carrier_down_count=5) | _interface("eth1", carrier_down_count=0) | _interface("eth2"))
    flaps = _flaps(host, _Log())
    # eth1 never went down since it exists; of eth0 and eth2 nobody can tell.
    assert flaps(1000.0) == {"eth0": Absence.NO_PERMISSION, "eth1": 0, "eth2": Absence.NO_PERMISSION}
    host.write({f"{_NET}/eth0/carrier_down_count": 7})
    assert flaps(1020.0) == {"eth0": 2, "eth1": 0, "eth2": Absence.NO_PERMISSION}
    assert flaps(4590.0)["eth0"] == 2
    assert flaps(4700.0) == {"eth0": 0, "eth1": 0, "eth2": Absence.NO_PERMISSION}  # watched for 3700 s
    host.write({f"{_NET}/eth0/carrier_down_count": 1})
    assert flaps(4720.0)["eth0"] == 0  # a new interface of the same name


def test_lost_or_short_kernel_logs_prove_no_quiet(tmp_path: Path) -> None:
    host, log = Host(tmp_path), _Log()
    host.write(_interface("eth0"))
    flaps = _flaps(host, log)
    log.answer = msgspec.structs.replace(_QUIET, complete=False, since_s=900.0)
    assert flaps(1000.0) == {"eth0": Absence.UNKNOWN}
    assert flaps(4501.0) == {"eth0": 0}
    log.answer = msgspec.structs.replace(_QUIET, lost_records=3)
    assert flaps(4520.0) == {"eth0": Absence.UNKNOWN}
    assert flaps(8200.0) == {"eth0": 0}
