"""Faults of a running daemon: kernel log and rules of health on one side, subscribers on the other."""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nodeproof.collectors.services.kernel_log import KernelLog
from nodeproof.config.schema import Config, FaultsubConfig
from nodeproof.errors import NoData
from nodeproof.faults.desk import FaultDesk
from nodeproof.faults.identity import card_id
from nodeproof.health.evaluator import Evaluator
from nodeproof.health.findings import severities
from nodeproof.health.readings import Readings
from nodeproof.host.listen import is_loopback, parse_address
from nodeproof.host.machine import Machine
from nodeproof.model.health import Finding, HealthScore
from nodeproof.model.metric import Labels, Metric

if TYPE_CHECKING:
    from nodeproof.faults.service import FaultService

__all__ = ["FaultWatch", "narrowed"]

_log = logging.getLogger(__name__)
_WHO = (("gpu", "device_info"), ("npu", "npu_info"))
"""Readings that tell which card an id stands for."""
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


class FaultWatch:
    """Looks for faults between :meth:`start` and :meth:`stop`."""

    _service: "FaultService | None" = None

    def __init__(self, config: Config, machine: Machine) -> None:
        self._settings: FaultsubConfig = config.faultsub
        self._machine = machine
        self._kernel_log = machine.shared(KernelLog)
        self._boot_id = _boot_id(machine)
        self._told: dict[str, Sequence[Metric]] = {}
        self._cards: dict[tuple[str, str], Labels] = {}
        off = [name for name, on in config.faultsub.rules.items() if not on]
        self.desk = FaultDesk(config.faultsub.dir, machine.clock, self._boot_id, off=off, severities=severities())

    def start(self) -> None:
        """Take up what stands, serve it where that is wanted, and follow the kernel log from where it was left.

        Raises SnapshotError (another daemon has the directory), AddressInUseError or UsageError.
        """
        self.desk.open()
        try:
            self._serve()
        except BaseException:
            self.desk.close()
            raise
        self._kernel_log.heard(self.desk.place.sequence)
        self._kernel_log.start()

    def stop(self) -> None:
        """End; what is not written yet is written."""
        if self._service is not None:
            self._service.stop()
        self.desk.close()

    def _serve(self) -> None:
        settings = self._settings
        if not settings.enabled:
            return
        from nodeproof.faults.delivery import DeliverySettings  # noqa: PLC0415 - only where somebody subscribes
        from nodeproof.faults.service import FaultService  # noqa: PLC0415

        address = narrowed(settings.rest_addr)
        service = FaultService(
            self.desk,
            self._machine.clock,
            address,
            boot_id=self._boot_id,
            settings=DeliverySettings(settings.webhook_timeout_s, settings.webhook_retry, settings.webhook_give_up_s),
            buffer=settings.event_buffer,
            operators=settings.operators,
            webhook_allow=settings.webhook_allow,
            allowed_hosts=settings.allowed_hosts,
        )
        service.start()
        self._service = service
        _log.info("faults at http://%s/faultsub/active", address)

    def hear(self) -> bool:
        """Take in what the kernel wrote; whether there was anything to tell of."""
        news = self._kernel_log.news()
        if news:
            self.desk.hear(news)
        return bool(news)

    def findings(self) -> list[Finding]:
        """Faults that no rule of health tells of."""
        return self.desk.findings()

    def judge(self, evaluator: Evaluator, readings: Readings, health: HealthScore) -> None:
        """Compare what stands with what ``evaluator`` made of ``readings``."""
        self._learn(readings)
        if health.findings or self.desk.active():
            standing = evaluator.standing(readings)
            self.desk.judge(standing, evaluator.reads_well, log_readable=self._kernel_log.readable)

    def _learn(self, readings: Readings) -> None:
        """Which card has which id now: remembered, since a card that is lost no longer says who it is."""
        for component, name in _WHO:
            found = readings.metrics(component, name)
            if not found or found is self._told.get(component):
                continue
            self._told[component] = found
            cards = {(component, card_id(component, metric.labels or {})): metric.labels or {} for metric in found}
            if not cards.items() <= self._cards.items():
                self._cards |= cards
                self.desk.know(dict(self._cards))

    def take_orders(self) -> None:
        """Do what operators asked for."""
        self.desk.take_orders()


def narrowed(address: str) -> str:
    """``address``, or the loopback one of the same port: whoever can reach it may subscribe, and there are no tokens here."""
    parsed = parse_address(address)
    if isinstance(parsed, str) or is_loopback(parsed[0]):
        return address
    loopback = f"127.0.0.1:{parsed[1]}"
    _log.warning(
        "faultsub.rest_addr %s could be reached from other machines, without any token: it is narrowed to %s;"
        " let others come through a proxy that knows them, or by ssh -L",
        address,
        loopback,
    )
    return loopback


def _boot_id(machine: Machine) -> str:
    try:
        return machine.files.read_text(_BOOT_ID).strip()
    except NoData:
        return ""
