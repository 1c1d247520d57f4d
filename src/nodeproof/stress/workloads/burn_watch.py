"""Temperature and throttling of the devices that burn, from the same sources as the daemon's."""

from collections.abc import Sequence
from typing import Any, Final

from nodeproof.collectors.services.gpu_fleet import GpuFleet
from nodeproof.errors import NoData
from nodeproof.host.machine import Machine
from nodeproof.model.gpu import CardReading
from nodeproof.stress.workloads.burn_device import DeviceFacts

__all__ = ["DeviceWatch"]

_EVERY: Final = 2
"""Looks at the cards, in turns of the loop."""


class DeviceWatch:
    """Looks at the cards while they burn. What cannot be read is missing from the result: never 0."""

    def __init__(self, devices: Sequence[DeviceFacts], fleet: GpuFleet | None = None) -> None:
        self._addresses = {facts.device: facts.address for facts in devices if facts.address}
        self._machine = Machine.here() if fleet is None and self._addresses else None
        self._fleet = self._machine.shared(GpuFleet) if self._machine is not None else fleet
        self._hottest: dict[str, float] = {}
        self._first: dict[tuple[str, str], float] = {}
        self._last: dict[tuple[str, str], float] = {}
        self._turn = 0

    def look(self) -> None:
        """Take one look, when it is time. Never raises."""
        self._turn += 1
        if self._fleet is None or self._turn % _EVERY:
            return
        try:
            found = self._fleet.read()
        except NoData:
            return
        cards = {one.card.address: one.card for vendor in found.vendors for one in vendor.cards}
        for device, address in self._addresses.items():
            if address in cards:
                self._note(device, cards[address])

    def of(self, device: str) -> dict[str, Any]:
        """What was seen of one device."""
        seen: dict[str, Any] = {}
        if device in self._hottest:
            seen["max_temp_c"] = self._hottest[device]
        slowed = {
            reason: round(last - self._first[name, reason], 3) for (name, reason), last in self._last.items() if name == device
        }
        return seen | ({"throttled_s": slowed} if slowed else {})

    def close(self) -> None:
        """End the processes that looked for it, so that none outlives the run."""
        if self._machine is not None:
            self._machine.close()

    def _note(self, device: str, card: CardReading) -> None:
        temperature = card.values.get(("temperature",))
        if temperature is not None:
            self._hottest[device] = max(temperature, self._hottest.get(device, temperature))
        for key, seconds in card.values.items():
            if key[0] == "throttle_time":
                self._first.setdefault((device, key[1]), seconds)
                self._last[device, key[1]] = seconds
