"""TCP sockets by state, without reading megabytes on a host that has very many."""

from nodeproof.collectors.base import Cycle, Group
from nodeproof.collectors.network.common import net_root
from nodeproof.errors import Absence, NoData, ParseError
from nodeproof.host.machine import Machine
from nodeproof.model.metric import Labels
from nodeproof.sources import inet_diag, proc_net_snmp, proc_net_sockstat, proc_net_tcp

__all__ = ["Sockets"]

_INET, _INET6 = 2, 10
_PERIOD_S = 60.0
"""However few sockets there are, the kernel walks its whole hash table for each family: megabytes that are in no cache."""
_MAX_LISTED = 20_000
"""Sockets up to which they are listed one by one: the kernel holds a lock for each."""
_LABELS: dict[str, Labels] = {state: {"state": state} for state in proc_net_tcp.STATES}
_ALWAYS = ("ESTABLISHED", "TIME_WAIT")
"""States that health judges: none of them is 0, not silence."""


class Sockets:
    """Counts of the kernel's list, of ``tcp`` and ``tcp6``, or, when there are too many, of the kernel's own sums."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._root = net_root(machine.files)
        self._lists = True
        """Whether the kernel may be asked for its list; else its files are read."""

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
        for states in self._listed() or map(self._states, ("tcp", "tcp6")):
            for state, count in states.items():
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

    def _listed(self) -> list[dict[str, int]]:
        """What the kernel lists for each family; empty where it cannot be asked."""
        if not self._lists:
            return []
        try:
            return [inet_diag.parse(self._files.tcp_sockets(family)) for family in (_INET, _INET6)]
        except (NoData, ParseError):
            self._lists = False
            return []

    def _states(self, file: str) -> dict[str, int]:
        try:
            return proc_net_tcp.parse(self._files.read(f"{self._root}/{file}"))
        except NoData as absence:
            if file == "tcp6" and absence.state is Absence.UNSUPPORTED:
                return {}
            raise
