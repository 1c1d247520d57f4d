"""Accelerators, from whoever can ask them. NVIDIA, AMD and Ascend are providers of this protocol.

A provider reads all devices of its kind at once and keeps them apart; what a device does not tell is None, with its reason among
``fields``. Clocks, counters and flags are those of ``nodeproof.model.hardware.DeviceState``.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, Protocol

from nodeproof.collectors.services.pci_accelerators import PciAccelerators
from nodeproof.errors import Absence, NoData
from nodeproof.host.machine import Machine
from nodeproof.model.hardware import ComputeApp, DeviceState, Field

__all__ = ["AcceleratorProvider", "Accelerators", "DeviceSet", "RecordedProvider", "Relevant", "Survey"]

DeviceSet = Collection[str] | None
"""Devices that the run uses, by :attr:`DeviceState.device`; None = all, or not known which. Empty = none at all."""


class Survey(NamedTuple):
    """All devices of one kind at one moment."""

    devices: tuple[DeviceState, ...]
    apps: tuple[ComputeApp, ...] | None
    """Processes that use them; None = cannot be listed. An empty tuple = none does."""
    source: str
    """``nvidia-smi``, ``npu-smi`` ..."""
    apps_absence: NoData | None = None
    fields: tuple[Field, ...] = ()


class Relevant(NamedTuple):
    """What was seen of the devices that the run uses: one at least."""

    devices: tuple[DeviceState, ...]
    surveys: tuple[Survey, ...]

    def unlisted(self) -> NoData | None:
        """Why the processes on them cannot all be listed; None when they can."""
        survey = next((survey for survey in self.surveys if survey.apps is None), None)
        if survey is None:
            return None
        return survey.apps_absence or NoData(Absence.UNKNOWN, f"{survey.source} cannot list processes")

    def foreign(self) -> list[ComputeApp]:
        """Processes on them that are not the run's own."""
        return [app for survey in self.surveys for app in survey.apps or () if app.foreign]


class AcceleratorProvider(Protocol):
    """Who can ask accelerators of one kind."""

    name: str

    def read(self) -> Survey:
        """Ask them now; may take seconds, and is waited for with a deadline. Raises NoData when they cannot be asked."""
        ...


class RecordedProvider:
    """Answers that were recorded, one a look; the last one stays. For tests of rules, and for authors of providers."""

    def __init__(self, answers: Sequence[Survey | NoData], name: str = "recorded") -> None:
        self.name = name
        self.asked = 0
        """How often it was read."""
        self._answers = list(answers)

    def read(self) -> Survey:
        """The next answer. Raises NoData where that was recorded."""
        answer = self._answers[min(self.asked, len(self._answers) - 1)]
        self.asked += 1
        if isinstance(answer, NoData):
            raise answer.again()
        return answer


class Accelerators:
    """All providers together, as far as the run uses accelerators."""

    def __init__(self, machine: Machine, providers: Sequence[AcceleratorProvider], used: DeviceSet) -> None:
        self.providers = tuple(providers)
        self.used = used
        self._bus = machine.shared(PciAccelerators)
        self._own: frozenset[str] = frozenset()

    def learn(self, devices: Iterable[str]) -> None:
        """These are used by the run's own processes: where nobody told which ones it uses, it uses those and no others."""
        self._own |= frozenset(device for device in devices if device)

    def absence(self) -> NoData:
        """Why no provider has anything to say: no card, no use for one, or nobody who could ask it."""
        if self.used is not None and not self.used:
            return NoData(Absence.NOT_APPLICABLE, "the run uses no accelerator")
        try:
            cards = [card for component in ("gpu", "npu") for card in self._bus.cards(component)]
        except NoData as absence:
            return absence
        if not cards:
            return NoData(Absence.NOT_APPLICABLE, "there is no accelerator on the PCI bus")
        kinds = ", ".join(sorted({card.vendor for card in cards}))
        return NoData(Absence.UNKNOWN, f"{len(cards)} accelerators ({kinds}) are on the PCI bus, and nothing here can ask them")

    def relevant(self, answers: Sequence[tuple[str, Survey | NoData]] | None) -> "Relevant | NoData":
        """Devices that the run uses, out of what each provider answered; why they cannot be told otherwise."""
        if not answers or (self.used is not None and not self.used):
            return self.absence()
        failed = next((answer for _, answer in answers if isinstance(answer, NoData)), None)
        surveys = tuple(answer for _, answer in answers if not isinstance(answer, NoData))
        devices = tuple(device for survey in surveys for device in survey.devices if self.mine(device.device))
        unseen = sorted(set(self.used or ()) - {device.device for device in devices})
        if unseen:
            return failed or NoData(Absence.UNKNOWN, f"the run uses {', '.join(unseen)}, which nobody sees")
        if failed is not None and failed.state is not Absence.NOT_APPLICABLE:
            return failed
        return Relevant(devices, surveys) if devices else self.absence()

    def mine(self, device: str) -> bool:
        """Whether the run uses this device, as far as is known."""
        used = self.used if self.used is not None else self._own or None
        return used is None or not device or device in used
