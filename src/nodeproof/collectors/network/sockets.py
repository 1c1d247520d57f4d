"""TCP sockets by state, without reading megabytes on a host that has very many."""

from nodeproof.collectors.base import Cycle, Group
from nodeproof.collectors.network.common import net_root
from nodeproof.errors import Absence, NoData
from nodeproof.host.machine import Machine
from nodeproof.model.metric import Labels
from nodeproof.sources import proc_net_snmp, proc_net_sockstat, proc_net_tcp

__all__ = ["Sockets"]

_PERIOD_S = 30.0
"""However few sockets there are, the kernel walks its whole hash table for each of the two files: about 5 ms of CPU."""
_MAX_LISTED = 20_000
"""Sockets up to which the tables are read: a line is 150 bytes, and the kernel holds a lock for each."""
_LABELS: dict[str, Labels] = {state: {"state": state} for state in proc_net_tcp.STATES}
_ALWAYS = ("ESTABLISHED", "TIME_WAIT")
"""States that health judges: none of them is 0, not silence."""


class Sockets:
    """Counts from ``tcp`` and ``tcp6``, or from the kernel's own sums when there are too many to list."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._root = net_root(machine.files)

    def groups(self) -> tuple[Group, ...]:
        """The one group of this source."""
        return (Group(("connection_count",), self.read, _PERIOD_S),)

    def read(self, cycle: Cycle) -> None:
        """Count. Raises NoData or ParseError."""
        time_wait, in_use = self._sums()
        established = self._established()
        total = time_wait + max(in_use, established)
        if total > _MAX_LISTED:
            cycle.add("connection_count", established, _LABELS["ESTABLISHED"])
            cycle.add("connection_count", time_wait, _LABELS["TIME_WAIT"])
            reason = f"{total} sockets are too many to list: only TIME_WAIT and ESTABLISHED are counted by the kernel itself"
            cycle.miss("connection_count", Absence.UNSUPPORTED, reason)
            return
        counts = dict.fromkeys(_ALWAYS, 0)
        for file in ("tcp", "tcp6"):
            for state, count in self._states(file).items():
                counts[state] = counts.get(state, 0) + count
        for state, count in counts.items():
            cycle.add("connection_count", count, _LABELS[state])

    def _established(self) -> int:
        tables = proc_net_snmp.parse(self._files.read(f"{self._root}/snmp"), ("Tcp",))
        if "CurrEstab" not in tables.get("Tcp", {}):
            raise NoData(Absence.UNSUPPORTED, f"{self._root}/snmp does not count established TCP connections")
        return tables["Tcp"]["CurrEstab"]

    def _sums(self) -> tuple[int, int]:
        """Sockets in TIME_WAIT (both families), and others in use."""
        sockstat = proc_net_sockstat.parse(self._files.read(f"{self._root}/sockstat")).get("TCP", {})
        if "tw" not in sockstat or "inuse" not in sockstat:
            raise NoData(Absence.UNSUPPORTED, f"{self._root}/sockstat does not count TCP sockets")
        return sockstat["tw"], sockstat["inuse"] + self._in_use6()

    def _in_use6(self) -> int:
        try:
            return proc_net_sockstat.parse(self._files.read(f"{self._root}/sockstat6")).get("TCP6", {}).get("inuse", 0)
        except NoData as absence:
            if absence.state is Absence.UNSUPPORTED:  # a kernel without IPv6
                return 0
            raise

    def _states(self, file: str) -> dict[str, int]:
        try:
            return proc_net_tcp.parse(self._files.read(f"{self._root}/{file}"))
        except NoData as absence:
            if file == "tcp6" and absence.state is Absence.UNSUPPORTED:
                return {}
            raise
