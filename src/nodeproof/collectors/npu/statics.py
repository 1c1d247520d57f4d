"""What cannot change while the driver runs: how many chips, of which kind, which driver, and how they are connected."""

import re

from nodeproof.collectors.base import Cycle
from nodeproof.collectors.npu.labels import ChipLabels
from nodeproof.collectors.services.ascend import Ascend
from nodeproof.errors import Absence, NoData
from nodeproof.host.machine import Machine

__all__ = ["Statics"]

_VERSION_FILE = "/usr/local/Ascend/driver/version.info"
_VERSION = re.compile(r"^\s*Version\s*=\s*(\S{1,64})", re.MULTILINE)


class Statics:
    """Reads them until they could be read."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._ascend = machine.shared(Ascend)

    def read(self, cycle: Cycle) -> None:
        """All of them. Raises NoData when no source can be asked."""
        if not self._ascend.some():
            return  # the count of cards says so, once
        look = self._ascend.look()
        cycle.add("npu_num", len(look.listed))
        identities = self._ascend.identities()
        for key in sorted(look.listed):
            name = identities[key].name if key in identities else ""
            labels = ChipLabels.chip(key)
            if name:
                cycle.add("chip_type", 1.0, labels | {"chip_type": name})
            else:
                cycle.miss("chip_type", Absence.UNKNOWN, "the chip does not tell its kind", labels)
        self._driver(cycle)
        try:
            cycle.add("comm_topo", 1.0, {"topo": self._ascend.topology()})
        except NoData as absence:
            cycle.miss("comm_topo", absence.state, absence.reason, remedy=absence.remedy)

    def _driver(self, cycle: Cycle) -> None:
        version = self._ascend.driver_version() or self._installed()
        if version:
            cycle.add("driver_version", 1.0, {"driver_version": version})
        else:
            cycle.miss("driver_version", Absence.UNKNOWN, f"neither the driver nor {_VERSION_FILE} tells it")

    def _installed(self) -> str:
        try:
            found = _VERSION.search(self._files.read_text(_VERSION_FILE))
        except NoData:
            return ""
        return found[1] if found else ""
