"""The network port of each Ascend chip through ``hccn_tool``, and its HCCS links through ``npu-smi``: slow, all chips at once.

The tool takes a second and more for each question, so chips are asked side by side on a few threads; a chip that hangs costs its
own answers. It counts chips by their physical id: where nobody tells that id, it is not asked, for an answer about another chip
would be worse than none.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from nodeproof.collectors.services.ascend_told import ChipAnswer, ChipKey, Told
from nodeproof.collectors.services.npu_smi import PACKAGE
from nodeproof.errors import Absence, CommandError, NoData, ParseError
from nodeproof.host.commands import absence_of_command
from nodeproof.host.machine import Machine
from nodeproof.model.catalogue.npu_network import NETWORK_PERIOD_S
from nodeproof.sources import hccn_tool, npu_smi_details
from nodeproof.sources.npu_cells import Reading

__all__ = ["Hccn", "Port"]

_DEADLINE_S = 8.0
_AT_ONCE = 8
_STALE_ROUNDS = 4


class Port(NamedTuple):
    """One chip to be asked."""

    key: ChipKey
    phy_id: int | None


class Hccn:
    """Answers about ports; get it by ``machine.shared(Hccn)``."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._ports: tuple[Port, ...] = ()
        self._answers: dict[ChipKey, ChipAnswer] = {}
        self._lock = threading.Lock()
        self._round = machine.background("hccn_tool", self._ask_all, interval_s=NETWORK_PERIOD_S, deadline_s=2 * NETWORK_PERIOD_S)

    def answers(self, ports: Sequence[Port]) -> Mapping[ChipKey, ChipAnswer | NoData]:
        """What the last round found, by chip. Never blocks."""
        self._ports = tuple(ports)
        pending = NoData(Absence.UNKNOWN, "hccn_tool has not told it yet")
        try:
            self._round.latest()
        except NoData as absence:
            pending = pending if absence.state is Absence.UNKNOWN else absence.again()
        now_s = self._machine.clock.now().mono_s
        with self._lock:
            return {port.key: self._believable(self._answers.get(port.key, pending), now_s) for port in ports}

    @staticmethod
    def _believable(said: ChipAnswer | NoData, now_s: float) -> ChipAnswer | NoData:
        if isinstance(said, NoData) or now_s - said.at.mono_s <= _STALE_ROUNDS * NETWORK_PERIOD_S:
            return said
        return NoData(Absence.STALE, f"hccn_tool told it last {now_s - said.at.mono_s:.0f} s ago")

    def _ask_all(self) -> int:
        todo = list(self._ports)
        places = list(todo)

        def work() -> None:
            while True:
                with self._lock:
                    if not places:
                        return
                    port = places.pop(0)
                self._ask(port)

        threads = [threading.Thread(target=work, name="hccn", daemon=True) for _ in range(min(_AT_ONCE, len(todo)))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return len(todo)

    def _ask(self, port: Port) -> None:
        at = self._machine.clock.now()
        told = [*self._hccs(port), *self._hccn(port)]
        with self._lock:
            self._answers[port.key] = ChipAnswer(at, tuple(told))

    def _hccs(self, port: Port) -> list[Told]:
        npu, chip = map(str, port.key)
        names = ("hccs_tx_bandwidth", "hccs_rx_bandwidth")

        def read() -> list[Told]:
            argv = ("npu-smi", "info", "-t", "hccs-bw", "-i", npu, "-c", chip, "-time", "50")
            found = npu_smi_details.hccs_bandwidth(self._run(argv, port))
            return [Told(f"hccs_{way}_bandwidth", found.get(way, _left_out("hccs-bw"))) for way in ("tx", "rx")]

        return _told(read, names)

    def _hccn(self, port: Port) -> list[Told]:
        if self._machine.commands.find("hccn_tool") is None:
            absence = NoData(Absence.UNSUPPORTED, "hccn_tool is not installed", remedy="install the Ascend driver package")
            return [Told(name, absence) for name in _ALL]
        if port.phy_id is None:
            absence = NoData(Absence.UNKNOWN, "the physical id of the chip is not known, and hccn_tool takes no other")
            return [Told(name, absence) for name in _ALL]
        told: list[Told] = []
        for option, names, make in _QUESTIONS:

            def read(option: str = option, make: Callable[[bytes], list[Told]] = make) -> list[Told]:
                return make(self._run(("hccn_tool", "-i", str(port.phy_id), f"-{option}", "-g"), port))

            told += _told(read, names)
        return told

    def _run(self, argv: Sequence[str], port: Port) -> bytes:
        try:
            result = self._machine.commands.run(argv, deadline_s=_DEADLINE_S, subject=f"NPU {port.key.npu_id}:{port.key.chip_id}")
        except CommandError as error:
            raise absence_of_command(error, package=PACKAGE) from None
        return result.stdout or result.stderr


def _told(read: Callable[[], list[Told]], names: Sequence[str]) -> list[Told]:
    try:
        return read()
    except NoData as absence:
        return [Told(name, absence.again()) for name in names]
    except ParseError as error:
        return [Told(name, NoData(Absence.READ_ERROR, str(error))) for name in names]


def _left_out(option: str) -> NoData:
    return NoData(Absence.READ_ERROR, f"the answer to -{option} leaves it out")


def _bandwidth(raw: bytes) -> list[Told]:
    found = hccn_tool.bandwidth(raw)
    older = any(name.startswith("pcie") for name in found)
    pcie = _left_out("bandwidth") if older else NoData(Absence.UNSUPPORTED, "this version of hccn_tool does not tell it")
    told: list[Told] = []
    for way in ("tx", "rx"):
        net: Reading = found.get(f"net_{way}", _left_out("bandwidth"))
        told += [Told(f"net_{way}_bandwidth", net), Told(f"pcie_{way}_bandwidth", found.get(f"pcie_{way}", pcie))]
    return told


def _link(raw: bytes) -> list[Told]:
    word = hccn_tool.link(raw)
    up = hccn_tool.LINK_WORDS.get(word.lower())
    if up is None:
        unknown = NoData(Absence.UNKNOWN, f"the link calls itself {word!r}, which is neither up nor down")
        return [Told("roce_link_status", unknown), Told("roce_link_health", unknown.again())]
    status = (("status", "up" if up else "down"),)
    return [Told("roce_link_status", float(up), status), Told("roce_link_health", float(up), (("roce_link", word),))]


def _speed(raw: bytes) -> list[Told]:
    return [Told("roce_speed_status", 1.0, (("roce_speed", hccn_tool.speed(raw)),))]


def _statistics(raw: bytes) -> list[Told]:
    found = hccn_tool.statistics(raw)
    untold = NoData(Absence.UNSUPPORTED, "this version of hccn_tool does not count it")
    return [Told(name, found.get(name, untold)) for name in hccn_tool.STATISTICS]


_QUESTIONS: tuple[tuple[str, tuple[str, ...], Callable[[bytes], list[Told]]], ...] = (
    ("bandwidth", ("net_tx_bandwidth", "net_rx_bandwidth", "pcie_tx_bandwidth", "pcie_rx_bandwidth"), _bandwidth),
    ("link", ("roce_link_status", "roce_link_health"), _link),
    ("speed", ("roce_speed_status",), _speed),
    ("stat", hccn_tool.STATISTICS, _statistics),
)
_ALL = tuple(name for _, names, _ in _QUESTIONS for name in names)
