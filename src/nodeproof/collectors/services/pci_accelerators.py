"""Accelerator cards on the PCI bus, looked for once a minute for gpu and npu together."""

import threading
from typing import NamedTuple

from nodeproof.errors import Absence, NoData, ParseError
from nodeproof.host.machine import Machine
from nodeproof.sources import sys_pci

__all__ = ["Card", "PciAccelerators"]

_ROOT = "/sys/bus/pci/devices"
_PERIOD_S = 60.0
_EARLY_S = 1.0
"""Both collectors ask once a minute, not at the same moment: so much jitter still means a new scan."""


class Card(NamedTuple):
    """One card."""

    component: str
    """``gpu`` or ``npu``."""
    vendor: str
    """``nvidia``, ``amd`` or ``huawei``."""
    address: str
    """``0000:17:00.0``."""


class PciAccelerators:
    """The scan, and what it found last. ``class`` and ``vendor`` are kept by the kernel: reading them asks no device."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._lock = threading.Lock()
        self._cards: tuple[Card, ...] = ()
        self._at_s: float | None = None

    def cards(self, component: str) -> tuple[Card, ...]:
        """Cards of ``component``, in the order of their addresses. Raises NoData when the bus cannot be looked through."""
        with self._lock:
            now_s = self._machine.clock.now().mono_s
            if self._at_s is None or now_s - self._at_s >= _PERIOD_S - _EARLY_S:
                self._cards = tuple(self._scan())
                self._at_s = now_s
            return tuple(card for card in self._cards if card.component == component)

    def _scan(self) -> list[Card]:
        files = self._machine.files
        try:
            addresses = files.names(_ROOT)
        except NoData as absence:
            if absence.state is Absence.UNSUPPORTED:  # a kernel without PCI has no PCI cards
                return []
            raise
        cards: list[Card] = []
        for address in addresses:
            try:
                device_class = sys_pci.parse_id(files.read(f"{_ROOT}/{address}/class"))
                if device_class >> 8 not in sys_pci.ACCELERATOR_CLASSES:
                    continue
                vendor = sys_pci.parse_id(files.read(f"{_ROOT}/{address}/vendor"))
            except (NoData, ParseError):
                continue  # removed meanwhile, or no device at all
            kind = sys_pci.accelerator_kind(vendor, device_class)
            if kind is not None:
                cards.append(Card(*kind, address))
        return cards
